"""Asks the store for something small at regular times, so that readiness follows it."""

from __future__ import annotations

import asyncio

from anyio import CapacityLimiter, to_thread

from ragwatch.daemon.shared import Clock
from ragwatch.errors import StoreError
from ragwatch.ports import Store

ANSWER_SECONDS = 8.0
"""Searches may occupy all connections for some seconds; a store that does not answer for longer is not usable."""


class StoreCheck:
    """A loop that fails while the store does not answer, in a thread of its own: the others may all be waiting.

    Args:
        store: The store.
        clock: Returns seconds since the epoch.
        seconds: After so many without an answer a step fails.
    """

    def __init__(self, store: Store, clock: Clock, seconds: float = ANSWER_SECONDS) -> None:
        self._store, self._clock, self._seconds = store, clock, seconds
        self._thread = CapacityLimiter(1)
        self._asked: asyncio.Task[object] | None = None

    async def step(self) -> bool:
        """Ask, or wait on for the answer to the last question.

        Raises:
            StoreError: The store cannot be read, or has not answered in time.
        """
        if self._asked is None:
            question = to_thread.run_sync(self._store.last_events, self._clock(), limiter=self._thread)
            self._asked = asyncio.create_task(question)
        await asyncio.wait({self._asked}, timeout=self._seconds)
        if not self._asked.done():
            raise StoreError(f"store: does not answer within {self._seconds:g} s; look at its server, disk and load")
        asked, self._asked = self._asked, None
        asked.result()
        return False
