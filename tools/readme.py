"""Writes the table of series into README.md, between its markers."""

from __future__ import annotations

from pathlib import Path

from ragwatch.exporter.catalogue import markdown

README = Path(__file__).parent.parent / "README.md"
START, END = "<!-- series -->", "<!-- /series -->"

if __name__ == "__main__":
    text = README.read_text(encoding="utf-8")
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    README.write_text(f"{before}{START}\n{markdown()}\n{END}{after}", encoding="utf-8")
