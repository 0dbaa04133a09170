"""Sentences of the tests that are no code: `data/sentences.txt`, by their headings, and other files of that shape."""

from __future__ import annotations

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
    return found
