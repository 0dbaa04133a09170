"""SQL statements of retention. Verdicts with a fault are kept longer than others, because people come back for them.

The verdicts that remain from a time of which some were deleted are a biased sample: see `UNBIASED`.
"""

from __future__ import annotations

import math

from ragwatch.ports import Retention
from ragwatch.stores.rejudging import MARK
from ragwatch.stores.sqlite import indexing
from ragwatch.stores.sqlite.sqlite_writer import SqliteWriter

DAY = 86400.0
MAX_ROWS_PER_STEP = 500
MAX_RUNS_PER_STEP = 10
# This state is stored as plain JSON, so that SQL can read it.
PRUNED_UNTIL = "SELECT json_extract(body, '$.until') FROM states WHERE name = 'retention'"
PRUNED_SEQ = "SELECT json_extract(body, '$.seq') FROM states WHERE name = 'retention'"
UNBIASED = f"(at > COALESCE(({PRUNED_UNTIL}), -9e999) OR seq > ({PRUNED_SEQ}))"  # newer, or settled since


def rejudged(table: str = "") -> str:
    r"""Return the condition that a verdict is of a reading again (see `stores.rejudging`), and was not assigned.

    >>> rejudged("o.")
    'COALESCE(o.scores GLOB \'{"rejudged":true*\', FALSE)'
    """
    return f"COALESCE({table}scores GLOB '{MARK}*', FALSE)"


LIVE = f"{UNBIASED} AND NOT {rejudged()}"  # of draws that were assigned to their judge


def delete_expired(writer: SqliteWriter, retention: Retention, now: float) -> int:
    """Delete a limited number of expired verdicts, expired runs and events, and samples without further use.

    Returns the number of deleted verdicts.
    """
    deleted: list[tuple[str, float]] = []
    for failing, days in ((0, retention.days), (1, retention.failing_days)):
        deleted += writer.execute(
            "DELETE FROM verdicts WHERE seq IN"
            " (SELECT seq FROM verdicts WHERE failing = ? AND at < ? ORDER BY at LIMIT ?) RETURNING key, at",
            (failing, now - days * DAY, MAX_ROWS_PER_STEP),
        ).fetchall()
        writer.execute("DELETE FROM runs WHERE failing = ? AND at < ?", (failing, now - days * DAY))
    writer.execute("DELETE FROM events WHERE at < ?", (now - max(retention.days, retention.failing_days) * DAY,))
    _record_deletion(writer, deleted, now)
    return len(deleted)


def delete_oldest_runs(writer: SqliteWriter) -> int:
    """Delete a limited number of the oldest runs, successful ones first; the newest of each name stays for display."""
    return writer.execute(
        "DELETE FROM runs WHERE id IN (SELECT id FROM runs"
        " WHERE id NOT IN (SELECT MAX(id) FROM runs GROUP BY kind, name) ORDER BY failing, at LIMIT ?)",
        (MAX_RUNS_PER_STEP,),
    ).rowcount


def delete_oldest(writer: SqliteWriter, now: float) -> int:
    """Delete a limited number of the oldest verdicts, those without a fault first."""
    deleted = writer.execute(
        "DELETE FROM verdicts WHERE seq IN (SELECT seq FROM verdicts ORDER BY failing, at LIMIT ?) RETURNING key, at",
        (MAX_ROWS_PER_STEP,),
    ).fetchall()
    _record_deletion(writer, deleted, now)
    return len(deleted)


def _record_deletion(writer: SqliteWriter, deleted: list[tuple[str, float]], now: float) -> None:
    """Record the latest time of the deleted verdicts, and delete their samples if these have no further use."""
    if not deleted:
        return
    before = writer.execute(PRUNED_UNTIL).fetchone() or (-math.inf,)
    until = min(now, max(*before, *(at for _, at in deleted)))  # timestamps of a fast clock may lie in the future
    until = math.ceil(until * 1000) / 1000  # JSON keeps 15 digits: rounded down, it would exclude the last verdict
    seq = writer.execute("SELECT seq FROM sqlite_sequence WHERE name = 'verdicts'").fetchone()[0]
    writer.execute(
        "INSERT OR REPLACE INTO states (name, body) VALUES ('retention', json_object('until', ?, 'seq', ?))",
        (until, seq),
    )
    keys = [(key,) for key, _ in deleted]
    for key, body in _delete_orphans(writer, keys):
        indexing.remove(writer, key, body)
    for table in ("feedback", "traits"):
        writer.executemany(
            f"DELETE FROM {table} WHERE key = ?1 AND NOT EXISTS (SELECT 1 FROM samples s WHERE s.key = ?1)",  # noqa: S608 - constants
            keys,
        )


def _delete_orphans(writer: SqliteWriter, keys: list[tuple[str]]) -> list[tuple[str, bytes]]:
    """Delete the samples among these keys that have neither a verdict nor a pending judge. Returns them.

    A label does not keep its sample: without a verdict no page shows the text. The label itself stays.
    """
    orphans = (
        "DELETE FROM samples WHERE key = ?1"
        " AND NOT EXISTS (SELECT 1 FROM verdicts v WHERE v.key = ?1)"
        " AND NOT EXISTS (SELECT 1 FROM work w WHERE w.key = ?1) RETURNING key, body"
    )
    return [row for one in keys for row in writer.execute(orphans, one).fetchall()]
