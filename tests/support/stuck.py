"""Ends a test that is stuck, and says where it is: a pytest plugin.

After `TIMEOUT` seconds, or those of the marker `ends_after`, the stacks of all threads are written down, the processes
that the test has started are named and ended, and the test fails. What is stuck after that (code in C that no signal
interrupts, a fixture that never ends) costs its worker: Python writes the stacks to standard error and exits.
"""

import faulthandler
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.isolation import Leftover, kill
from support.patience import TIMEOUT

SHARED = "forkserver.py"
"""In the command line of a process that later tests of the worker need, too."""
_LONGER = 1.25  # times the limit until the worker is ended
_TICKS = os.sysconf("SC_CLK_TCK")
_output = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    """Write to standard error as it is now; while tests run, it is captured."""
    config.stash[_output] = os.dup(2)
    faulthandler.enable(config.stash[_output])  # in the place of pytest's plugin, which goes off after a failure


def pytest_unconfigure(config: pytest.Config) -> None:
    """Close it."""
    faulthandler.disable()
    os.close(config.stash[_output])


def pytest_enter_pdb() -> None:
    """Let people take their time."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(wrapper=True, trylast=True)  # within the plugin of tests that wait for their turn
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Run a test with its fixtures for so long and no longer."""
    marker = item.get_closest_marker("ends_after")
    seconds = float(marker.args[0]) if marker else TIMEOUT
    began = time.clock_gettime(time.CLOCK_BOOTTIME)

    def end(*_: object) -> None:
        processes = started_since(os.getpid(), began)
        told = [f"{item.nodeid} is stuck: it has not ended within {seconds:.0f} s", *_stacks()]
        if processes:
            told += ["Its processes, which are ended now:", *(process.command for process in processes)]
        kill(processes)
        pytest.fail("\n".join(told))

    faulthandler.dump_traceback_later(seconds * _LONGER, exit=True, file=item.config.stash[_output])
    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        faulthandler.cancel_dump_traceback_later()


def _stacks() -> Iterator[str]:
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for number, frame in sys._current_frames().items():
        yield f"Thread {names.get(number, number)}:"
        yield "".join(traceback.format_stack(frame)).rstrip()


def started_since(parent: int, since: float) -> list[Leftover]:
    """Processes below another one, by the seconds since the boot of the machine after which they were started.

    The command of each says also in which state it is, and how much CPU it has used: a stuck one sleeps.
    """
    children: dict[int, list[Leftover]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:  # it has ended meanwhile
            continue
        state, above, user, system, start = fields[0], *(int(fields[place]) for place in (1, 11, 12, 19))
        shared = above == parent and SHARED in command
        if (command and (start + 1) / _TICKS >= since) or shared:
            told = f"{folder.name} ({state}, {(user + system) / _TICKS:.1f} s of CPU): {command}"
            children.setdefault(above, []).append(Leftover(int(folder.name), told))
    below = children.get(parent, [])
    for one in below:
        below.extend(children.get(one.pid, []))
    return [one for one in below if one not in children.get(parent, []) or SHARED not in one.command]
