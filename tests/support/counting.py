"""Leaves work out of the measurement of coverage, which doubles its time: a plugin for the marker `uncounted`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

try:
    from coverage import Coverage
except ImportError:  # other Pythons, in `make interpreters`, measure nothing
    Coverage = None


@contextmanager
def uncounted() -> Iterator[None]:
    """Count no lines meanwhile. Without a measurement, nothing changes."""
    measurement = Coverage.current() if Coverage else None
    if measurement is None:
        yield
        return
    measurement.stop()
    try:
        yield
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it is told that the package has been imported meanwhile
            measurement.start()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Run a marked test without counting its lines."""
    if item.get_closest_marker("uncounted") is None:
        return (yield)
    with uncounted():
        return (yield)
