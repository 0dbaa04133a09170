"""SQL statements of message batches. A draw is in at most one batch."""

from __future__ import annotations

from collections.abc import Mapping

from ragwatch.stores.postgres.connections import Writer

OPEN_BATCHES = "SELECT id, provider_id, prepared, seed FROM batches WHERE judge = %s ORDER BY id"
BATCHED_DRAWS = (
    "SELECT reservation, key, source, route, at, body, probability FROM work JOIN samples USING (key)"
    " WHERE batch = %s ORDER BY seq"
)


def prepare(writer: Writer, judge: str, draws: Mapping[str, int], seed: str, now: float) -> int:
    """See `Batches.prepare_batch`. Draws that are settled or in another batch are skipped: none is paid for twice."""
    ((batch,),) = writer.execute(
        "INSERT INTO batches (judge, prepared, seed) VALUES (%s, %s, %s) RETURNING id", (judge, now, seed)
    ).fetchall()
    writer.execute(
        "UPDATE work SET batch = %s, reservation = d.reservation, holder = NULL, leased_until = '-Infinity'"
        " FROM unnest(%b::text[], %b::bigint[]) AS d(key, reservation)"
        " WHERE work.judge = %s AND work.key = d.key AND work.batch IS NULL",
        (batch, list(draws), list(draws.values()), judge),
    )
    return int(batch)


def send(writer: Writer, batch: int, provider_id: str) -> None:
    """See `Batches.send_batch`."""
    writer.execute("UPDATE batches SET provider_id = %s WHERE id = %s", (provider_id, batch))


def close(writer: Writer, batch: int) -> int:
    """See `Batches.close_batch`."""
    writer.execute("DELETE FROM batches WHERE id = %s", (batch,))
    return writer.execute("UPDATE work SET batch = NULL, reservation = NULL WHERE batch = %s", (batch,)).rowcount
