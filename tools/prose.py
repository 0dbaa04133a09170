"""Checks the prose of the documents with proselint: code, tables of names and headings are left out, lines are kept.

    python tools/prose.py FOLDER

writes the prose of the documents to FOLDER and checks it. proselint is run from the environment of this Python, with
docs/proselint.json; that file says what is switched off, and `WHY` says why.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs/*.md", "deploy/runbooks/*.md")
SETTINGS = ROOT / "docs" / "proselint.json"
WHY = {
    "dates_times.dates.dash_and_from": "takes every `from 2,000 answers` with a dash in its line for a range of years",
    "restricted": "allows the thousand commonest words only; off by default",
    "typography.symbols.curly_quotes": "sources are typed with straight quotes, which can be copied into a shell",
    "typography.symbols.ellipsis": "three full stops stand for what is left out, in code and beside it",
    "typography.symbols.multiplication": "formulas are typed in ASCII, as in the code that computes them",
}


def prose_of(text: str) -> str:
    """The text with blanks for code blocks, code in lines, link targets, headings and rows of tables."""
    text = re.sub(r"(?ms)^```.*?^```$", _blank, text)
    text = re.sub(r"(?m)^(?: {4,}.*|#+ .*|\|.*|>>> .*(?:\n.+)*)$", _blank, text)
    return re.sub(r"(?s)``.*?``|`[^`]*`|(?<=\])\([^)]*\)", _word, text)


def _blank(part: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", part[0])


def _word(part: re.Match[str]) -> str:
    """A word that is repeated nowhere, and as many lines."""
    return f"N{part.start()}" + "\n" * part[0].count("\n")


def main(folder: Path) -> int:
    """Write the prose, check it, and return the exit code."""
    off = {name for name, on in json.loads(SETTINGS.read_text(encoding="utf-8"))["checks"].items() if on is False}
    if off != set(WHY):
        sys.stderr.write(f"{SETTINGS.name} and tools/prose.py differ about what is switched off: {off ^ set(WHY)}\n")
        return 1
    for path in sorted(path for pattern in DOCUMENTS for path in ROOT.glob(pattern)):
        target = folder / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(prose_of(path.read_text(encoding="utf-8")), encoding="utf-8")
    program = Path(sys.executable).with_name("proselint")
    return subprocess.run([program, "check", "--config", SETTINGS, "-o", "compact", folder], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
