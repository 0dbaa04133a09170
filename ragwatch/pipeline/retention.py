"""Keeping: the store stays within its age and size."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from ragwatch.ports import Retention, Store
from ragwatch.telemetry import Telemetry

KEPT = "keeping"
LEAP = 86400.0  # a clock that moves on by more between two steps is not believed at once


class RetentionLoop:
    """The loop that forgets."""

    def __init__(self, retention: Retention, *, store: Store, telemetry: Telemetry, clock: Callable[[], float]) -> None:
        self._retention = retention
        self._store = store
        self._telemetry = telemetry
        self._clock = clock
        self._last: Mapping[str, Any] | None = None

    async def step(self) -> bool:
        """Prune once. True when something went.

        Not at the first step behind a leap of the clock: were it wrong for a moment, everything would be too old.
        A restart or a reload is no excuse: a host may come up with any time.
        """
        gone = await asyncio.to_thread(self._step)
        if gone:
            self._telemetry.pruned(gone)
        return gone > 0

    def _step(self) -> int:
        now, before = self._clock(), self._last or self._store.recall(KEPT)
        doubted = before is not None and not before["doubted"] and now - float(before["at"]) > LEAP
        self._last = {"at": now, "doubted": doubted}  # on a full disk this is all there is, and doubt must end
        gone = 0 if doubted else self._store.prune(self._retention, now=now)
        self._store.remember(KEPT, self._last)
        return gone
