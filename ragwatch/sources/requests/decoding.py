"""Decodes one large body at a time, and returns its memory to the system afterwards."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from threading import Lock
from typing import TypeVar

Result = TypeVar("Result")
_one_at_a_time = Lock()  # of all sources: each takes many times the size of its body


def decoding(decode: Callable[[], Result]) -> Result:
    """Run `decode` while no other large body is decoded; in a thread.

    The allocator of glibc keeps what was freed between blocks that are in use; `malloc_trim` returns it.
    """
    with _one_at_a_time:
        try:
            return decode()
        finally:
            _trim()(0)


@cache
def _trim() -> Callable[[int], object]:
    """`malloc_trim` of the C library, or a function that does nothing where there is none."""
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return lambda _: None
