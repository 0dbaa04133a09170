"""Process: habits of a process that runs for months with a few threads and, it may be, a thousand open logs."""

from __future__ import annotations

import ctypes
import gc
import resource
from pathlib import Path

from ragwatch.core.snapshot import Gauge, Gauges
from ragwatch.stores.disk import free_bytes

_ARENA_MAX = -8  # M_ARENA_MAX of glibc's malloc.h


def one_arena() -> None:
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


def give_back() -> None:
    """Give free memory back to the kernel, where the C library offers that: what a busy hour took is not kept for ever.

    It takes about a millisecond for a hundred megabytes.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def many_files() -> None:
    """Raise the soft limit of open files to the hard one: every followed log holds a descriptor."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def room(state: Path) -> Gauges:
    """Free bytes on the disk of the state directory; nothing where the kernel does not say."""
    try:
        return {(Gauge.STATE_FREE, ()): float(free_bytes(state))}
    except OSError:
        return {}
