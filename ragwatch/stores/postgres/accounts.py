"""SQL statements of the ledger of judge costs, shared by all workers. A reservation that is never settled counts."""

from __future__ import annotations

from collections.abc import Sequence

from ragwatch.core.budget import Cost, SpendingCap, fits
from ragwatch.stores.limits import COMPACT_AFTER_SECONDS, MAX_SPENDING_AGE_SECONDS, MINUTE
from ragwatch.stores.postgres.connections import Writer
from ragwatch.stores.postgres.locks import BUDGET, lock

SPENT = "SELECT COALESCE(SUM(usd), 0), COALESCE(SUM(tokens), 0)::bigint FROM spending WHERE judge = %s AND at > %s"


def reserve(writer: Writer, judge: str, worst: Cost, caps: Sequence[SpendingCap], now: float) -> int | None:
    """See `Accounts.reserve`. The lock of a judge's budget is held until the reservation is committed."""
    if caps:
        lock(writer, BUDGET, judge)
    for cap in caps:
        ((usd, tokens),) = writer.execute(SPENT, (judge, now - cap.seconds)).fetchall()
        if not fits(cap, Cost(usd, tokens), worst):
            return None
    ((number,),) = writer.execute(
        "INSERT INTO spending (judge, at, usd, tokens, settled) VALUES (%s, %s, %s, %s, false) RETURNING id",
        (judge, now, float(worst.usd), worst.tokens),
    ).fetchall()
    return int(number)


def pay(writer: Writer, reservation: int, actual: Cost) -> None:
    """See `Accounts.pay`. Only the first call for a reservation counts, so that a repeated step changes nothing."""
    writer.execute(
        "UPDATE spending SET usd = %s, tokens = %s, settled = true WHERE id = %s AND NOT settled",
        (float(actual.usd), actual.tokens, reservation),
    )


def compact(writer: Writer, now: float) -> None:
    """Delete rows older than any cap, and merge settled rows by judge and minute, so that sums stay fast.

    A merged row has the time of its last call, so that no cost leaves a sliding window too early. One statement deletes
    and inserts, so that no sum misses a cost.
    """
    writer.execute("DELETE FROM spending WHERE at < %s", (now - MAX_SPENDING_AGE_SECONDS,))
    writer.execute(
        "WITH minutes AS ("
        " SELECT MAX(id) AS last, MAX(at) AS at, SUM(usd) AS usd, SUM(tokens)::bigint AS tokens, array_agg(id) AS ids"
        " FROM spending WHERE settled AND at < %s GROUP BY judge, floor(at / %s) HAVING COUNT(*) > 1"
        "), merged AS ("
        " UPDATE spending s SET at = m.at, usd = m.usd, tokens = m.tokens FROM minutes m WHERE s.id = m.last"
        ") DELETE FROM spending s USING minutes m WHERE s.id = ANY(m.ids) AND s.id <> m.last",
        (now - COMPACT_AFTER_SECONDS, MINUTE),
    )
