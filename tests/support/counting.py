"""Leaves tests out of the measurement of coverage, which doubles their time: those marked `uncounted` or `costly`.

Tests that cost little cover everything that must be covered.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def uncounted() -> Iterator[None]:
    """Count no lines meanwhile, in this thread and those that start. Without a measurement, nothing changes.

    Coverage's own `stop` and `start` take .2 s together: they look through all modules.
    """
    function, of_threads = sys.gettrace(), threading.gettrace()
    sys.settrace(None)
    threading.settrace(None)  # type: ignore[arg-type] - as documented
    try:
        yield
    finally:
        threading.settrace(of_threads)  # type: ignore[arg-type]
        sys.settrace(function)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Run a marked test without counting its lines."""
    if not any(item.iter_markers("uncounted")) and not any(item.iter_markers("costly")):
        return (yield)
    with uncounted():
        return (yield)
