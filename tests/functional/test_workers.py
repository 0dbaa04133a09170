"""Several processes on one PostgreSQL: each is killed, one is stopped for longer than its lease, the server crashes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.kit import JUDGE, a_draw, an_admission
from support.patience import DEADLINE
from support.postgres import Postgres, new_server

from ragwatch.core.budget import Cost
from ragwatch.core.tally import Tally, violations
from ragwatch.errors import StoreError
from ragwatch.ports import Query, Store
from ragwatch.stores.postgres import Options, connected

TESTS = Path(__file__).parents[1]
LEASE_SECONDS = 1.0
WORKERS = 3
CAP_CALLS = 100  # of one dollar-cent each; more calls are refused

WORKER = textwrap.dedent(
    """
    import json, sys, time

    options, tests, lease, cap = json.loads(sys.argv[1])
    sys.path[:0] = [tests]
    from support.kit import JUDGE, a_verdict
    from ragwatch.core.budget import Cost, SpendingCap
    from ragwatch.errors import StoreError
    from ragwatch.stores.postgres import Options, connected

    def step(store):
        draws = store.lease(JUDGE, 10, now=time.time(), seconds=lease)
        if not draws:
            time.sleep(0.05)
            return
        number = store.reserve(JUDGE, Cost(0.01, 1), [SpendingCap(86400.0, usd=cap / 100)], now=time.time())
        time.sleep(0.02)  # the judge reads
        store.settle([a_verdict(draw) for draw in draws])
        if number is not None:
            store.pay(number, Cost(0.01, 1))

    store = None
    while True:
        try:
            store = store or connected(Options.model_validate(options))
            print("ready", flush=True)
            while True:
                step(store)
        except StoreError as error:
            time.sleep(0.1)
    """
)


@pytest.fixture
def server() -> Iterator[Postgres]:
    """A server that may crash: what was committed is there afterwards."""
    server = new_server(synchronous_commit="on")
    yield server
    server.delete()


class Fleet:
    """Worker processes over one database, and a reader that follows their verdicts as the digest does."""

    def __init__(self, server: Postgres) -> None:
        self.settings = {"url": server.url, "connections": 2, "timeout_seconds": 10}
        self.store: Store = connected(Options.model_validate(self.settings))
        self.workers = [self.started() for _ in range(WORKERS)]
        self.seen: list[int] = []

    def started(self) -> subprocess.Popen[bytes]:
        """Start a worker, and wait until it is connected."""
        arguments = json.dumps([self.settings, str(TESTS), LEASE_SECONDS, CAP_CALLS])
        worker = subprocess.Popen([sys.executable, "-c", WORKER, arguments], stdout=subprocess.PIPE)
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"ready\n"
        return worker

    def follow(self) -> None:
        """Read the verdicts that are new."""
        try:
            while rows := self.store.window(self.seen[-1] if self.seen else 0, 0.0, 50):
                self.seen += [row.seq for row in rows]
        except StoreError:  # while the server is away
            time.sleep(0.05)

    def until(self, judged: int) -> None:
        """Follow until so many verdicts are stored."""
        deadline = time.monotonic() + DEADLINE
        while len(self.seen) < judged:
            assert time.monotonic() < deadline, f"{len(self.seen)} of {judged}"
            self.follow()
            time.sleep(0.01)

    def replace(self, index: int) -> None:
        """Kill a worker, and start another one."""
        self.kill(self.workers[index])
        self.workers[index] = self.started()

    def kill(self, worker: subprocess.Popen[bytes]) -> None:
        """End a worker by kill -9."""
        worker.kill()
        assert worker.wait(DEADLINE) == -signal.SIGKILL
        assert worker.stdout is not None
        worker.stdout.close()

    def end(self) -> None:
        """Kill all workers."""
        for worker in self.workers:
            self.kill(worker)
        self.store.close()


@pytest.fixture
def fleet(server: Postgres) -> Iterator[Fleet]:
    """Workers that wait for draws."""
    fleet = Fleet(server)
    yield fleet
    fleet.end()


@pytest.mark.costly
def test_each_sample_is_judged_once_and_counted_once(fleet: Fleet, server: Postgres) -> None:
    """Kills, a stop past the lease and a crash of the server lose nothing, count nothing twice, and keep the budget."""
    draws = [a_draw(f"r{index}") for index in range(1500)]
    for start in range(0, len(draws), 500):
        seen = Counter({(Tally.SEEN, ("app",)): 500})
        fleet.store.admit(an_admission(*draws[start : start + 500], tallies=seen))
    fleet.until(100)
    fleet.replace(0)
    fleet.until(300)
    stopped = fleet.workers[1].pid
    os.kill(stopped, signal.SIGSTOP)
    stopped_at = time.monotonic()
    fleet.until(600)
    server.stop("immediate")
    server.start()
    fleet.until(900)
    fleet.replace(2)
    while time.monotonic() < stopped_at + 2 * LEASE_SECONDS:
        fleet.follow()
        time.sleep(0.05)
    os.kill(stopped, signal.SIGCONT)
    fleet.until(len(draws))
    tallies, pending = fleet.store.tallies_and_pending()
    assert pending == {}
    assert violations(tallies, pending) == {}
    assert tallies[Tally.JUDGED, ("search", JUDGE)] == len(draws) == tallies[Tally.DRAWN, ("search",)]
    assert {stored.verdict.key for stored in fleet.store.find(Query(limit=10_000))} == {draw.key for draw in draws}
    assert len(fleet.seen) == len(set(fleet.seen)) == len(draws)
    spent = fleet.store.spent(JUDGE, 0.0)
    assert (spent.tokens <= CAP_CALLS, spent.usd <= Cost(CAP_CALLS / 100).usd + 1e-9) == (True, True)
    assert spent.tokens > CAP_CALLS // 4
