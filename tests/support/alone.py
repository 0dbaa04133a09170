"""Tests that need most of the machine to themselves: a pytest plugin for the marker `alone`.

What many processes do in real time (a monitoring system that scrapes every second, a service whose answers are judged
as they come) says nothing while other tests fill the cores. Such a test waits until the tests of other workers have
ended, and holds the next ones back until its module has ended. One worker, the companion, goes on with its tests, so
that the second core is not idle for a minute.
"""

import fcntl
import os
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from support.isolation import COMPANION_VARIABLE, LOCKS_VARIABLE

_holds = pytest.StashKey[tuple[str, ExitStack]]()


@contextmanager
def _locked(name: str, how: int) -> Iterator[None]:
    """Hold one of the locks of this test run."""
    with (Path(os.environ[LOCKS_VARIABLE]) / f"{name}.lock").open("a") as file:
        fcntl.flock(file, how)
        yield


@pytest.hookimpl(wrapper=True, tryfirst=True)  # outside of its limit: waiting for a turn is no hanging
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, object, object]:
    """Run a test beside those of other workers, or a module of tests alone."""
    stack = ExitStack()
    module = item.nodeid.partition("::")[0]
    if item.get_closest_marker("alone") is None:
        if COMPANION_VARIABLE in os.environ:
            return (yield)
        with _locked("turn", fcntl.LOCK_EX):  # whoever wants to be alone keeps it while waiting, so that nobody starts
            stack.enter_context(_locked("machine", fcntl.LOCK_SH))
        with stack:
            return (yield)
    held, locks = item.config.stash.get(_holds, ("", stack))
    if held != module:
        with _locked("turn", fcntl.LOCK_EX):
            locks.enter_context(_locked("machine", fcntl.LOCK_EX))
        item.config.stash[_holds] = (module, locks)
    try:
        return (yield)
    finally:
        after = nextitem is not None and nextitem.nodeid.partition("::")[0] == module
        if not (after and nextitem is not None and nextitem.get_closest_marker("alone")):
            item.config.stash[_holds] = ("", ExitStack())
            locks.close()
