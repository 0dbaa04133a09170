"""Texts of the tests that are no code: sentences by their headings, and what is written and what is said about it."""

from pathlib import Path

DATA = Path(__file__).parents[1] / "data"


def sections(name: str = "sentences.txt") -> dict[str, list[str]]:
    """The lines below each heading, `# heading`, without empty ones."""
    found: dict[str, list[str]] = {}
    for line in (DATA / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            lines = found.setdefault(line[2:], [])
        elif line:
            lines.append(line)
    assert all(found.values()), f"{name} has headings without a line"
    return found


def pairs(heading: str) -> list[tuple[str, str]]:
    """The two sentences of each line below a heading, `one => other`."""
    return [(one, other) for one, _, other in (line.partition(" => ") for line in sections()[heading])]


def written_and_said(name: str) -> list[tuple[str, str]]:
    """Texts of a file, and what is said about each: in lines behind `=> `. Lines that begin with `# ` are comments."""
    found: list[tuple[list[str], list[str]]] = [([], [])]
    for line in (DATA / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("=> "):
            found[-1][1].append(line.removeprefix("=> "))
        elif line and not line.startswith("# "):
            if found[-1][1]:
                found.append(([], []))
            found[-1][0].append(line)
    return [("\n".join(text), "\n".join(said)) for text, said in found]
