"""Process: habits of a process that runs for months with a few threads and, it may be, a thousand open logs."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import gc
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ragwatch.core.snapshot import Gauge, Gauges
from ragwatch.stores.sqlite.disk import free_bytes
from ragwatch.telemetry import Telemetry

_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_ARENA_MAX = -8  # M_ARENA_MAX of glibc's malloc.h


def limit_malloc_arenas() -> None:
    """Let all threads share one malloc arena, where the C library offers that (glibc).

    Work moves between threads here and seldom overlaps, for Python lets one run at a time. An arena a thread would
    hold the same memory twice, and give it back to the kernel and take it again with every batch.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_ARENA_MAX, 1)


def settle() -> None:
    """Leave out of garbage collection what was made so far: it stays, and walking it again holds everything up."""
    gc.collect()
    gc.freeze()


def trim_heap() -> None:
    """Give free memory back to the kernel, where the C library offers that: what a busy hour took is not kept for ever.

    It takes about a millisecond for a hundred megabytes.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def raise_file_limit() -> None:
    """Raise the soft limit of open files to the hard one: every followed log holds a descriptor."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def log_library_warnings(telemetry: Telemetry) -> Callable[[asyncio.AbstractEventLoop, dict[str, Any]], None]:
    """An exception handler of the event loop that counts failed attempts to accept connections.

    Without a free descriptor asyncio tries again every second, as often as its backlog is long (2048), and would log
    each attempt with a traceback: megabytes a second. Everything else is handled as ever.
    """

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, OSError) and error.errno in _EXHAUSTED:
            telemetry.accept_failed(error.strerror or str(error))
        else:
            loop.default_exception_handler(context)

    return handle


def free_disk_bytes(state: Path) -> Gauges:
    """Free bytes on the disk of the state directory; nothing where the kernel does not say."""
    try:
        return {(Gauge.STATE_FREE, ()): float(free_bytes(state))}
    except OSError:
        return {}
