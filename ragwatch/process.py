"""Handling of SIGINT (Ctrl-C) and SIGTERM in each phase of the process. An interrupt never shows a traceback.

While modules are imported and options are parsed, SIGINT ends the process immediately: an exception raised there may
be swallowed by an import, or printed by the caller. While a command runs, SIGINT raises KeyboardInterrupt, so that
files are closed, progress bars removed and temporary directories deleted. After the command has finished, SIGINT is
ignored. If the parent process started us with SIGINT ignored (`nohup`, `&`), it stays ignored.

SIGTERM ends a command as it ends any process, except one that runs until it receives one: there the signal waits
until the start is at a place where the command can end by itself, so that nothing is left half written.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio  # which takes long to import: this module is the first

INTERRUPTED = 130  # 128 + SIGINT, the exit code that shells report
EXIT_CODE_OF_SECOND_SIGNAL = 1


class Termination:
    """Handler of SIGTERM for a command that runs until it receives one."""

    def __init__(self) -> None:
        self.requested = False  # whether the signal came before there was somebody to tell
        self._tell: Callable[[], None] | None = None

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        """Receive the signal. A second one during the start ends the process immediately."""
        if self._tell is not None:
            self._tell()
        elif self.requested:
            os._exit(EXIT_CODE_OF_SECOND_SIGNAL)
        else:
            self.requested = True

    def await_start(self) -> None:
        """Make SIGTERM wait for `tell`, from now on."""
        signal.signal(signal.SIGTERM, self)

    def tell(self, function: Callable[[], None]) -> None:
        """Call a function on SIGTERM from now on, and now if the signal has come already."""
        self._tell = function
        self.await_start()
        if self.requested:
            function()


def in_loop(loop: asyncio.AbstractEventLoop, action: Callable[[], None]) -> Callable[[], None]:
    """Return a function that runs an action in an event loop, and does nothing once the loop is closed."""

    def run() -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(action)

    return run


TERMINATION = Termination()
"""That of this process."""


def _exit(_number: int, _frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)


def _exit_on_unraisable(unraisable: sys.UnraisableHookArgs) -> None:
    """Exit on a KeyboardInterrupt that Python could not raise, for example in a finalizer."""
    if isinstance(unraisable.exc_value, KeyboardInterrupt):
        os._exit(INTERRUPTED)
    sys.__unraisablehook__(unraisable)


def exit_on_interrupt() -> None:
    """Make SIGINT end the process immediately with exit code 130, from now on."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _exit)
        sys.unraisablehook = _exit_on_unraisable


@contextmanager
def interruptible() -> Iterator[None]:
    """Make SIGINT raise KeyboardInterrupt within the context, as Python and asyncio expect."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is not _exit:  # SIGINT is ignored, or the process belongs to another program
        yield
        return
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        yield
    finally:
        signal.signal(signal.SIGINT, _exit)


def ignore() -> None:
    """Ignore both signals from now on: the exit code is decided, and Python is shutting down."""
    for number, handler in ((signal.SIGINT, _exit), (signal.SIGTERM, TERMINATION)):
        if signal.getsignal(number) is handler:
            signal.signal(number, signal.SIG_IGN)


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Pause automatic garbage collection within the context; it goes on afterwards if it was on before."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def skip_garbage_at_exit() -> None:
    """Exclude all objects from the collections at interpreter shutdown: the operating system frees the memory."""
    gc.freeze()
