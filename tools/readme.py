"""Writes the table of series into README.md, between its markers, and docs/reference.md."""

from __future__ import annotations

from pathlib import Path

from ragwatch.exporter.catalogue import markdown
from tools.reference import reference

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
REFERENCE = ROOT / "docs" / "reference.md"
START, END = "<!-- series -->", "<!-- /series -->"

if __name__ == "__main__":
    text = README.read_text(encoding="utf-8")
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    README.write_text(f"{before}{START}\n{markdown()}\n{END}{after}", encoding="utf-8")
    REFERENCE.write_text(reference(), encoding="utf-8")
