"""Writes the generated parts of docs/setup.md, docs/logs.md and docs/parquet.md, and docs/reference.md."""

from pathlib import Path

from tools.cookbook import cookbook, filled_in, table
from tools.parquet_columns import with_table
from tools.reference import reference

DOCS = Path(__file__).parent.parent / "docs"
LOGS = DOCS / "logs.md"
PARQUET = DOCS / "parquet.md"
REFERENCE = DOCS / "reference.md"
SETUP = DOCS / "setup.md"


def logs_page(text: str) -> str:
    """The page docs/logs.md with its generated parts."""
    return filled_in(filled_in(text, "shapes", table()), "cookbook", cookbook())


def setup_page(text: str) -> str:
    """The page docs/setup.md with its generated table."""
    return filled_in(text, "shapes", f"{table(brief=True)}\n")


if __name__ == "__main__":
    for page, made in ((SETUP, setup_page), (LOGS, logs_page), (PARQUET, with_table)):
        page.write_text(made(page.read_text(encoding="utf-8")), encoding="utf-8")
    REFERENCE.write_text(reference(), encoding="utf-8")
