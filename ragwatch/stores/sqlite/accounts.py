"""Accounts: the statements that keep what calls cost. What is not settled counts in full; nothing is under-counted."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from ragwatch.core.budget import Cost, SpendingCap, fits

DAY = 86400.0
KEPT_SECONDS = 8 * DAY  # a day more than the longest cap anybody would set
FOLDED_AFTER = 600.0
MINUTE = 60.0

SPENT = "SELECT TOTAL(usd), COALESCE(SUM(tokens), 0) FROM spending WHERE judge = ? AND at > ?"


def reserve(writer: sqlite3.Connection, judge: str, worst: Cost, caps: Sequence[SpendingCap], now: float) -> int | None:
    """Set money aside; None, and nothing is changed, when a cap would be passed."""
    for cap in caps:
        row = writer.execute(SPENT, (judge, now - cap.seconds)).fetchone()
        if not fits(cap, Cost(*row), worst):
            return None
    row = (judge, now, worst.usd, worst.tokens)
    return writer.execute(
        "INSERT INTO spending (judge, at, usd, tokens, settled) VALUES (?, ?, ?, ?, 0)", row
    ).lastrowid


def pay(writer: sqlite3.Connection, reservation: int, actual: Cost) -> None:
    """Replace what was set aside by what was paid. The first word counts: a step that is repeated changes nothing."""
    writer.execute(
        "UPDATE spending SET usd = ?, tokens = ?, settled = 1 WHERE id = ? AND NOT settled",
        (actual.usd, actual.tokens, reservation),
    )


def forget(writer: sqlite3.Connection, now: float) -> None:
    """Delete what no cap looks at any more, and add settled calls up by the minute, so that sums stay quick for ever.

    A minute stands at its last call: none of its money leaves a sliding span too early.
    """
    writer.execute("DELETE FROM spending WHERE at < ?", (now - KEPT_SECONDS,))
    settled = "SELECT {} FROM spending WHERE settled AND at < ?1 GROUP BY judge, CAST(at / ?2 AS INTEGER)"
    old = (now - FOLDED_AFTER, MINUTE)
    sums = settled.format("MAX(id) AS last, MAX(at) AS at, SUM(usd) AS usd, SUM(tokens) AS tokens, COUNT(*) AS calls")
    writer.execute(
        "UPDATE spending SET at = minute.at, usd = minute.usd, tokens = minute.tokens"  # noqa: S608 - our own words
        f" FROM ({sums}) AS minute WHERE spending.id = minute.last AND minute.calls > 1",
        old,
    )
    writer.execute(
        f"DELETE FROM spending WHERE settled AND at < ?1 AND id NOT IN ({settled.format('MAX(id)')})",  # noqa: S608 - the same
        old,
    )
