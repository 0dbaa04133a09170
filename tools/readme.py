"""Writes generated tables between their markers in README.md and docs/parquet.md, and docs/reference.md."""

from __future__ import annotations

from pathlib import Path

from ragwatch.exporter.catalogue import markdown
from tools.parquet_columns import with_table
from tools.reference import reference

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PARQUET = ROOT / "docs" / "parquet.md"
REFERENCE = ROOT / "docs" / "reference.md"
START, END = "<!-- series -->", "<!-- /series -->"

if __name__ == "__main__":
    text = README.read_text(encoding="utf-8")
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    README.write_text(f"{before}{START}\n{markdown()}\n{END}{after}", encoding="utf-8")
    PARQUET.write_text(with_table(PARQUET.read_text(encoding="utf-8")), encoding="utf-8")
    REFERENCE.write_text(reference(), encoding="utf-8")
