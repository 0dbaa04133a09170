"""Writes the generated parts of README.md, docs/logs.md and docs/parquet.md, and docs/reference.md."""

from __future__ import annotations

from pathlib import Path

from ragwatch.exporter.catalogue import markdown
from tools.cookbook import cookbook, filled_in, table
from tools.parquet_columns import with_table
from tools.reference import reference

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PARQUET = ROOT / "docs" / "parquet.md"
REFERENCE = ROOT / "docs" / "reference.md"
LOGS = ROOT / "docs" / "logs.md"
START, END = "<!-- series -->", "<!-- /series -->"


def logs_page(text: str) -> str:
    """The page docs/logs.md with its generated parts."""
    return filled_in(filled_in(text, "shapes", table()), "cookbook", cookbook())


if __name__ == "__main__":
    text = README.read_text(encoding="utf-8")
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    text = f"{before}{START}\n{markdown()}\n{END}{after}"
    README.write_text(filled_in(text, "shapes", f"{table(brief=True)}\n"), encoding="utf-8")
    LOGS.write_text(logs_page(LOGS.read_text(encoding="utf-8")), encoding="utf-8")
    PARQUET.write_text(with_table(PARQUET.read_text(encoding="utf-8")), encoding="utf-8")
    REFERENCE.write_text(reference(), encoding="utf-8")
