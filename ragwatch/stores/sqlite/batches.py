"""Batches: the statements that keep draws which are out with a provider. A draw is in one batch at most."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from ragwatch.core.sample import Draw
from ragwatch.stores.sqlite.rows import draw_of

OPEN = "SELECT id, provider_id, prepared, seed FROM batches WHERE judge = ? ORDER BY id"
INSIDE = (
    "SELECT reservation, key, source, route, at, body, probability FROM work JOIN samples USING (key)"
    " WHERE batch = ? ORDER BY seq"
)


def prepare(writer: sqlite3.Connection, judge: str, draws: Mapping[str, int], seed: str, now: float) -> int:
    """Put draws aside. One that is settled, or in another batch, stays where it is: nothing is paid twice."""
    batch = writer.execute("INSERT INTO batches (judge, prepared, seed) VALUES (?, ?, ?)", (judge, now, seed)).lastrowid
    writer.executemany(
        "UPDATE work SET batch = ?, reservation = ? WHERE judge = ? AND key = ? AND batch IS NULL",
        [(batch, reservation, judge, key) for key, reservation in draws.items()],
    )
    return int(batch or 0)


def send(writer: sqlite3.Connection, batch: int, provider_id: str) -> None:
    """The provider has it."""
    writer.execute("UPDATE batches SET provider_id = ? WHERE id = ?", (provider_id, batch))


def close(writer: sqlite3.Connection, batch: int) -> int:
    """Forget a batch. Returns how many of its draws go back to the queue."""
    writer.execute("DELETE FROM batches WHERE id = ?", (batch,))
    return writer.execute("UPDATE work SET batch = NULL, reservation = NULL WHERE batch = ?", (batch,)).rowcount


def inside(row: tuple[Any, ...]) -> tuple[Draw, int]:
    """A row of `INSIDE`: a draw and the money set aside for it."""
    return draw_of(row[1:]), row[0]
