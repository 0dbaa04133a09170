"""Isolation: a pytest plugin that keeps a test run apart from the account and the shell that started it.

- HOME and the XDG directories point into a temporary directory, so that programs which tests start (browsers, client
  libraries) write nothing into the account.
- SIGINT is not ignored, even where the shell that started the run in the background ignores it: tests interrupt
  programs, and an ignored signal stays ignored in every process that they start.
- When the run ends, processes that it left behind are killed, and named.
"""

import os
import shutil
import signal
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest

RUN_VARIABLE = "RAGWATCH_TEST_RUN"
LOCKS_VARIABLE = "RAGWATCH_TEST_LOCKS"
COMPANION_VARIABLE = "RAGWATCH_TEST_COMPANION"
"""Set in the worker whose tests go on beside tests that are marked `alone`."""
KILL_AFTER_SECONDS = 5.0
_HOME_VARIABLES = {
    "HOME": ".",
    "XDG_CACHE_HOME": ".cache",
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
}
_PROC = Path("/proc")
_home_key = pytest.StashKey[Path]()


@dataclass(frozen=True, slots=True)
class Leftover:
    """A process that outlived the test run."""

    pid: int  # its process id
    command: str  # its command line


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Set the environment of the run; its workers inherit it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ[RUN_VARIABLE] = uuid4().hex
    os.environ.pop(COMPANION_VARIABLE, None)  # of a worker that starts a test run of its own
    home = Path(tempfile.mkdtemp(prefix="ragwatch-tests-home-"))
    config.stash[_home_key] = home
    os.environ[LOCKS_VARIABLE] = str(home)
    for name, folder in _HOME_VARIABLES.items():
        os.environ[name] = str(home / folder)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Kill what the run left behind, and remove its HOME."""
    home = config.stash.get(_home_key, None)
    if home is None:
        return
    leftovers = leftovers_of(os.environ[RUN_VARIABLE])
    for leftover in leftovers:
        print(f"killed a process that the test run left behind: {leftover.pid} {leftover.command}")
    kill(leftovers)
    shutil.rmtree(home, ignore_errors=True)


def leftovers_of(run: str) -> list[Leftover]:
    """Processes whose environment names this run, our own apart; none where the system has no /proc.

    Args:
        run: Value of `RUN_VARIABLE` that the processes of the run inherited.
    """
    mark = f"{RUN_VARIABLE}={run}".encode()
    leftovers = []
    for folder in _PROC.glob("[0-9]*"):
        try:
            marked = mark in (folder / "environ").read_bytes().split(b"\0")
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:  # it ended meanwhile, or belongs to somebody else
            continue
        if marked and command and int(folder.name) != os.getpid():  # a zombie has no command line
            leftovers.append(Leftover(int(folder.name), command))
    return sorted(leftovers, key=lambda leftover: leftover.pid)


def kill(leftovers: list[Leftover]) -> None:
    """End processes with SIGTERM, and with SIGKILL those that are still there after `KILL_AFTER_SECONDS`."""
    waiting = [leftover for leftover in leftovers if _send(leftover.pid, signal.SIGTERM)]
    deadline = time.monotonic() + KILL_AFTER_SECONDS
    while waiting and time.monotonic() < deadline:
        time.sleep(0.05)
        waiting = [leftover for leftover in waiting if _runs(leftover.pid)]
    for leftover in waiting:
        _send(leftover.pid, signal.SIGKILL)


def _send(pid: int, number: signal.Signals) -> bool:
    try:
        os.kill(pid, number)
    except OSError:
        return False
    return True


def _runs(pid: int) -> bool:
    """Whether it runs; a zombie does not."""
    try:
        return bool((_PROC / str(pid) / "cmdline").read_bytes())
    except OSError:
        return False
