"""Leaves tests out of the measurement of coverage, which doubles their time.

These are the ones marked `uncounted` or `costly`, those of `tests/house`, which read texts and files, and those of
`tests/functional`, whose daemons run beside the tests. No process that a test starts is measured.

Tests that cost little cover everything that must be covered.
"""

import sys
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_TESTS = Path(__file__).parents[1]
_UNCOUNTED_FOLDERS = (_TESTS / "house", _TESTS / "functional")


@contextmanager
def uncounted() -> Iterator[None]:
    """Count no lines meanwhile, in this thread and those that start. Without a measurement, nothing changes.

    Coverage's own `stop` and `start` take .2 s together: they look through all modules.
    """
    function, of_threads = sys.gettrace(), threading.gettrace()
    sys.settrace(None)
    threading.settrace(None)
    try:
        yield
    finally:
        threading.settrace(of_threads)
        sys.settrace(function)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Run a test with its fixtures without counting lines, where that holds for its folder."""
    if not any(item.path.is_relative_to(folder) for folder in _UNCOUNTED_FOLDERS):
        return (yield)
    with uncounted():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Run a marked test without counting its lines."""
    if not any(item.iter_markers("uncounted")) and not any(item.iter_markers("costly")):
        return (yield)
    with uncounted():
        return (yield)
