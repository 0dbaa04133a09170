"""Process settings for long-running daemons: malloc, garbage collection, file descriptors, event loop errors."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import gc
import resource
from collections.abc import Callable
from pathlib import Path

from ragwatch.statistics.snapshot import Gauge, Gauges
from ragwatch.stores.sqlite.disk import free_bytes
from ragwatch.telemetry import Telemetry

_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_ARENA_MAX = -8  # M_ARENA_MAX of glibc's malloc.h


def limit_malloc_arenas() -> None:
    """Make all threads share one malloc arena (glibc only).

    Python runs one thread at a time, so one arena suffices. With an arena per thread, each would hold its own copy of
    the free memory, and return it to the kernel and request it again with every batch.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_ARENA_MAX, 1)


def settle() -> None:
    """Exclude all existing objects from garbage collection: they live as long as the process."""
    gc.collect()
    gc.freeze()


def trim_heap() -> None:
    """Return free memory to the kernel (glibc only). It takes about 1 ms per 100 MB."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def raise_file_limit() -> None:
    """Raise the soft limit on open files to the hard limit: every followed log needs a file descriptor."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def log_library_warnings(telemetry: Telemetry) -> Callable[[asyncio.AbstractEventLoop, dict[str, object]], None]:
    """Build an exception handler of the event loop that counts failed attempts to accept connections.

    Without a free file descriptor asyncio retries every second, up to 2048 times (its backlog), and would log each
    attempt with a traceback: megabytes per second. All other errors go to the default handler.
    """

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        error = context.get("exception")
        if isinstance(error, OSError) and error.errno in _EXHAUSTED:
            telemetry.accept_failed(error.strerror or str(error))
        else:
            loop.default_exception_handler(context)

    return handle


def free_disk_bytes(state: Path) -> Gauges:
    """Measure the free bytes on the disk of the state directory; empty if the file system reports an error."""
    try:
        return {(Gauge.STATE_FREE, ()): float(free_bytes(state))}
    except OSError:
        return {}
