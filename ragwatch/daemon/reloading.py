"""Limits concurrent reloads: one runs, and one more waits, which will read the newest configuration."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from ragwatch.errors import RagwatchError
from ragwatch.web import BusyError

MAX_RELOADS = 2  # one running and one waiting
RETRY_SECONDS = 5


class ReloadQueue:
    """Accepts reloads by HTTP request and by signal.

    Args:
        reload: Reloads the configuration; concurrent calls must run one after the other.
    """

    def __init__(self, reload: Callable[[], Awaitable[None]]) -> None:
        self._reload = reload
        self._count = 0
        self._signals: set[asyncio.Task[None]] = set()

    async def request(self) -> None:
        """Reload, after a running reload has ended.

        Raises:
            BusyError: A reload is waiting already.
            ConfigError: The new configuration is not valid; the old one stays active.
            StoreError: The store cannot be read; the old configuration stays active.
        """
        if self._count >= MAX_RELOADS:
            raise BusyError(
                "a reload is under way and another one waits, which will read the configuration as it is then; "
                "wait for them, or ask again later",
                RETRY_SECONDS,
            )
        self._count += 1
        await self._run()

    def signal(self) -> None:
        """Reload, unless a reload is waiting, which has not read the configuration yet."""
        if self._count >= MAX_RELOADS:
            return
        self._count += 1
        task = asyncio.get_running_loop().create_task(self._run_for_signal())
        self._signals.add(task)  # the event loop keeps weak references only
        task.add_done_callback(self._signals.discard)

    async def _run_for_signal(self) -> None:
        with suppress(RagwatchError):  # `reload` logs it and sets the gauge
            await self._run()

    async def _run(self) -> None:
        try:
            await self._reload()
        finally:
            self._count -= 1
