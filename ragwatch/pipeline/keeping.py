"""Keeping: the store stays within its age and size."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ragwatch.ports import Retention, Store
from ragwatch.telemetry import Telemetry

LEAP = 86400.0  # a clock that moves on by more between two steps is not believed at once


class Keeping:
    """The loop that forgets."""

    def __init__(self, retention: Retention, *, store: Store, telemetry: Telemetry, clock: Callable[[], float]) -> None:
        self._retention = retention
        self._store = store
        self._telemetry = telemetry
        self._clock = clock
        self._last: float | None = None
        self._doubted = False

    async def step(self) -> bool:
        """Prune once. True when something went.

        Not at the first step behind a leap of the clock: were it wrong for a moment, everything would be too old.
        """
        last, self._last = self._last, self._clock()
        self._doubted = not self._doubted and last is not None and self._last - last > LEAP
        if self._doubted:
            return False
        gone = await asyncio.to_thread(self._store.prune, self._retention, now=self._last)
        if gone:
            self._telemetry.pruned(gone)
        return gone > 0
