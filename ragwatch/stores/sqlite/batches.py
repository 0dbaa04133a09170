"""SQL statements of message batches. A draw is in at most one batch."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from ragwatch.core.sample import Draw
from ragwatch.stores.rows import DrawCells, draw_of

OPEN_BATCHES = "SELECT id, provider_id, prepared, seed FROM batches WHERE judge = ? ORDER BY id"
BATCHED_DRAWS = (
    "SELECT reservation, key, source, route, at, body, probability FROM work JOIN samples USING (key)"
    " WHERE batch = ? ORDER BY seq"
)


def prepare(writer: sqlite3.Connection, judge: str, draws: Mapping[str, int], seed: str, now: float) -> int:
    """See `Batches.prepare_batch`. Draws that are settled or in another batch are skipped: none is paid for twice."""
    batch = writer.execute("INSERT INTO batches (judge, prepared, seed) VALUES (?, ?, ?)", (judge, now, seed)).lastrowid
    writer.executemany(
        "UPDATE work SET batch = ?, reservation = ? WHERE judge = ? AND key = ? AND batch IS NULL",
        [(batch, reservation, judge, key) for key, reservation in draws.items()],
    )
    return int(batch or 0)


def send(writer: sqlite3.Connection, batch: int, provider_id: str) -> None:
    """See `Batches.send_batch`."""
    writer.execute("UPDATE batches SET provider_id = ? WHERE id = ?", (provider_id, batch))


def close(writer: sqlite3.Connection, batch: int) -> int:
    """See `Batches.close_batch`."""
    writer.execute("DELETE FROM batches WHERE id = ?", (batch,))
    return writer.execute("UPDATE work SET batch = NULL, reservation = NULL WHERE batch = ?", (batch,)).rowcount


def batched_draw(row: tuple[int, *DrawCells]) -> tuple[Draw, int]:
    """Decode a row of `BATCHED_DRAWS`: a draw and its reservation."""
    return draw_of(row[1:]), row[0]
