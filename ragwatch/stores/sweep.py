"""Sweep: what retention takes, and in which order. Failures outlive successes: they are what people come back for."""

from __future__ import annotations

import sqlite3

from ragwatch.ports import Retention

DAY = 86400.0
A_FEW = 500


def by_age(writer: sqlite3.Connection, retention: Retention, now: float) -> int:
    """Delete verdicts past their age, events past the longest, and samples that nothing needs any more."""
    gone = 0
    for failing, days in ((0, retention.days), (1, retention.failing_days)):
        limits = (failing, now - days * DAY)
        gone += writer.execute("DELETE FROM verdicts WHERE failing = ? AND at < ?", limits).rowcount
    writer.execute("DELETE FROM events WHERE at < ?", (now - max(retention.days, retention.failing_days) * DAY,))
    if gone:
        _drop_orphans(writer)
    return gone


def oldest(writer: sqlite3.Connection) -> int:
    """Delete a few of the oldest verdicts, successes as long as there are any."""
    gone = writer.execute(
        "DELETE FROM verdicts WHERE seq IN (SELECT seq FROM verdicts ORDER BY failing, at LIMIT ?)", (A_FEW,)
    ).rowcount
    if gone:
        _drop_orphans(writer)
    return gone


def size(writer: sqlite3.Connection) -> int:
    """Bytes of the database that hold something."""
    pages, free, page = (
        int(writer.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * page


def _drop_orphans(writer: sqlite3.Connection) -> None:
    writer.execute(
        "DELETE FROM samples WHERE key NOT IN (SELECT key FROM verdicts) AND key NOT IN (SELECT key FROM work)"
    )
