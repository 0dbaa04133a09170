"""Sweep: what retention takes, and in which order. Failures outlive successes: they are what people come back for.

So what is left of a time from which something was taken is no sample of it any more: see `UNPICKED`.
"""

from __future__ import annotations

import math
import sqlite3

from ragwatch.ports import Retention

DAY = 86400.0
A_FEW = 500
A_FEW_RUNS = 10
# What was picked is a state that is JSON as it stands, so that statements can look at it.
UNTIL = "SELECT json_extract(body, '$.until') FROM states WHERE name = 'retention'"
SINCE = "SELECT json_extract(body, '$.seq') FROM states WHERE name = 'retention'"
UNPICKED = f"(at > COALESCE(({UNTIL}), -9e999) OR seq > ({SINCE}))"  # as it was settled: younger, or settled since


def by_age(writer: sqlite3.Connection, retention: Retention, now: float) -> int:
    """Delete a few of the verdicts past their age, runs and events, and samples that nothing needs any more."""
    gone: list[tuple[str, float]] = []
    for failing, days in ((0, retention.days), (1, retention.failing_days)):
        gone += writer.execute(
            "DELETE FROM verdicts WHERE seq IN"
            " (SELECT seq FROM verdicts WHERE failing = ? AND at < ? ORDER BY at LIMIT ?) RETURNING key, at",
            (failing, now - days * DAY, A_FEW),
        ).fetchall()
        writer.execute("DELETE FROM runs WHERE failing = ? AND at < ?", (failing, now - days * DAY))
    writer.execute("DELETE FROM events WHERE at < ?", (now - max(retention.days, retention.failing_days) * DAY,))
    _take(writer, gone, now)
    return len(gone)


def oldest_runs(writer: sqlite3.Connection) -> int:
    """Delete a few of the oldest runs, successes first; the newest of each name stays, for it is what is shown."""
    return writer.execute(
        "DELETE FROM runs WHERE id IN (SELECT id FROM runs"
        " WHERE id NOT IN (SELECT MAX(id) FROM runs GROUP BY kind, name) ORDER BY failing, at LIMIT ?)",
        (A_FEW_RUNS,),
    ).rowcount


def oldest(writer: sqlite3.Connection, now: float) -> int:
    """Delete a few of the oldest verdicts, successes as long as there are any."""
    gone = writer.execute(
        "DELETE FROM verdicts WHERE seq IN (SELECT seq FROM verdicts ORDER BY failing, at LIMIT ?) RETURNING key, at",
        (A_FEW,),
    ).fetchall()
    _take(writer, gone, now)
    return len(gone)


def _take(writer: sqlite3.Connection, gone: list[tuple[str, float]], now: float) -> None:
    """Follow verdicts that are gone: note up to when there was picked, and let go of samples that nothing needs."""
    if not gone:
        return
    before = writer.execute(UNTIL).fetchone() or (-math.inf,)
    until = min(now, max(*before, *(at for _, at in gone)))  # a clock that was ahead told times that are yet to come
    until = math.ceil(until * 1000) / 1000  # JSON keeps 15 digits: what is cut off would let the last one taken back in
    seq = writer.execute("SELECT seq FROM sqlite_sequence WHERE name = 'verdicts'").fetchone()[0]
    writer.execute(
        "INSERT OR REPLACE INTO states (name, body) VALUES ('retention', json_object('until', ?, 'seq', ?))",
        (until, seq),
    )
    _drop_orphans(writer, [(key,) for key, _ in gone])


def _drop_orphans(writer: sqlite3.Connection, keys: list[tuple[str]]) -> None:
    """Delete the samples among these that no verdict and no waiting judge needs.

    That a person gave their word on one keeps nothing: the word stays, and without a verdict nobody can read the text.
    """
    writer.executemany(
        "DELETE FROM samples WHERE key = ?1"
        " AND NOT EXISTS (SELECT 1 FROM verdicts v WHERE v.key = ?1)"
        " AND NOT EXISTS (SELECT 1 FROM work w WHERE w.key = ?1)",
        keys,
    )
