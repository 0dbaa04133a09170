"""Source `redis_streams` with a real server: every entry is counted once, whatever fails; what is lost is counted."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from support.brokers import BrokerProcess, Worker, books, counted, once, redis_server
from support.kit import a_line
from support.patience import DEADLINE

from ragwatch.core.snapshot import Lag
from ragwatch.core.tally import Tally
from ragwatch.errors import ConfigError, SourceError
from ragwatch.ports import Batch
from ragwatch.sources.brokers.consumer import BrokerSource as RedisStreamsSource
from ragwatch.sources.brokers.redis_streams import Options, build
from ragwatch.stores.sqlite.store import SqliteStore

pytestmark = pytest.mark.servers

DEAD = "{}:dead"
SECRET = "hunter22"  # noqa: S105 - a made up one


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """One server for this module."""
    process = redis_server(tmp_path_factory.mktemp("redis"))
    yield process
    process.kill()


class Stream:
    """A stream of its own on a server, as its producer and its operator see it."""

    def __init__(self, server: BrokerProcess) -> None:
        self.name = f"rag-{uuid4()}"
        self.client: Any = redis.Redis(port=server.port, protocol=2)
        self.port = server.port
        self._sources: list[RedisStreamsSource] = []

    def close(self) -> None:
        """Close all connections."""
        for source in self._sources:
            source.close()
        self.client.close()

    def add(self, *names: str) -> list[bytes]:
        """Add a record for each name."""
        return [self.client.xadd(self.name, {"data": a_line(name)}) for name in names]

    def source(self, **options: Any) -> RedisStreamsSource:
        """A source that reads it."""
        defaults = {"start": "beginning", "consumer": "one", "url": f"redis://127.0.0.1:{self.port}/0"}
        self._sources.append(build(Options(name="app", stream=self.name, **defaults | options)))
        return self._sources[-1]

    def worker(self, store: SqliteStore, **options: Any) -> Worker:
        """A worker that reads it."""
        return Worker(self.source(**options), store)

    def pending(self) -> int:
        """Entries that the group has not acknowledged."""
        return int(self.client.xpending(self.name, "ragwatch")["pending"])


@pytest.fixture
def stream(server: BrokerProcess) -> Iterator[Stream]:
    """A stream that does not exist yet."""
    one = Stream(server)
    yield one
    one.close()


def names(count: int, prefix: str = "r") -> list[str]:
    """Ids of records."""
    return [f"{prefix}{number}" for number in range(count)]


async def test_entries_are_acknowledged_when_they_are_stored(stream: Stream, store: SqliteStore) -> None:
    """Every entry is pending until its batch is committed; then nothing is left, and the lag is 0."""
    stream.add(*names(25))
    worker = stream.worker(store, batch_records=10)
    assert worker.source.lag() == Lag(None, None)
    batch = worker.take()
    assert (len(batch.lines), stream.pending(), worker.source.read()) == (10, 10, batch)
    lag = worker.source.lag()
    assert (lag.records, lag.size) == (25, None)
    assert lag.seconds is not None
    assert lag.seconds < 60
    await worker.drain()
    assert (books(store), stream.pending()) == (once(25), 0)
    assert worker.source.lag() == Lag(None, 0.0, records=0)


@pytest.mark.parametrize(("start", "stored"), [("beginning", 3), ("end", 1)])
async def test_where_a_new_group_starts(stream: Stream, store: SqliteStore, start: str, stored: int) -> None:
    """At the beginning or at the end of what exists; a second process finds the group and reads on."""
    stream.add("a", "b")
    await stream.worker(store, start=start).drain()
    stream.add("c")
    await stream.worker(store, start=start).drain()
    assert books(store) == once(stored)


async def test_a_stream_that_does_not_exist_yet_is_read_whole(stream: Stream, store: SqliteStore) -> None:
    """The group is created before the first entry, so that none is missed."""
    worker = stream.worker(store, start="end")
    await worker.drain()
    stream.add(*names(3))
    await worker.drain()
    assert books(store) == once(3)


async def test_delivered_three_times_counts_once(stream: Stream, store: SqliteStore) -> None:
    """Records are recognised by their id, those without one by the id of the entry."""
    stream.add(*names(5))
    for number in range(5):
        stream.client.xadd(stream.name, {"data": a_line("x", id=None, question=f"Which {number}?")})
    worker = stream.worker(store)
    await worker.drain()
    before = books(store)
    for _ in range(2):
        stream.client.xgroup_setid(stream.name, "ragwatch", "0")
        await worker.drain()
    assert before == books(store) == once(10)
    assert counted(store, Tally.RESENT) == 20


async def test_killed_between_storing_and_acknowledging(stream: Stream, store: SqliteStore) -> None:
    """The next process with the same name is given the entries again, and counts them once."""
    stream.add(*names(30))
    worker = stream.worker(store, batch_records=10)
    worker.admit(worker.take())
    worker.source.close()
    assert stream.pending() == 10
    await stream.worker(store, batch_records=10).drain()
    assert (books(store), stream.pending()) == (once(30), 0)


async def test_killed_before_storing(stream: Stream, store: SqliteStore) -> None:
    """Entries that were delivered and not stored are delivered again."""
    stream.add(*names(3))
    stream.worker(store).take()
    await stream.worker(store).drain()
    assert books(store) == once(3)


@pytest.mark.parametrize("stored", [False, True])
async def test_stopped_past_the_idle_time(stream: Stream, store: SqliteStore, *, stored: bool) -> None:
    """Another consumer takes the entries over; the stopped one goes on later: each is counted once."""
    stream.add(*names(20))
    stopped = stream.worker(store, batch_records=8)
    batch = stopped.take()
    if stored:
        stopped.admit(batch)
    other = stream.worker(store, consumer="two", claim_idle_seconds=0.02)
    await other.drain_until(lambda: books(store) == once(20) and not stream.pending(), "all are taken over")
    await stopped.drain()
    assert (books(store), stream.pending()) == (once(20), 0)


async def test_trimmed_before_it_was_read(stream: Stream, store: SqliteStore) -> None:
    """Entries that the stream's limit removed are counted as lost: once, whoever notices, and again the next time."""
    stream.add(*names(10))
    workers = [stream.worker(store, batch_records=2, consumer=name) for name in ("one", "two")]
    await workers[0].intake.step()
    stream.client.xtrim(stream.name, maxlen=3, approximate=False)
    for worker in workers:
        worker.source._measure_at = 0.0  # type: ignore[attr-defined]  # as a second later
        await worker.drain()
    assert counted(store, Tally.LOST, "trimmed") == 5
    stream.add(*names(4, "s"))
    stream.client.xtrim(stream.name, maxlen=1, approximate=False)
    for worker in workers:
        worker.source._measure_at = 0.0  # type: ignore[attr-defined]
        await worker.drain()
    assert (counted(store, Tally.LOST, "trimmed"), books(store)) == (8, once(6))
    assert workers[0].source.lag() == Lag(None, 0.0, records=0)


async def test_trimmed_while_everything_is_read(stream: Stream, store: SqliteStore) -> None:
    """What was stored before it was trimmed is not lost, nor is what was trimmed before the group existed."""
    stream.add(*names(10))
    stream.client.xtrim(stream.name, maxlen=4, approximate=False)
    worker = stream.worker(store)
    await worker.drain()
    stream.client.xtrim(stream.name, maxlen=0, approximate=False)
    stream.add("later")
    worker.source._measure_at = 0.0  # type: ignore[attr-defined]
    await worker.drain()
    assert (books(store), counted(store, Tally.LOST, "trimmed")) == (once(5), 0)


@pytest.mark.parametrize("taken_over", [False, True])
async def test_deleted_before_it_was_stored(stream: Stream, store: SqliteStore, *, taken_over: bool) -> None:
    """Entries that were delivered and deleted before they were stored are counted as lost, and are pending no more."""
    ids = stream.add(*names(6))
    stream.worker(store).take()
    stream.client.xdel(stream.name, *ids[:4])
    options = {"consumer": "two", "claim_idle_seconds": 0.001} if taken_over else {}
    worker = stream.worker(store, **options)
    await worker.drain_until(lambda: books(store) == once(2), "the others are stored")
    await worker.drain()
    assert (counted(store, Tally.LOST, "deleted"), stream.pending()) == (4, 0)


async def test_a_record_that_ends_every_process_becomes_a_dead_letter(stream: Stream, store: SqliteStore) -> None:
    """After five deliveries it is copied with a reason, and counted; all others are stored."""
    deadly = a_line("r4")
    stream.add(*names(9))
    processes = 0
    while True:
        worker = stream.worker(store)
        while (batch := worker.source.read()) is not None and deadly not in batch.lines:
            await worker.intake.step()
        if batch is None:
            break
        processes += 1
    assert processes == 5
    ((_, letter),) = stream.client.xrange(DEAD.format(stream.name))
    assert (letter[b"data"], letter[b"ragwatch_reason"]) == (deadly, b"delivered 5 times and never stored")
    assert counted(store, Tally.REJECTED, "undeliverable") == 1
    assert (counted(store, Tally.SEEN), stream.pending()) == (9, 0)


async def test_a_lost_group_is_created_again_after_what_is_stored(stream: Stream, store: SqliteStore) -> None:
    """After a failover that lost the group, nothing is skipped, nothing counts twice, and the reset is counted."""
    stream.add(*names(3))
    worker = stream.worker(store, start="end", batch_records=2)
    await worker.drain()
    stream.add(*names(5, "s"))
    await worker.intake.step()
    stream.client.xgroup_destroy(stream.name, "ragwatch")
    await worker.drain()
    assert (books(store), counted(store, Tally.RESETS, "group_recreated")) == (once(5), 1)
    stream.client.xgroup_destroy(stream.name, "ragwatch")
    stream.add("last")
    await stream.worker(store, start="end").drain()
    assert (books(store), counted(store, Tally.RESETS, "group_recreated")) == (once(6), 2)


async def test_a_lost_stream_is_read_from_its_new_beginning(stream: Stream, store: SqliteStore) -> None:
    """After FLUSHALL the stream may have smaller ids than those that are stored: it is read whole."""
    stream.add(*names(3))
    worker = stream.worker(store)
    await worker.drain()
    stream.client.delete(stream.name)
    stream.client.xadd(stream.name, {"data": a_line("new")}, id="1-1")
    await worker.drain()
    assert books(store) == once(4)


async def test_records_that_cannot_be_read(stream: Stream, store: SqliteStore) -> None:
    """An entry without the field, with an empty or too long one, or without JSON is rejected by reason and is done."""
    stream.client.xadd(stream.name, {"other": "{}"})
    stream.client.xadd(stream.name, {"data": ""})
    stream.client.xadd(stream.name, {"data": a_line("long", question="x" * 5000)})
    stream.client.xadd(stream.name, {"data": b"{"})
    stream.add("good")
    await stream.worker(store, max_record_bytes="4KiB").drain()
    rejected = {labels[1]: count for (name, labels), count in store.tallies().items() if name is Tally.REJECTED}
    assert rejected == {"missing_field": 2, "line_too_long": 1, "torn_json": 1}
    assert (counted(store, Tally.SEEN), stream.pending()) == (5, 0)


def test_what_is_wrong_is_said(stream: Stream) -> None:
    """A wrong password, a key of another type, missing rights: an error that names the part and what to do."""
    stream.client.set(stream.name, "text")
    with pytest.raises(SourceError, match=rf"redis stream {stream.name} at redis.* holds no stream; correct stream"):
        stream.source().read()
    with pytest.raises(SourceError, match=r"refuses the login .* correct username and password"):
        stream.source(username="nobody", password=SECRET).read()
    stream.client.acl_setuser("reader", enabled=True, passwords=f"+{SECRET}", commands=["+@all"], keys=["other"])
    with pytest.raises(SourceError, match="may not do this"):
        stream.source(username="reader", password=SECRET).read()
    with pytest.raises(SourceError, match=r"cannot be reached .* start it, or correct url"):
        stream.source(url="redis://127.0.0.1:1").read()


def test_passwords_are_not_shown() -> None:
    """A password in the address is refused, without repeating it; one in its own key is masked."""
    with pytest.raises(ValidationError) as refused:
        Options(name="app", stream="s", url=f"redis://:{SECRET}@host")
    assert SECRET not in str(refused.value)
    assert "give them as username and password" in str(refused.value)
    assert SECRET not in repr(Options(name="app", stream="s", password=SECRET))


def test_the_extra_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the library the error says what to install."""
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(ConfigError, match=r"sources.app.kind: .* pip install 'ragwatch-exporter\[redis\]'"):
        build(Options(name="app", stream="s"))


async def test_a_server_that_is_down_is_waited_for(tmp_path: Path, store: SqliteStore) -> None:
    """Reading and acknowledging fail with an error, the lag is unknown; when the server is back, nothing is missing."""
    server = redis_server(tmp_path)
    stream = Stream(server)
    try:
        stream.add(*names(20))
        worker = stream.worker(store, batch_records=5, timeout_seconds=0.2)
        worker.admit(batch := worker.take())
        server.kill()
        with pytest.raises(SourceError, match="cannot be reached"):
            worker.source.commit(batch)
        with pytest.raises(SourceError, match="cannot be reached"):
            await worker.intake.step()
        assert worker.intake.lag == Lag(None, None)
        server.start()
        await worker.drain()
        assert (books(store), stream.pending(), counted(store, Tally.RESENT)) == (once(20), 0, 0)
    finally:
        server.kill()
        stream.close()


class Step(StrEnum):
    """What may happen to a consumer, between any two commands."""

    READ = "read"
    STORE = "store"
    COMMIT = "commit"
    RESTART = "restart"


@pytest.mark.costly
@given(st.lists(st.tuples(st.integers(0, 1), st.sampled_from(Step)), max_size=30))
def test_nothing_is_skipped_whatever_two_consumers_do(server: BrokerProcess, steps: list[tuple[int, Step]]) -> None:
    """Two consumers read, store, acknowledge and restart in any order: at last every entry was stored."""
    stream = Stream(server)
    ids = stream.add(*names(6))
    stored: set[int] = set()

    def started(number: int) -> RedisStreamsSource:
        return stream.source(consumer=str(number), batch_records=2, claim_idle_seconds=0.001, max_deliveries=100)

    def store(batch: Batch | None) -> None:
        stored.update([] if batch is None else batch.offsets)

    sources = [started(0), started(1)]
    batches: list[Batch | None] = [None, None]
    try:
        for number, step in steps:
            batch = batches[number]
            if step is Step.RESTART:
                sources[number], batches[number] = started(number), None
            elif step is Step.READ:
                batches[number] = sources[number].read()
            elif step is Step.STORE:
                store(batch)
            elif batch is not None and stored.issuperset(batch.offsets):
                sources[number].commit(batch)
        last = started(2)
        end = time.monotonic() + DEADLINE
        while len(stored) < len(ids) or stream.pending():
            assert time.monotonic() < end
            if (batch := last.read()) is not None:
                store(batch)
                last.commit(batch)
        assert len(stored) == len(ids)
    finally:
        stream.close()
