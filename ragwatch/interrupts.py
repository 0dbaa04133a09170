"""Handling of SIGINT (Ctrl-C) in each phase of the process. An interrupt never shows a traceback.

While modules are imported and options are parsed, SIGINT ends the process immediately: an exception raised there may
be swallowed by an import, or printed by the caller. While a command runs, SIGINT raises KeyboardInterrupt, so that
files are closed, progress bars removed and temporary directories deleted. After the command has finished, SIGINT is
ignored. If the parent process started us with SIGINT ignored (`nohup`, `&`), it stays ignored.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130  # 128 + SIGINT, the exit code that shells report


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
    """Ignore SIGINT from now on: the exit code is decided, and Python is shutting down."""
    if signal.getsignal(signal.SIGINT) is _exit:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
