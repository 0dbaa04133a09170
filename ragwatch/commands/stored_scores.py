"""Reads stored scores, and what the loops have saved, on a connection that reads only."""

from __future__ import annotations

from typing import Protocol

from ragwatch.ports import SavedState, ScoreRow
from ragwatch.stores.rows import SCORE_COLUMNS, score_row, unpack
from ragwatch.stores.sqlite.reader import ReadConnection
from ragwatch.stores.sqlite.retention import LIVE

_WINDOW = (
    f"SELECT {SCORE_COLUMNS} FROM verdicts"  # noqa: S608 - constants only
    f" WHERE seq > ? AND at >= ? AND {LIVE} ORDER BY seq LIMIT ?"
)


class ScoreReader(Protocol):
    """The part of `ports.Store` that reads scores and saved states."""

    def window(self, after: int, since: float, limit: int) -> list[ScoreRow]:
        """See `ports.Store.window`."""
        ...

    def recall(self, name: str) -> SavedState | None:
        """See `ports.Store.recall`."""
        ...


class ScoreConnection:
    """Implements `ScoreReader` on a connection that reads only."""

    def __init__(self, connection: ReadConnection) -> None:
        self._connection = connection

    def window(self, after: int, since: float, limit: int) -> list[ScoreRow]:
        """See `ports.Store.window`."""
        return [score_row(row) for row in self._connection.rows(_WINDOW, (after, since, limit))]

    def recall(self, name: str) -> SavedState | None:
        """See `ports.Store.recall`."""
        rows = self._connection.rows("SELECT body FROM states WHERE name = ?", (name,))
        return unpack(rows[0][0]) if rows else None
