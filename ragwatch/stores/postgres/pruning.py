"""Bytes of the stored rows, and of what is rewritten after an erasure."""

from __future__ import annotations

from ragwatch.stores.retention import ROW_BYTES

EXACT_BYTES = 256 << 20  # tables up to this size are measured whole, larger ones by a sample of their pages
TABLES = ("verdicts", "samples", "traits", "answer_index", "replies", "runs", "parts", "labels", "events")
RELATION_SIZE = (
    "SELECT SUM(pg_total_relation_size(p.relid))"  # noqa: S608 - constants
    f" FROM unnest(ARRAY{list(TABLES)}) AS t(name), pg_partition_tree(t.name::regclass) AS p"
)


def sizes(relation_bytes: int) -> list[str]:
    """Return statements that measure the bytes of the stored rows: a table's file also has free space.

    >>> ["TABLESAMPLE" in sql for sql in sizes(EXACT_BYTES)], "(25.0)" in sizes(4 * EXACT_BYTES)[0]
    ([False, False, False], True)
    """
    percent = 100.0 * min(1.0, EXACT_BYTES / max(1, relation_bytes))
    part = "" if percent >= 100.0 else f"TABLESAMPLE SYSTEM ({percent})"
    factor = 100.0 / percent
    columns = {
        "verdicts": "octet_length(line) + coalesce(octet_length(scores::text), 0)",
        "samples": "octet_length(body)",
        "runs": "octet_length(body)",
    }
    return [
        f"SELECT COALESCE({factor} * SUM({ROW_BYTES} + {size}), 0)::bigint FROM {table} {part}"  # noqa: S608 - constants
        for table, size in columns.items()
    ]
