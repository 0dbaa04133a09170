"""Reloading: one reload under way, one that waits for it, and no more: the one that waits reads what is newest."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from ragwatch.errors import ConfigError
from ragwatch.web import BusyError

MOST = 2  # under way and waiting
RETRY_SECONDS = 5


class ReloadQueue:
    """Those who ask for a reload, by a request or by a signal.

    Args:
        reload: Reads the configuration again; two at once take turns.
    """

    def __init__(self, reload: Callable[[], Awaitable[None]]) -> None:
        self._reload = reload
        self._asked = 0
        self._signals: set[asyncio.Task[None]] = set()

    async def request(self) -> None:
        """Reload, after the one that is under way.

        Raises:
            BusyError: One waits already.
            ConfigError: Why the old configuration stays.
        """
        if self._asked >= MOST:
            raise BusyError(
                "a reload is under way and another one waits, which will read the configuration as it is then; "
                "wait for them, or ask again later",
                RETRY_SECONDS,
            )
        self._asked += 1
        await self._turn()

    def signal(self) -> None:
        """Reload, unless one waits already: it has not read the configuration yet."""
        if self._asked >= MOST:
            return
        self._asked += 1
        task = asyncio.get_running_loop().create_task(self._turn_of_signal())
        self._signals.add(task)  # kept, or the loop would let it be collected
        task.add_done_callback(self._signals.discard)

    async def _turn_of_signal(self) -> None:
        with suppress(ConfigError):  # told by telemetry and the reload series
            await self._turn()

    async def _turn(self) -> None:
        try:
            await self._reload()
        finally:
            self._asked -= 1
