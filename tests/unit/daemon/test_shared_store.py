"""Workers that share a store: one at a time leads and computes, from what is stored, and all show its figures."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import LogCapture
from support.canaries import ScriptedProbe, a_canary, a_canary_loop, a_suite_of
from support.elections import Server, SharedStore, WorkerStore
from support.kit import AT, Clock, a_draw, a_reading, a_verdict, an_admission

from ragwatch.board import Board
from ragwatch.config import parse
from ragwatch.daemon.actions import actions
from ragwatch.daemon.loops import runtime_loops
from ragwatch.daemon.process import SharedState
from ragwatch.daemon.runtime import Runtime, build
from ragwatch.daemon.schedule import JobSchedule
from ragwatch.errors import ConfigError, NotLeadingError, StoreError
from ragwatch.pipeline.canaries import CanarySuite
from ragwatch.pipeline.drift.scores import KIND
from ragwatch.pipeline.leadership import Leadership
from ragwatch.statistics.snapshot import Snapshot
from ragwatch.statistics.tally import Tally
from ragwatch.stores.lock import worker_name
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry


class SteppingWorker:
    """A worker whose terms begin with a read, and whose step writes its name."""

    def __init__(self, server: Server, name: str, telemetry: Telemetry | None = None) -> None:
        store: Any = SharedStore(server, name)
        self.server, self.name, self.stopped_for = server, name, 0.0
        self.telemetry = telemetry or Telemetry()
        self.leadership = Leadership(store, telemetry=self.telemetry, timer=lambda: server.now)
        self.leadership.begin = self.begin
        self.begun = 0
        self.fails = False
        self.beginning = False
        self.overlaps = 0
        self.paused, self.loaded = asyncio.Event(), asyncio.Event()
        self.paused.set()
        self.loaded.set()

    async def begin(self) -> None:
        """A term begins."""
        if self.fails:
            raise StoreError("away")
        self.beginning = True
        await self.loaded.wait()
        self.beginning = False
        self.begun += 1

    async def pause(self) -> asyncio.Task[bool]:
        """Begin a step, which goes on when `paused` is set."""
        self.paused.clear()
        step = asyncio.create_task(self.leadership.run(self.work))
        await asyncio.sleep(0)
        return step

    async def work(self) -> bool:
        """A step of the leader."""
        self.overlaps += self.beginning
        await self.paused.wait()
        store: Any = self.leadership.store
        store.write(self.name)
        return True


async def test_one_of_two_leads_until_its_time_is_over() -> None:
    """The other one does nothing; it leads when the first has not renewed its term for as long as that lasts."""
    server = Server()
    one, two = SteppingWorker(server, "one"), SteppingWorker(server, "two")
    for worker in (one, two):
        await worker.leadership.step()
    assert [await worker.leadership.run(worker.work) for worker in (one, two)] == [True, False]
    server.now = 10.0
    await one.leadership.step()
    server.now = 20.0
    assert (await two.leadership.step(), two.leadership.leads, one.leadership.leads) == (False, False, True)
    server.now = 25.0
    await two.leadership.step()
    assert (two.leadership.leads, two.begun, one.begun) == (True, 1, 1)
    assert [await worker.leadership.led(worker.work)() for worker in (one, two)] == [False, True]
    assert server.written == ["one", "two"]
    assert (one.telemetry.leader, two.telemetry.leader) == (False, True)


async def test_a_step_that_outlives_its_term_writes_nothing() -> None:
    """A worker that was stopped in the middle of a step wakes after another one has begun: its write is refused."""
    server = Server()
    one, two = SteppingWorker(server, "one"), SteppingWorker(server, "two")
    await one.leadership.step()
    step = await one.pause()
    server.now = 20.0
    await two.leadership.step()
    await two.leadership.run(two.work)
    server.now = 40.0
    await one.leadership.step()  # the time of the other is over too, but the old step is still under way
    assert (one.leadership.leads, one.begun) == (False, 1)
    one.paused.set()
    assert await step is False
    assert server.written == ["two"]
    await one.leadership.step()
    assert (one.leadership.leads, one.begun, server.term) == (True, 2, 3)


async def test_no_step_runs_while_a_term_begins() -> None:
    """A step that is due while the stored state is loaded waits; it would count anew what that state has counted."""
    server = Server()
    one = SteppingWorker(server, "one")
    for _ in range(2):
        one.loaded.clear()
        election = asyncio.create_task(one.leadership.step())
        for _ in range(20):
            await asyncio.sleep(0.001)
            await one.leadership.run(one.work)
        one.loaded.set()
        await election
    assert (one.overlaps, one.begun, one.leadership.leads) == (0, 1, True)
    assert await one.leadership.run(one.work) is True


async def test_a_new_term_waits_for_steps_of_the_one_before() -> None:
    """A renewal that comes late makes a new term: what is stored is loaded once the old steps have ended."""
    server = Server()
    one = SteppingWorker(server, "one")
    await one.leadership.step()
    step = await one.pause()
    server.until = server.now  # by the clock of the server, while this process believes in its term
    await one.leadership.step()
    assert (one.begun, one.leadership.leads, server.term) == (1, False, 2)
    one.paused.set()
    assert await step is False
    await one.leadership.step()
    assert (one.begun, one.leadership.leads, server.written) == (2, True, [])


async def test_a_term_begins_with_what_is_stored() -> None:
    """If that cannot be read, the worker does not lead, and another one can at once."""
    server = Server()
    one, two = SteppingWorker(server, "one"), SteppingWorker(server, "two")
    one.fails = True
    with pytest.raises(StoreError, match="away"):
        await one.leadership.step()
    assert not one.leadership.leads
    await two.leadership.step()
    assert two.leadership.leads


async def test_a_change_by_a_person_takes_the_lead() -> None:
    """It is made by the worker that was asked; the former leader notices at its next write."""
    server = Server()
    one, two = SteppingWorker(server, "one"), SteppingWorker(server, "two")
    await one.leadership.step()
    async with two.leadership.taken():
        assert two.leadership.leads
    assert one.leadership.leads
    assert await one.leadership.run(one.work) is False
    assert not one.leadership.leads
    await two.leadership.close()
    await one.leadership.step()
    assert (one.leadership.leads, one.begun) == (True, 2)
    await two.leadership.close()


async def test_a_lead_that_cannot_be_taken_is_said() -> None:
    """A step of an earlier term is under way."""
    server = Server()
    one = SteppingWorker(server, "one")
    await one.leadership.step()
    step = await one.pause()
    server.now = 20.0
    with pytest.raises(StoreError, match="try again"):
        async with one.leadership.taken():
            pass
    one.paused.set()
    assert await step is False


async def test_one_process_always_leads(store: SqliteStore, telemetry: Telemetry, log: LogCapture) -> None:
    """A store that is not shared has no elections, and the series says 1."""
    leadership = Leadership(store, telemetry=telemetry)
    assert (await leadership.step(), leadership.leads, leadership.is_shared) == (False, True, False)
    assert leadership.store is store
    async with leadership.taken():
        assert telemetry.leader is True
    await leadership.close()
    assert log.entries == []


async def test_who_leads_is_logged(telemetry: Telemetry, log: LogCapture) -> None:
    """When it changes."""
    server = Server()
    one = SteppingWorker(server, "one", telemetry)
    await one.leadership.step()
    await one.leadership.step()
    await one.leadership.close()
    assert [entry["event"] for entry in log.entries] == ["leader of the workers", "no longer leader of the workers"]
    with pytest.raises(NotLeadingError):
        await one.work()


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
