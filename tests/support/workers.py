"""Runs tests in parallel processes that are forked after collection: a pytest plugin for `--workers N`.

pytest-xdist collects the tests once in each worker. Here that takes 13 s of CPU a worker, twice that under coverage, so
that the number of workers that fit tests which mostly wait would cost minutes. Workers that are forked have everything.

All tests of a module run in one worker, in their order. Modules marked `alone` come first, when the tests that they
wait for are short, then those with the longest tests. Every third worker takes modules from the end of the collection:
tests of daemons, which mostly wait, run beside unit tests, which compute. A worker that dies fails the test that it
ran; another one takes what was left.
"""

import atexit
import gc
import os
import signal
import sys
import traceback
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any

import pytest

from support.counting import uncounted
from support.isolation import COMPANION_VARIABLE

MAX_CRASHES = 10
BRIEF_SECONDS = 0.01
"""Fixtures that took less are not reported: reports are half of what the first process does while tests run."""
_COMPANION = 2  # the first that takes modules from the end
_CHECK_SECONDS = 1.0  # how often to look for workers that died and whose connection somebody else keeps open


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--workers`."""
    parser.addoption("--workers", type=int, default=1, help="processes that run tests, forked after collection")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run all tests in workers; one worker leaves it to pytest."""
    options = session.config.option
    if options.workers < 2 or options.collectonly or session.testsfailed:
        return None
    Run(session).run(options.workers)
    return True


@dataclass(slots=True)
class Worker:
    """A forked process that runs tests."""

    pid: int  # its process id
    connection: Connection  # sends what it reports, and receives modules
    from_end: bool  # whether it takes modules from the end
    # numbers of the tests that it has been given and has not finished, in their order
    pending: deque[int] = field(default_factory=deque)


def _place(tests: Sequence[tuple[int, pytest.Item]]) -> tuple[bool, float]:
    """Where a module comes: by whether it is run alone, and by the time after which its longest test is stuck."""
    limits = [marker.args[0] for _, item in tests for marker in item.iter_markers("ends_after")]
    return not any(item.get_closest_marker("alone") for _, item in tests), -max(limits, default=0.0)


class Run:
    """The tests of a session, and the workers that run them."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        numbered = enumerate(session.items)
        modules = [list(tests) for _, tests in groupby(numbered, lambda test: test[1].location[0])]
        modules.sort(key=_place)
        self._modules = deque([number for number, _ in tests] for tests in modules)
        self._workers: dict[Connection, Worker] = {}
        self._started = 0
        self._crashes = 0

    def run(self, count: int) -> None:
        """Run everything, or until pytest wants to stop."""
        gc.collect()
        gc.freeze()  # what was collected stays shared
        try:
            for _ in range(min(count, len(self._modules))):
                self._start()
            with uncounted():  # no test runs in this process
                self._receive_all()
        finally:
            for worker in self._workers.values():
                with suppress(ProcessLookupError):
                    os.kill(worker.pid, signal.SIGKILL)
                os.waitpid(worker.pid, 0)

    def _receive_all(self) -> None:
        while self._workers:
            self._receive()
            for reason in (self._session.shouldfail, self._session.shouldstop):
                if reason:
                    raise self._session.Interrupted(reason)

    def _start(self) -> None:
        ours, theirs = Pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if not pid:
            ours.close()
            _work(self._session, theirs, self._started)
        theirs.close()
        self._workers[ours] = Worker(pid, ours, from_end=self._started % 3 == 2)
        self._started += 1

    def _receive(self) -> None:
        for connection in wait(list(self._workers), _CHECK_SECONDS) or list(self._workers):
            worker = self._workers[connection]  # type: ignore[index]
            try:
                if worker.connection.poll():
                    self._take(worker, *worker.connection.recv())
                elif os.waitpid(worker.pid, os.WNOHANG)[0]:
                    self._lose(worker)
            except (EOFError, ConnectionError):
                with suppress(ChildProcessError):
                    os.waitpid(worker.pid, 0)
                self._lose(worker)

    def _take(self, worker: Worker, kind: str, content: Any) -> None:
        """Act on what a worker sent: it wants a module, reports on a test, or has finished one."""
        hook = self._session.config.hook
        if kind == "wants":
            module = self._next(worker)
            worker.pending.extend(module)
            worker.connection.send(module)
        elif kind == "reports":
            hook.pytest_runtest_logreport(
                report=hook.pytest_report_from_serializable(config=self._session.config, data=content)
            )
        else:
            item = self._session.items[worker.pending.popleft()]
            hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    def _next(self, worker: Worker) -> list[int]:
        if not self._modules:
            return []
        return self._modules.pop() if worker.from_end else self._modules.popleft()

    def _lose(self, worker: Worker) -> None:
        """Account for a worker that ended: as it should, or while it ran a test, which fails."""
        del self._workers[worker.connection]
        worker.connection.close()
        if not worker.pending:
            return
        item = self._session.items[worker.pending.popleft()]
        text = f"worker crashed while running '{item.nodeid}'"
        report = pytest.TestReport(item.nodeid, item.location, {}, "failed", text, "call")
        item.config.hook.pytest_runtest_logreport(report=report)
        if worker.pending:
            self._modules.appendleft(list(worker.pending))
        self._crashes += 1
        if self._crashes >= MAX_CRASHES:
            raise self._session.Interrupted(f"{MAX_CRASHES} workers crashed")
        if self._modules:
            self._start()


def _work(session: pytest.Session, connection: Connection, number: int) -> None:
    """Run modules until there are none left, then end the process."""
    code = 1
    try:
        _separate(session.config, number)
        if number == _COMPANION:
            os.environ[COMPANION_VARIABLE] = "yes"
        session.config.pluginmanager.register(Reporter(session.config, connection))
        _run_modules(session, connection)
        code = 0
    except (BrokenPipeError, EOFError, ConnectionResetError):
        pass  # the run has ended
    except BaseException:  # noqa: BLE001 - nothing may reach what the parent would do next
        traceback.print_exc()
    finally:
        coverage = sys.modules.get("coverage")
        measurement = None if coverage is None else coverage.Coverage.current()
        if measurement is not None:
            measurement.stop()
            measurement.save()
        with suppress(Exception):
            atexit._run_exitfuncs()  # ends what tests have started for the whole run
        os._exit(code)


def _separate(config: pytest.Config, number: int) -> None:
    """Give the process what it must not share: captured output, terminal, ports, folder of temporary files."""
    os.environ["TEST_WORKER"] = str(number)  # support.programs reads it; that is not imported before tests are measured
    capture = config.pluginmanager.getplugin("capturemanager")
    if capture is not None:
        capture.stop_global_capturing()
        capture.start_global_capturing()
        capture.suspend_global_capture()
    config.get_terminal_writer()._file = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    factory = config._tmp_path_factory  # type: ignore[attr-defined]
    folder = factory.getbasetemp() / f"worker-{number}"
    folder.mkdir(mode=0o700)
    factory._basetemp = folder


def _run_modules(session: pytest.Session, connection: Connection) -> None:
    def receive() -> list[pytest.Item]:
        connection.send(("wants", None))
        numbers: Iterable[int] = connection.recv()
        return [session.items[number] for number in numbers]

    items = receive()
    while items:
        following: list[pytest.Item] = []
        for item, neighbour in zip(items, [*items[1:], None], strict=True):
            if neighbour is None:  # the next module is needed to know which fixtures stay
                following = receive()
            after = neighbour or (following[0] if following else None)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            connection.send(("finished", None))
        items = following


class Reporter:
    """Sends the reports of a worker."""

    def __init__(self, config: pytest.Config, connection: Connection) -> None:
        self._config = config
        self._connection = connection

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Send a report to the process that prints it, unless it says nothing."""
        if report.when != "call" and report.passed and report.duration < BRIEF_SECONDS and not report.sections:
            return
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._connection.send(("reports", data))
