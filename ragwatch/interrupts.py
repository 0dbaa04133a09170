"""Interrupts: what Ctrl-C does, by phase. It never shows where in the program it arrived.

While modules are imported and options are read there is nothing to put away, and the process ends at once: an
exception at such a place may be swallowed by an import, or be printed by whoever called us. While a command works it
is raised, so that files are closed, progress bars removed and temporary directories deleted. At the very end it is
ignored: what there was to say has been said. Where the parent has us ignore interrupts (`nohup`, `&`), we do.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130  # 128 + SIGINT, as shells count


def _leave(_number: int, _frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)


def _unraisable(unraisable: sys.UnraisableHookArgs) -> None:
    """An interrupt that arrived where nothing can be raised (in a finalizer): it counts all the same."""
    if isinstance(unraisable.exc_value, KeyboardInterrupt):
        os._exit(INTERRUPTED)
    sys.__unraisablehook__(unraisable)


def leave_at_once() -> None:
    """From now on an interrupt ends the process with code 130, wherever it is."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _leave)
        sys.unraisablehook = _unraisable


@contextmanager
def interruptible() -> Iterator[None]:
    """Meanwhile an interrupt raises KeyboardInterrupt, as Python and asyncio expect."""
    before = signal.getsignal(signal.SIGINT)
    if before is not _leave:  # ignored, or somebody else's process
        yield
        return
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        yield
    finally:
        signal.signal(signal.SIGINT, _leave)


def ignore() -> None:
    """From now on nothing interrupts: the exit code stands, and Python is closing down."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
