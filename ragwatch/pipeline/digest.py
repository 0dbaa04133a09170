"""Digest: what the store holds becomes one Snapshot on the Board. Reads only what came since the last time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from ragwatch.board import Board
from ragwatch.core.books import violations
from ragwatch.core.snapshot import Lag, Snapshot
from ragwatch.core.tally import Tallies
from ragwatch.pipeline.windows import Windows
from ragwatch.ports import Judge, Store
from ragwatch.telemetry import Telemetry

ROWS = 5000


class Digest:
    """The loop that draws the Snapshot.

    Args:
        windows: Made for the judges in force; a reload brings a new Digest.
        lags: How far each source is behind, by name.
        probabilities: Inclusion probability in force, by route.
        problems: What keeps ragwatch from being ready at present.
        clock: Seconds since the epoch.
    """

    def __init__(
        self,
        windows: Windows,
        *,
        store: Store,
        board: Board,
        telemetry: Telemetry,
        lags: Callable[[], Mapping[str, Lag]],
        judges: Sequence[Judge],
        probabilities: Callable[[], Mapping[str, float]],
        problems: Callable[[], tuple[str, ...]],
        clock: Callable[[], float],
    ) -> None:
        self._windows = windows
        self._store = store
        self._board = board
        self._telemetry = telemetry
        self._lags = lags
        self._judges = {judge.name: (judge.kind, judge.version) for judge in judges}
        self._probabilities = probabilities
        self._problems = problems
        self._clock = clock
        self._seen = 0

    async def step(self) -> bool:
        """Hang a new Snapshot. True when verdicts had come in since the last one."""
        return await asyncio.to_thread(self._step)

    def _step(self) -> bool:
        now = self._clock()
        news = self._catch_up(now)
        self._windows.forget(now)
        estimates, coverage = self._windows.summary(now)
        tallies, pending = self._store.books()
        snapshot = Snapshot(
            at=now,
            estimates=estimates,
            coverage=coverage,
            last_sample=dict(self._windows.last_sample),
            exemplars=dict(self._windows.exemplars),
            tallies=tallies,
            pending=pending,
            probabilities=self._probabilities(),
            lags=self._lags(),
            judges=self._judges,
            problems=(*self._problems(), *self._unbalanced(tallies, pending)),
        )
        self._board.hang(snapshot)
        return news

    def _unbalanced(self, tallies: Tallies, pending: Mapping[str, int]) -> tuple[str, ...]:
        found = violations(tallies, pending)
        for law, figures in found.items():
            self._telemetry.unbalanced(law, figures)
        return tuple(f"our own counts do not balance: {figures}" for figures in found.values())

    def _catch_up(self, now: float) -> bool:
        news = False
        while rows := self._store.window(self._seen, now - self._windows.longest, ROWS):
            self._windows.add(rows)
            self._seen = rows[-1].seq
            news = True
        return news
