"""SQL statements of the ledger of judge costs. A reservation that is never settled counts in full."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from ragwatch.core.budget import Cost, SpendingCap, fits

DAY = 86400.0
MAX_AGE_SECONDS = 8 * DAY  # one day more than the longest useful cap
COMPACT_AFTER_SECONDS = 600.0
MINUTE = 60.0

SPENT = "SELECT TOTAL(usd), COALESCE(SUM(tokens), 0) FROM spending WHERE judge = ? AND at > ?"


def reserve(writer: sqlite3.Connection, judge: str, worst: Cost, caps: Sequence[SpendingCap], now: float) -> int | None:
    """See `Accounts.reserve`."""
    for cap in caps:
        spent = writer.execute(SPENT, (judge, now - cap.seconds)).fetchone()
        if not fits(cap, Cost(*spent), worst):
            return None
    row = (judge, now, worst.usd, worst.tokens)
    return writer.execute(
        "INSERT INTO spending (judge, at, usd, tokens, settled) VALUES (?, ?, ?, ?, 0)", row
    ).lastrowid


def pay(writer: sqlite3.Connection, reservation: int, actual: Cost) -> None:
    """See `Accounts.pay`. Only the first call for a reservation counts, so that a repeated step changes nothing."""
    writer.execute(
        "UPDATE spending SET usd = ?, tokens = ?, settled = 1 WHERE id = ? AND NOT settled",
        (actual.usd, actual.tokens, reservation),
    )


def compact(writer: sqlite3.Connection, now: float) -> None:
    """Delete rows older than any cap, and merge settled rows by judge and minute, so that sums stay fast.

    A merged row has the time of its last call, so that no cost leaves a sliding window too early.
    """
    writer.execute("DELETE FROM spending WHERE at < ?", (now - MAX_AGE_SECONDS,))
    settled = "SELECT {} FROM spending WHERE settled AND at < ?1 GROUP BY judge, CAST(at / ?2 AS INTEGER)"
    parameters = (now - COMPACT_AFTER_SECONDS, MINUTE)
    sums = settled.format("MAX(id) AS last, MAX(at) AS at, SUM(usd) AS usd, SUM(tokens) AS tokens, COUNT(*) AS calls")
    writer.execute(
        "UPDATE spending SET at = minute.at, usd = minute.usd, tokens = minute.tokens"  # noqa: S608 - constants only
        f" FROM ({sums}) AS minute WHERE spending.id = minute.last AND minute.calls > 1",
        parameters,
    )
    writer.execute(
        f"DELETE FROM spending WHERE settled AND at < ?1 AND id NOT IN ({settled.format('MAX(id)')})",  # noqa: S608 - the same
        parameters,
    )
