"""Source `nats` with a real server: every message is counted once, whatever fails; what is lost is counted."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import nats
import pytest
from nats.js import api
from nats.js.errors import ServiceUnavailableError
from support.brokers import BrokerProcess, Worker, books, counted, nats_server, once
from support.kit import a_line
from support.patience import DEADLINE

from ragwatch.core.snapshot import Lag
from ragwatch.core.tally import Tally
from ragwatch.errors import ConfigError, SourceError
from ragwatch.ports import Batch
from ragwatch.sources.brokers.consumer import BrokerSource as NatsSource
from ragwatch.sources.brokers.nats import LoopThread, Options, build
from ragwatch.sources.brokers.nats import reason_of as _reason
from ragwatch.stores.sqlite.store import SqliteStore

pytestmark = pytest.mark.servers

SECRET = "hunter22"  # noqa: S105 - a made up one


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """One server for this module."""
    process = nats_server(tmp_path_factory.mktemp("nats"))
    yield process
    process.kill()


class Stream:
    """A stream of its own on a server, as its producer and its operator see it."""

    def __init__(self, port: int, *, create: bool = True, **options: Any) -> None:
        self.name = f"rag-{uuid4()}"
        self.port = port
        self._thread = LoopThread("producer")
        self.client = self._thread.run(nats.connect(f"nats://127.0.0.1:{port}", max_reconnect_attempts=-1), 60)
        self.manager: Any = self.client.jetstream(timeout=DEADLINE)
        self._sources: list[NatsSource] = []
        if create:
            self.create(**options)

    def create(self, **options: Any) -> None:
        """Create the stream."""
        self.do(self.manager.add_stream(name=self.name, subjects=[self.name, f"{self.name}.>"], **options))

    def do(self, call: Any) -> Any:
        """Wait for a call of the client."""
        return self._thread.run(call, 60)

    def close(self) -> None:
        """Close all connections."""
        for source in self._sources:
            source.close()
        self.do(self.client.close())
        self._thread.close()

    def add(self, *contents: str | bytes) -> None:
        """Add a record for each name."""
        for content in contents:
            data = a_line(content) if isinstance(content, str) else content
            self.do(self.manager.publish(self.name, data))

    def source(self, **options: Any) -> NatsSource:
        """A source that reads it."""
        defaults = {"start": "beginning", "url": f"nats://127.0.0.1:{self.port}", "ack_wait_seconds": 30}
        self._sources.append(build(Options(name="app", stream=self.name, **defaults | options)))
        return self._sources[-1]

    def worker(self, store: SqliteStore, **options: Any) -> Worker:
        """A worker that reads it."""
        return Worker(self.source(**options), store)

    def end_time_of(self, batch: Batch, source: Any) -> None:
        """Let the time be over after which the messages of a batch are delivered again."""
        reading = source._reading
        assert reading.batch is batch
        for one in (*reading.good, *reading.dead):
            self.do(self.client.publish(one.handle.reply, b"-NAK"))
        self.do(self.client.flush())

    def pending(self) -> int:
        """Messages that are not acknowledged."""
        return int(self.do(self.manager.consumer_info(self.name, "ragwatch")).num_ack_pending)


@pytest.fixture
def new_stream(server: BrokerProcess) -> Iterator[Callable[..., Stream]]:
    """Creates streams."""
    created: list[Stream] = []

    def create(**options: Any) -> Stream:
        created.append(Stream(server.port, **options))
        return created[-1]

    yield create
    for one in created:
        one.close()


@pytest.fixture
def stream(new_stream: Callable[..., Stream]) -> Stream:
    """An empty stream."""
    return new_stream()


def names(count: int, prefix: str = "r") -> list[str]:
    """Ids of records."""
    return [f"{prefix}{number}" for number in range(count)]


async def test_messages_are_acknowledged_when_they_are_stored(stream: Stream, store: SqliteStore) -> None:
    """Every message is pending until its batch is committed; then nothing is left, and the lag is 0."""
    stream.add(*names(25))
    worker = stream.worker(store, batch_records=10)
    assert worker.source.lag() == Lag(None, None)
    batch = worker.take()
    assert (len(batch.lines), batch.numbers[-1], stream.pending(), worker.source.read()) == (10, 10, 10, batch)
    lag = worker.source.lag()
    assert (lag.records, lag.size) == (25, None)
    assert lag.seconds is not None
    assert lag.seconds < 60
    await worker.drain()
    assert (books(store), stream.pending()) == (once(25), 0)
    assert worker.source.lag() == Lag(None, 0.0, records=0)


@pytest.mark.parametrize(("start", "stored"), [("beginning", 3), ("end", 1)])
async def test_where_a_new_consumer_starts(stream: Stream, store: SqliteStore, start: str, stored: int) -> None:
    """At the beginning or at the end of what exists; a second process finds the consumer and reads on."""
    stream.add("a", "b")
    await stream.worker(store, start=start).drain()
    stream.add("c")
    await stream.worker(store, start=start).drain()
    assert books(store) == once(stored)


async def test_delivered_again_counts_once(stream: Stream, store: SqliteStore) -> None:
    """Records are recognised by their id, those without one by their number in the stream."""
    stream.add(*names(5), *(a_line("x", id=None, question=f"Which {number}?") for number in range(5)))
    await stream.worker(store).drain()
    before = books(store)
    for _ in range(2):
        stream.do(stream.manager.delete_consumer(stream.name, "ragwatch"))
        stream.do(stream.manager.add_consumer(stream.name, api.ConsumerConfig(durable_name="ragwatch")))
        await stream.worker(store).drain()
    assert before == books(store) == once(10)
    assert counted(store, Tally.RESENT) == 20


@pytest.mark.parametrize("stored", [False, True])
async def test_killed_before_acknowledging(stream: Stream, store: SqliteStore, *, stored: bool) -> None:
    """What a process has not acknowledged is delivered to another, and counts once, stored or not."""
    stream.add(*names(20))
    killed = stream.worker(store, batch_records=8)
    batch = killed.take()
    if stored:
        killed.admit(batch)
    stream.end_time_of(batch, killed.source)
    other = stream.worker(store)
    await other.drain_until(lambda: books(store) == once(20) and not stream.pending(), "all are delivered again")
    assert counted(store, Tally.RESENT) == (8 if stored else 0)


async def test_stopped_past_the_waiting_time(stream: Stream, store: SqliteStore) -> None:
    """A worker that goes on after its messages were delivered to another counts none of them twice."""
    stream.add(*names(20))
    stopped = stream.worker(store, batch_records=8)
    stream.end_time_of(stopped.take(), stopped.source)
    other = stream.worker(store)
    await other.drain_until(lambda: books(store) == once(20), "all are delivered again")
    await stopped.drain()
    assert (books(store), stream.pending(), counted(store, Tally.RESENT)) == (once(20), 0, 8)


async def test_a_batch_that_waits_for_the_store_is_not_delivered_again(stream: Stream, store: SqliteStore) -> None:
    """While a batch cannot be stored, the server is asked to wait."""
    stream.add(*names(3))
    worker = stream.worker(store, ack_wait_seconds=2.0)  # a busy machine may let this process wait for one second
    batch = worker.take()
    end = time.monotonic() + 3.0
    while time.monotonic() < end:
        assert worker.source.read() is batch
        time.sleep(0.02)  # noqa: ASYNC251 - nothing else runs
    await worker.drain()
    info = stream.do(stream.manager.consumer_info(stream.name, "ragwatch"))
    assert (books(store), info.delivered.consumer_seq) == (once(3), 3)


async def test_removed_before_it_was_read(new_stream: Callable[..., Stream], store: SqliteStore) -> None:
    """Messages that the stream's limit removed are counted as lost, between batches and between processes."""
    stream = new_stream(max_msgs=4)
    stream.add(*names(10))
    worker = stream.worker(store, batch_records=2)
    await worker.intake.step()
    stream.add(*names(5, "s"))
    await worker.drain()
    assert (books(store), counted(store, Tally.LOST, "trimmed")) == (once(6), 3)
    stream.add(*names(7, "t"))
    await stream.worker(store).drain()
    assert (books(store), counted(store, Tally.LOST, "trimmed")) == (once(10), 6)


async def test_a_message_that_ends_every_process_is_given_up(stream: Stream, store: SqliteStore) -> None:
    """After five deliveries it is copied with a reason, and counted; all others are stored."""
    deadly = a_line("r4")
    stream.add(*names(9))
    processes = 0
    while counted(store, Tally.SEEN) < 9:
        worker = stream.worker(store, dead_letters=f"{stream.name}.dead", subject=stream.name)
        while counted(store, Tally.SEEN) < 9:
            batch = worker.source.read()
            if batch is None:
                await asyncio.sleep(0.01)
            elif deadly in batch.lines:
                stream.end_time_of(batch, worker.source)
                break
            else:
                await worker.intake.step()
        else:
            break
        processes += 1
        worker.source.close()
    letter = stream.do(stream.manager.get_last_msg(stream.name, f"{stream.name}.dead"))
    assert (processes, letter.data) == (5, deadly)
    assert letter.headers["Ragwatch-Reason"] == "delivered 5 times and never stored"
    assert (counted(store, Tally.REJECTED, "undeliverable"), stream.pending()) == (1, 0)


async def test_a_lost_consumer_is_created_again_after_what_is_stored(stream: Stream, store: SqliteStore) -> None:
    """Nothing is skipped, nothing counts twice, and the reset is counted; in this process and in the next."""
    stream.add(*names(3))
    worker = stream.worker(store, start="end", batch_records=2)
    await worker.drain()
    stream.add(*names(5, "s"))
    await worker.intake.step()
    stream.do(stream.manager.delete_consumer(stream.name, "ragwatch"))
    await worker.drain()
    assert (books(store), counted(store, Tally.RESETS, "group_recreated")) == (once(5), 1)
    stream.do(stream.manager.delete_consumer(stream.name, "ragwatch"))
    stream.add("last")
    await stream.worker(store, start="end").drain()
    assert (books(store), counted(store, Tally.RESETS, "group_recreated")) == (once(6), 2)


async def test_a_stream_that_is_created_again_is_read_whole(stream: Stream, store: SqliteStore) -> None:
    """Its numbers start over, and its records without an id are new ones."""
    stream.add(*(a_line("x", id=None, question=f"Which {number}?") for number in range(3)))
    worker = stream.worker(store)
    await worker.drain()
    stream.do(stream.manager.delete_stream(stream.name))
    with pytest.raises(SourceError, match="there is no such stream; create it, or correct stream"):
        worker.source.read()
    stream.create()
    stream.add(*(a_line("x", id=None, question=f"Which other {number}?") for number in range(2)))
    await worker.drain()
    assert books(store) == once(5)


async def test_records_that_cannot_be_read(stream: Stream, store: SqliteStore) -> None:
    """An empty message, one too long, and one without JSON are rejected by reason and are done."""
    stream.add(b"", a_line("long", question="x" * 5000), b"{", "good")
    await stream.worker(store, max_record_bytes="4KiB").drain()
    rejected = {labels[1]: count for (name, labels), count in store.tallies().items() if name is Tally.REJECTED}
    assert rejected == {"missing_field": 1, "line_too_long": 1, "torn_json": 1}
    assert (counted(store, Tally.SEEN), stream.pending()) == (4, 0)


def test_some_records_can_be_seen_without_a_consumer(stream: Stream) -> None:
    """Peeking creates no consumer and takes nothing from one."""
    source = stream.source()
    assert source.peek() == (f"the stream {stream.name} is empty", None)
    stream.add("a", "b")
    says, batch = source.peek()
    assert (says, batch and list(batch.lines)) == (f"the stream {stream.name} has records", [a_line("a"), a_line("b")])
    assert stream.do(stream.manager.stream_info(stream.name)).state.consumer_count == 0


def test_what_is_wrong_is_said(new_stream: Callable[..., Stream]) -> None:
    """A stream that does not exist, a server that is not there: an error that names the part and what to do."""
    stream = new_stream(create=False)
    with pytest.raises(
        SourceError, match=rf"nats stream {stream.name} at nats.* no such stream; create it, or correct"
    ):
        stream.source().read()
    with pytest.raises(SourceError, match=r"cannot be reached .* start it, or correct url"):
        stream.source(url="nats://127.0.0.1:1").read()


def test_a_port_with_503_in_it_says_nothing_of_jetstream() -> None:
    """A server that is not there cannot be reached, whatever its port; one without JetStream answers with code 503."""
    refused = ConnectionRefusedError(111, "Connect call failed ('127.0.0.1', 50307)")
    assert _reason(refused).startswith("the server cannot be reached ([Errno 111]")
    assert "no JetStream" in _reason(ServiceUnavailableError(code=503, err_code=10039))


def test_a_wrong_password_is_said(tmp_path: Path) -> None:
    """The error says which keys to correct."""
    server = nats_server(tmp_path, "--user", "rag", "--pass", SECRET)
    try:
        source = build(Options(name="app", stream="s", url=f"nats://127.0.0.1:{server.port}", username="rag"))
        with pytest.raises(SourceError, match=r"refuses the login .* correct username, password, token"):
            source.read()
        source.close()
    finally:
        server.kill()


def test_passwords_are_not_shown() -> None:
    """They are masked."""
    assert SECRET not in repr(Options(name="app", stream="s", password=SECRET, token=SECRET))


def test_the_extra_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the library the error says what to install."""
    monkeypatch.setitem(sys.modules, "nats", None)
    with pytest.raises(ConfigError, match=r"sources.app.kind: .* pip install 'ragwatch-exporter\[nats\]'"):
        build(Options(name="app", stream="s"))


async def test_a_server_that_is_down_is_waited_for(tmp_path: Path, store: SqliteStore) -> None:
    """Reading and acknowledging fail with an error, the lag is unknown; when the server is back, nothing is missing."""
    server = nats_server(tmp_path)
    stream = Stream(server.port)
    try:
        stream.add(*names(20))
        worker = stream.worker(store, batch_records=5, timeout_seconds=1)
        worker.admit(batch := worker.take())
        server.kill()
        with pytest.raises(SourceError):
            worker.source.commit(batch)
        with pytest.raises(SourceError, match="cannot be reached"):
            await asyncio.to_thread(worker.source.read)
        assert worker.source.lag() == Lag(None, None)
        server.start()
        await worker.drain_until(lambda: books(store) == once(20), "it catches up")
        await worker.drain()
        assert counted(store, Tally.RESENT) == 0
    finally:
        server.kill()
        server.start()
        stream.close()
        server.kill()
