"""Leadership: one worker at a time runs the steps of the leader, and each term starts from what is stored."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from structlog.testing import LogCapture
from support.elections import Server, SharedStore

from ragwatch.errors import NotLeadingError, StoreError
from ragwatch.pipeline.leadership import Leadership
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry


class Worker:
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
    one, two = Worker(server, "one"), Worker(server, "two")
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
    one, two = Worker(server, "one"), Worker(server, "two")
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
    one = Worker(server, "one")
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
    one = Worker(server, "one")
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
    one, two = Worker(server, "one"), Worker(server, "two")
    one.fails = True
    with pytest.raises(StoreError, match="away"):
        await one.leadership.step()
    assert not one.leadership.leads
    await two.leadership.step()
    assert two.leadership.leads


async def test_a_change_by_a_person_takes_the_lead() -> None:
    """It is made by the worker that was asked; the former leader notices at its next write."""
    server = Server()
    one, two = Worker(server, "one"), Worker(server, "two")
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
    one = Worker(server, "one")
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
    one = Worker(server, "one", telemetry)
    await one.leadership.step()
    await one.leadership.step()
    await one.leadership.close()
    assert [entry["event"] for entry in log.entries] == ["leader of the workers", "no longer leader of the workers"]
    with pytest.raises(NotLeadingError):
        await one.work()
