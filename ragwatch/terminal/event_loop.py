"""Runs a coroutine in an event loop so that a signal ends it cleanly, whenever the signal arrives.

`asyncio.run` has no safe place for an exception while it sets up and closes its loop: KeyboardInterrupt raised there
leaves coroutines that were never awaited, sockets that are not closed, and a traceback in the log.
"""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import Generic, TypeVar

from ragwatch.process import TERMINATION

Result = TypeVar("Result")
Handler = Callable[[int, FrameType | None], object]

GRACE_SECONDS = 1.0
"""A second signal after this time ends the process at once: the coroutine does not end by itself."""

_SHELL_OFFSET = 128  # shells report signal n as exit code 128 + n


def run_async(main: Coroutine[object, object, Result]) -> Result:
    """Run a coroutine to its end in a new event loop, and return its result.

    A first SIGINT or SIGTERM cancels the coroutine; once the loop is closed, the handler that was in force is called,
    which raises KeyboardInterrupt or SystemExit. Nothing changes for signals whose handler is not a Python
    function, nor for those for which the coroutine installs handlers of its own, nor for a SIGTERM that waits for it.
    """
    try:
        return _Run(main).result()
    finally:
        main.close()  # it was never awaited if a handler raised before there was a loop


class _Run(Generic[Result]):
    """One run of a coroutine, with the signals that arrived meanwhile."""

    def __init__(self, main: Coroutine[object, object, Result]) -> None:
        self._main = main
        self._handlers: dict[int, Handler] = {}
        self._task: asyncio.Task[object] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._signal: int | None = None
        self._received_at = 0.0

    def result(self) -> Result:
        """Run the coroutine; see `run_async`."""
        for ending in (signal.SIGINT, signal.SIGTERM):
            if callable(handler := signal.getsignal(ending)) and handler is not TERMINATION:
                self._handlers[ending] = handler
        try:
            for number in self._handlers:
                signal.signal(number, self._receive)
            return asyncio.run(self._guarded())
        except asyncio.CancelledError:
            if self._signal is None:
                raise
            raise KeyboardInterrupt from None  # where the handler below does not raise
        finally:
            for number, handler in self._handlers.items():
                signal.signal(number, handler)
            if self._signal is not None:
                self._handlers[self._signal](self._signal, None)

    async def _guarded(self) -> Result:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        if self._signal is not None:
            self._main.close()
            raise asyncio.CancelledError
        try:
            return await self._main
        finally:
            self._task = None

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        if self._signal is None:
            self._signal, self._received_at = number, time.monotonic()
            if self._task is not None and self._loop is not None:
                # Not here: a future that is cancelled while the loop sets its result would fail with InvalidStateError.
                self._loop.call_soon_threadsafe(self._cancel)
        elif time.monotonic() - self._received_at > GRACE_SECONDS:
            os._exit(_SHELL_OFFSET + number)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
