"""Builds the table of columns in docs/parquet.md from the schema of exported files."""

from collections.abc import Iterator

from ragwatch.offline.parquet_rows import COLUMNS, Column

START, END = "<!-- columns -->", "<!-- /columns -->"


def with_table(text: str) -> str:
    """The page with the table between its markers."""
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    rows = "\n".join(_rows("", COLUMNS))
    return f"{before}{START}\n| column | type | meaning |\n|---|---|---|\n{rows}\n{END}{after}"


def _rows(place: str, columns: tuple[Column, ...]) -> Iterator[str]:
    for column in columns:
        is_list = isinstance(column.type, tuple)
        kind = "list of objects" if is_list else f"{column.type}"
        required = ", never null" if column.required else ""
        yield f"| `{place}{column.name}` | {kind}{required} | {column.meaning} |"
        if isinstance(column.type, tuple):
            yield from _rows(f"{place}{column.name}[].", column.type)
