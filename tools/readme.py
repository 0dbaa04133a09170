"""Writes what is generated of the documents: docs/reference.md, and the table of docs/parquet.md."""

from __future__ import annotations

from pathlib import Path

from tools.parquet_columns import with_table
from tools.reference import reference

DOCS = Path(__file__).parent.parent / "docs"
PARQUET = DOCS / "parquet.md"
REFERENCE = DOCS / "reference.md"

if __name__ == "__main__":
    PARQUET.write_text(with_table(PARQUET.read_text(encoding="utf-8")), encoding="utf-8")
    REFERENCE.write_text(reference(), encoding="utf-8")
