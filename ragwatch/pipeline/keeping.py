"""Keeping: the store stays within its age and size."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ragwatch.ports import Retention, Store
from ragwatch.telemetry import Telemetry


class Keeping:
    """The loop that forgets."""

    def __init__(self, retention: Retention, *, store: Store, telemetry: Telemetry, clock: Callable[[], float]) -> None:
        self._retention = retention
        self._store = store
        self._telemetry = telemetry
        self._clock = clock

    async def step(self) -> bool:
        """Prune once. True when something went."""
        gone = await asyncio.to_thread(self._store.prune, self._retention, now=self._clock())
        if gone:
            self._telemetry.pruned(gone)
        return gone > 0
