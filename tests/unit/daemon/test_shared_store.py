"""Workers that share a store: one leads and computes, the others show its figures and run none of its loops."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support.canaries import ScriptedProbe, a_canary, a_canary_loop, a_suite_of
from support.elections import Server, WorkerStore
from support.kit import AT, Clock, a_draw, a_reading, a_verdict, an_admission

from ragwatch.board import Board
from ragwatch.config import parse
from ragwatch.daemon.actions import actions
from ragwatch.daemon.loops import runtime_loops
from ragwatch.daemon.runtime import Runtime, build
from ragwatch.daemon.schedule import JobSchedule
from ragwatch.daemon.shared import SharedState
from ragwatch.errors import ConfigError
from ragwatch.pipeline.canaries import CanarySuite
from ragwatch.pipeline.drift.scores import KIND
from ragwatch.pipeline.leadership import Leadership
from ragwatch.statistics.snapshot import Snapshot
from ragwatch.statistics.tally import Tally
from ragwatch.stores.lock import worker_name
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry

JUDGE = "embedded"


class Worker:
    """A worker with the same configuration as the others."""

    def __init__(self, folder: Path, store: SqliteStore, server: Server, name: str) -> None:
        shared: Any = WorkerStore(store, server, name)
        self.store = shared
        self.telemetry = Telemetry()
        self.leadership = Leadership(shared, telemetry=self.telemetry, timer=lambda: server.now)
        self.leadership.begin = self.begin
        self.board = Board()
        self.shared = SharedState(
            shared, self.board, self.telemetry, Clock(AT + 100.0), secret=b"s", leadership=self.leadership
        )
        self.schedule = JobSchedule(self.telemetry, self.leadership)
        self.service = ScriptedProbe()
        self.runtime = self._built(folder)
        self.runtime.resume(shared, leads=False)

    def _built(self, folder: Path) -> Runtime:
        config = {
            "sources": [{"kind": "tail", "name": "app", "path": str(folder / "app.jsonl")}],
            "judges": [
                {"name": JUDGE, "kind": "lexical"},
                {"name": "second", "kind": "lexical", "probability": 0.5, "budget": {"usd_per_day": 1.0}},
            ],
            "canaries": [a_suite_of(schedule="1m", at_start=False)],
        }
        made = build(parse(config, folder=folder), self.shared, lambda: ("mine",))
        scripted = CanarySuite("docs", (a_canary("d1"),), (1,), self.service)
        return replace(made, canaries=a_canary_loop(self.shared.store, scripted, clock=self.shared.clock))

    async def begin(self) -> None:
        """A term begins."""
        await asyncio.to_thread(self.runtime.resume_led)
        self.schedule.catch_up()

    async def loop(self, name: str) -> bool:
        """Take one step of a loop."""
        (loop,) = [loop for loop in runtime_loops(self.runtime, self.shared) if loop.name == name]
        return await loop.step()

    def settle(self, *names: str) -> None:
        """Admit draws, and judge them."""
        judge = self.runtime.judgings[0].judge
        draws = [a_draw(name) for name in names]
        self.store.admit(an_admission(*draws, judges=(JUDGE,)))
        self.store.settle([a_verdict(draw, reading=a_reading(JUDGE, judge.version)) for draw in draws])

    async def shown(self) -> Snapshot:
        """What it shows after a digest."""
        await self.loop("digest")
        snapshot = self.board.latest()
        assert snapshot is not None
        return snapshot


@pytest.fixture
async def workers(tmp_path: Path, store: SqliteStore) -> AsyncIterator[tuple[Server, Worker, Worker]]:
    """Two workers, of which the first leads."""
    server = Server()
    one, two = (Worker(tmp_path, store, server, name) for name in ("one", "two"))
    for worker in (one, two):
        await worker.loop("leader")
    yield server, one, two
    for worker in (one, two):
        await worker.runtime.close()
        await worker.leadership.close()


async def test_all_show_the_figures_of_the_leader(workers: tuple[Server, Worker, Worker]) -> None:
    """Estimates and gauges are the leader's; problems, lags counters are each worker's; pending is exported once."""
    _, one, two = workers
    one.settle("a", "b")
    two.settle("c")
    before = await two.shown()  # there is no leader's snapshot yet
    assert (before.leads, before.estimates != ()) == (False, True)
    first, second = await one.shown(), await two.shown()
    assert first.estimates == second.estimates != ()
    assert (second.tallies, second.pending, second.at) == (first.tallies, first.pending, first.at)
    assert second.problems == ("mine",)
    assert (first.leads, second.leads) == (True, False)
    judged = [snapshot.exported and snapshot.exported[Tally.JUDGED, ("search", JUDGE)] for snapshot in (first, second)]
    assert judged == [2, 1]
    texts = [worker.runtime.exporter.text() for worker in (one, two)]
    assert ["ragwatch_samples_pending 0.0" in text for text in texts] == [True, False]
    assert [f"ragwatch_leader {float(leads)}" in text for text, leads in zip(texts, (True, False), strict=True)] == [
        True,
        True,
    ]


async def test_sampling_is_that_of_the_leader(workers: tuple[Server, Worker, Worker]) -> None:
    """A judge that is behind in the leader's eyes gets fewer draws from all workers."""
    _, one, two = workers
    one.store.admit(an_admission(*(a_draw(f"r{number}") for number in range(2000)), judges=("second",)))
    two.runtime.sampling.resume()
    assert await one.loop("sampling") is False
    first = await one.shown()
    second = await two.shown()
    assert first.shares["second"] == second.shares["second"] < 0.5
    assert two.runtime.intakes[0].rules.share("second") == one.runtime.intakes[0].rules.share("second")
    assert second.budgets == first.budgets


async def test_drift_goes_on_where_the_leader_was(workers: tuple[Server, Worker, Worker]) -> None:
    """Only the leader takes scores; the next one goes on from its place, and the first one's next write is refused."""
    server, one, two = workers
    one.settle("a", "b")
    assert [await worker.loop("drift") for worker in (one, two)] == [True, False]
    two.settle("c")
    server.now = 100.0
    await two.loop("leader")
    assert await two.loop("drift") is True
    state = two.store.recall(KIND)
    assert await one.loop("drift") is False
    assert one.store.recall(KIND) == state
    assert state["seq"] == 3
    one.settle("d")
    server.now = 200.0
    await one.loop("leader")
    assert await one.loop("drift") is True
    assert one.store.recall(KIND)["seq"] == 4
    await one.loop("other workers")


async def test_an_acknowledgement_is_made_where_it_is_asked_for(workers: tuple[Server, Worker, Worker]) -> None:
    """The worker that is asked leads from then on."""
    _, one, two = workers

    class InForce:
        async def __aenter__(self) -> Runtime:
            return two.runtime

        async def __aexit__(self, *_: object) -> None:
            pass

    async def reload() -> None:
        raise ConfigError("not here")

    acknowledge = actions(reload, InForce, lambda *_: None, two.leadership.taken)["/-/drift/acknowledge"]
    assert await acknowledge({}) == "no alarm is active"
    assert two.leadership.leads
    one.settle("a")
    assert await one.loop("drift") is False
    assert not one.leadership.leads


async def test_a_suite_runs_once_at_each_time(workers: tuple[Server, Worker, Worker]) -> None:
    """A leader that begins runs what its predecessor has missed, and nothing that has run since."""
    server, one, two = workers
    now = datetime.now(UTC).timestamp()
    for worker in (one, two):
        worker.shared.clock.now = now  # type: ignore[attr-defined]  # a Clock
        worker.schedule.start(worker.runtime)
    one.schedule.catch_up()
    await asyncio.gather(*one.schedule.tasks)
    server.now = 100.0
    await two.loop("leader")
    await asyncio.gather(*two.schedule.tasks)
    assert (len(one.service.asked), two.service.asked) == (1, [])
    for worker in (one, two):
        worker.schedule.shutdown()


async def test_a_missed_run_is_made_up_for(workers: tuple[Server, Worker, Worker]) -> None:
    """The last run is older than the last time of the schedule."""
    server, one, two = workers
    await one.runtime.canaries.run("docs")
    assert one.runtime.canaries.last_run("docs") == AT + 100.0
    two.schedule.start(two.runtime)
    server.now = 100.0
    await two.loop("leader")
    await asyncio.gather(*two.schedule.tasks)
    assert len(two.service.asked) == 1
    two.schedule.shutdown()


def test_a_worker_keeps_its_name(tmp_path: Path) -> None:
    """In its state directory; another directory is another worker."""
    names = [worker_name(tmp_path), worker_name(tmp_path)]
    (tmp_path / "other").mkdir()
    assert names[0] == names[1] != worker_name(tmp_path / "other")
