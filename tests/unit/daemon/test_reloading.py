"""Concurrent reloads: one runs, one waits, more are refused."""

from __future__ import annotations

import asyncio

import pytest
from support.patience import DEADLINE

from ragwatch.daemon.loops import ReloadQueue
from ragwatch.errors import ConfigError
from ragwatch.web import BusyError


class Slow:
    """A reload that takes until it is let go; two at a time take turns."""

    def __init__(self, error: Exception | None = None) -> None:
        self.begun = 0
        self.go = asyncio.Event()
        self._lock = asyncio.Lock()
        self._error = error

    async def __call__(self) -> None:
        """Reload."""
        async with self._lock:
            self.begun += 1
            await self.go.wait()
            if self._error is not None:
                raise self._error


async def test_one_under_way_one_waiting() -> None:
    """The third is refused with a time to retry; when both have ended, two more are accepted."""
    slow = Slow()
    reloading = ReloadQueue(slow)
    for _ in range(2):
        asked = [asyncio.create_task(reloading.request()) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(BusyError, match="another one waits") as refused:
            await reloading.request()
        assert refused.value.seconds > 0
        slow.go.set()
        await asyncio.wait_for(asyncio.gather(*asked), DEADLINE)
        slow.go.clear()
    assert slow.begun == 4


async def test_signals_are_one_reload() -> None:
    """Signals beyond the one that waits are the same reload, and a bad configuration breaks nothing."""
    slow = Slow(ConfigError("routes: wrong"))
    reloading = ReloadQueue(slow)
    for _ in range(50):
        reloading.signal()
    await asyncio.sleep(0)
    with pytest.raises(BusyError):
        await reloading.request()
    slow.go.set()
    await asyncio.sleep(0.1)
    assert slow.begun == 2
    with pytest.raises(ConfigError, match="routes: wrong"):
        await reloading.request()
    assert slow.begun == 3
