"""Sweep: what retention takes, and in which order. Failures outlive successes: they are what people come back for."""

from __future__ import annotations

import sqlite3

from ragwatch.ports import Retention

DAY = 86400.0
A_FEW = 500


def by_age(writer: sqlite3.Connection, retention: Retention, now: float) -> int:
    """Delete a few of the verdicts past their age, runs and events, and samples that nothing needs any more."""
    gone: list[tuple[str]] = []
    for failing, days in ((0, retention.days), (1, retention.failing_days)):
        gone += writer.execute(
            "DELETE FROM verdicts WHERE seq IN"
            " (SELECT seq FROM verdicts WHERE failing = ? AND at < ? ORDER BY at LIMIT ?) RETURNING key",
            (failing, now - days * DAY, A_FEW),
        ).fetchall()
        writer.execute("DELETE FROM runs WHERE failing = ? AND at < ?", (failing, now - days * DAY))
    writer.execute("DELETE FROM events WHERE at < ?", (now - max(retention.days, retention.failing_days) * DAY,))
    _drop_orphans(writer, gone)
    return len(gone)


A_FEW_RUNS = 10


def oldest_runs(writer: sqlite3.Connection) -> int:
    """Delete a few of the oldest runs, successes first; the newest of each name stays, for it is what is shown."""
    return writer.execute(
        "DELETE FROM runs WHERE id IN (SELECT id FROM runs"
        " WHERE id NOT IN (SELECT MAX(id) FROM runs GROUP BY kind, name) ORDER BY failing, at LIMIT ?)",
        (A_FEW_RUNS,),
    ).rowcount


def oldest(writer: sqlite3.Connection) -> int:
    """Delete a few of the oldest verdicts, successes as long as there are any."""
    gone = writer.execute(
        "DELETE FROM verdicts WHERE seq IN (SELECT seq FROM verdicts ORDER BY failing, at LIMIT ?) RETURNING key",
        (A_FEW,),
    ).fetchall()
    _drop_orphans(writer, gone)
    return len(gone)


def _drop_orphans(writer: sqlite3.Connection, keys: list[tuple[str]]) -> None:
    """Delete the samples among these that no verdict, no waiting judge and no label needs."""
    writer.executemany(
        "DELETE FROM samples WHERE key = ?1"
        " AND NOT EXISTS (SELECT 1 FROM verdicts v WHERE v.key = ?1)"
        " AND NOT EXISTS (SELECT 1 FROM work w WHERE w.key = ?1)"
        " AND NOT EXISTS (SELECT 1 FROM labels l WHERE l.key = ?1)",
        keys,
    )
