"""SQL statements of retention. Verdicts with a fault are kept longer than others, because people come back for them.

The verdicts that remain from a time of which some were deleted are a biased sample: see `unbiased`.
"""

from __future__ import annotations

import math

from ragwatch.ports import Retention
from ragwatch.stores.limits import DAY
from ragwatch.stores.postgres.connections import Writer
from ragwatch.stores.postgres.locks import SEQUENCES, lock

MAX_ROWS_PER_STEP = 500
MAX_RUNS_PER_STEP = 10
EXACT_BYTES = 256 << 20  # tables up to this size are measured whole, larger ones by a sample of their pages
ROW_BYTES = 80  # of a row's header and its entries in indexes
PRUNED_UNTIL = "SELECT until FROM pruned"
RUNS_SIZE = "SELECT COALESCE(SUM(octet_length(body)), 0)::bigint FROM runs"
_TABLES = ("verdicts", "samples", "traits", "answer_index", "replies", "runs", "parts", "labels", "events")
RELATION_SIZE = (
    "SELECT SUM(pg_total_relation_size(p.relid))"  # noqa: S608 - constants
    f" FROM unnest(ARRAY{list(_TABLES)}) AS t(name), pg_partition_tree(t.name::regclass) AS p"
)
LAST = "SELECT COALESCE(pg_sequence_last_value(pg_get_serial_sequence('verdicts', 'seq')::regclass), 0)"
_DELETED = "RETURNING key, at, octet_length(line) + coalesce(octet_length(scores::text), 0)"


def unbiased(table: str = "") -> str:
    """Return the condition that a verdict is newer than what was deleted, or was settled since.

    >>> "v.at" in unbiased("v.")
    True
    """
    return f"({table}at > COALESCE(PRUNED_UNTIL, LOWEST) OR {table}seq > PRUNED_SEQ)"


def rejudged(table: str = "") -> str:
    r"""Return the condition that a verdict is of a reading again (see `stores.rejudging`), and was not assigned.

    >>> rejudged("o.")
    'REJUDGED(o.)'
    """
    return f"REJUDGED({table})"


def live(table: str = "") -> str:
    """Return the condition that a verdict is of a draw that was assigned, of a time that is whole."""
    return f"{unbiased(table)} AND NOT {rejudged(table)}"


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


def delete_expired(writer: Writer, retention: Retention, now: float) -> int:
    """Delete a limited number of expired verdicts, expired runs and events, and samples without further use.

    Verdicts without a fault in the partition of a day are left: the whole day is dropped when it is over. Returns the
    number of deleted verdicts.
    """
    deleted: list[tuple[str, float, int]] = []
    for failing, days, of in ((0, retention.days, " AND part <= 0"), (1, retention.failing_days, "")):
        deleted += writer.execute(
            "DELETE FROM verdicts WHERE seq = ANY(ARRAY("  # noqa: S608 - constants only
            f"SELECT seq FROM verdicts WHERE failing = %s{of} AND at < %s ORDER BY at LIMIT %s)) {_DELETED}".encode(),
            (failing, now - days * DAY, MAX_ROWS_PER_STEP),
        ).fetchall()
        writer.execute("DELETE FROM runs WHERE failing = %s AND at < %s", (failing, now - days * DAY))
    writer.execute("DELETE FROM events WHERE at < %s", (now - max(retention.days, retention.failing_days) * DAY,))
    _record_deletion(writer, deleted, now)
    return len(deleted)


def delete_oldest_runs(writer: Writer) -> int:
    """Delete a limited number of the oldest runs, successful ones first; the newest of each name stays for display."""
    return writer.execute(
        "DELETE FROM runs WHERE id = ANY(ARRAY(SELECT id FROM runs"
        " WHERE id NOT IN (SELECT MAX(id) FROM runs GROUP BY kind, name) ORDER BY failing, at LIMIT %s))",
        (MAX_RUNS_PER_STEP,),
    ).rowcount


def delete_oldest(writer: Writer, now: float) -> tuple[int, int]:
    """Delete a limited number of the oldest verdicts, those without a fault first. Returns their number and bytes."""
    deleted = writer.execute(
        "DELETE FROM verdicts WHERE seq = ANY(ARRAY("  # noqa: S608 - constants only
        f"SELECT seq FROM verdicts ORDER BY failing, at LIMIT %s)) {_DELETED}".encode(),
        (MAX_ROWS_PER_STEP,),
    ).fetchall()
    size = _record_deletion(writer, deleted, now)
    return len(deleted), size + sum(line + ROW_BYTES for *_, line in deleted)


def set_pruned(writer: Writer, until: float, seq: int) -> None:
    """Record up to when, and to which sequence number, verdicts were deleted."""
    writer.execute(
        "INSERT INTO pruned (until, seq) VALUES (%s, %s)"
        " ON CONFLICT (one) DO UPDATE SET until = excluded.until, seq = excluded.seq",
        (until, seq),
    )


def _record_deletion(writer: Writer, deleted: list[tuple[str, float, int]], now: float) -> int:
    """Record the latest time of the deleted verdicts, and delete their samples if these have no further use.

    Returns the bytes of the deleted samples.
    """
    if not deleted:
        return 0
    lock(writer, SEQUENCES)  # below this number, no verdict is committed any more
    before = writer.execute(PRUNED_UNTIL).fetchone() or (-math.inf,)
    until = min(now, max(before[0], *(at for _, at, _ in deleted)))  # timestamps of a fast clock may be in the future
    ((last,),) = writer.execute(LAST).fetchall()
    set_pruned(writer, until, int(last))
    keys = sorted({key for key, _, _ in deleted})
    orphans = writer.execute(
        "DELETE FROM samples s WHERE key = ANY(%b::text[])"  # a label does not keep it: no page would show it
        " AND NOT EXISTS (SELECT 1 FROM verdicts v WHERE v.key = s.key)"
        " AND NOT EXISTS (SELECT 1 FROM work w WHERE w.key = s.key) RETURNING key, octet_length(body)",
        (keys,),
    ).fetchall()
    writer.execute("DELETE FROM sample_keys WHERE key = ANY(%b::text[])", ([key for key, _ in orphans],))
    for table in ("feedback", "traits"):
        writer.execute(
            f"DELETE FROM {table} f WHERE key = ANY(%b::text[])"  # noqa: S608 - constants
            " AND NOT EXISTS (SELECT 1 FROM samples s WHERE s.key = f.key)".encode(),
            (keys,),
        )
    return sum(size + ROW_BYTES for _, size in orphans)
