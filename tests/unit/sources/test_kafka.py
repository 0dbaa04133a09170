"""Source `kafka` with the mock cluster of librdkafka: every message is counted once, whatever fails.

A group of the mock cluster takes three seconds to form, and it keeps a static member that has left until its session
ends, which is why most tests are marked costly: they wait.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import confluent_kafka
import pytest
from support.brokers import Worker, books, counted, once
from support.kit import a_line
from support.patience import DEADLINE

from ragwatch.core.tally import Tally
from ragwatch.errors import ConfigError, SourceError
from ragwatch.sources.brokers.consumer import BrokerSource as KafkaSource
from ragwatch.sources.brokers.kafka import Options, build
from ragwatch.stores.sqlite.store import SqliteStore

SECRET = "hunter22"  # noqa: S105 - a made up one


class Cluster:
    """A mock cluster of one broker, in this process."""

    def __init__(self) -> None:
        owner = {"bootstrap.servers": "mock", "test.mock.num.brokers": 1, "log_level": 0}
        self._owner: Any = confluent_kafka.Producer(owner)
        brokers = self._owner.list_topics(timeout=DEADLINE).brokers.values()
        self.servers = ",".join(f"{one.host}:{one.port}" for one in brokers)
        self.producer: Any = confluent_kafka.Producer({"bootstrap.servers": self.servers, "log_level": 0})

    def create(self, name: str) -> None:
        """Nothing to do: a topic is created by the first message, with four partitions."""


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    """One cluster for this module."""
    return Cluster()


class Topic:
    """A topic of its own, as its producer and its operator see it. It has four partitions."""

    def __init__(self, cluster: Cluster) -> None:
        self.name = f"rag-{uuid4()}"
        self.cluster = cluster
        self._sources: list[KafkaSource] = []
        cluster.create(self.name)
        self.add("first", partition=0)  # which creates it

    def add(self, *contents: str | bytes, partition: int | None = None) -> None:
        """Add a record for each name."""
        for number, content in enumerate(contents):
            data = a_line(content) if isinstance(content, str) else content
            where = number % 4 if partition is None else partition
            self.cluster.producer.produce(self.name, data, partition=where)
        assert not self.cluster.producer.flush(DEADLINE)

    def source(self, **options: Any) -> KafkaSource:
        """A source that reads it."""
        defaults: dict[str, Any] = {"start": "beginning", "servers": self.cluster.servers}
        defaults["properties"] = {"session.timeout.ms": "6000"}  # the shortest that a mock group can form in
        self._sources.append(build(Options(name="app", topic=self.name, **defaults | options)))
        return self._sources[-1]

    def worker(self, store: SqliteStore, **options: Any) -> Worker:
        """A worker that reads it."""
        return Worker(self.source(**options), store)

    def committed(self) -> int:
        """Messages up to the committed offsets."""
        consumer = confluent_kafka.Consumer({"bootstrap.servers": self.cluster.servers, "group.id": "ragwatch"})
        try:
            parts = [confluent_kafka.TopicPartition(self.name, number) for number in range(4)]
            return sum(max(0, one.offset) for one in consumer.committed(parts, timeout=DEADLINE))
        finally:
            consumer.close()

    def close(self) -> None:
        """Close all members of the group."""
        for source in self._sources:
            source.close()


@pytest.fixture
def topic(cluster: Cluster) -> Iterator[Topic]:
    """A topic with one record."""
    one = Topic(cluster)
    yield one
    one.close()


def names(count: int, prefix: str = "r") -> list[str]:
    """Ids of records."""
    return [f"{prefix}{number}" for number in range(count)]


def crash(source: Any) -> None:
    """Leave the group without committing anything, as it is after a process was killed."""
    source._client.partitions.clear()
    source.close()


async def drained(worker: Worker, count: int) -> None:
    """Step until so many records are counted."""
    await worker.drain_until(lambda: counted(worker.store, Tally.SEEN) == count, f"{count} are stored")


async def test_offsets_are_committed_when_messages_are_stored(topic: Topic, store: SqliteStore) -> None:
    """Records of all partitions are stored, what cannot be read is rejected, and the lag is 0 in the end."""
    topic.add(*names(24))
    topic.add(b"", b"{", partition=1)
    worker = topic.worker(store, batch_records=10)
    await worker.drain_until(worker.source.read, "a batch is read")
    source: Any = worker.source
    batch, source._client._polled_at = (
        source.read(),
        float("-inf"),
    )  # as after some seconds in which it could not be stored
    assert source.read() is batch
    await drained(worker, 27)
    await worker.drain()
    assert (counted(store, Tally.REJECTED, "missing_field"), counted(store, Tally.REJECTED, "torn_json")) == (1, 1)
    assert (topic.committed(), worker.source.read()) == (27, None)
    lag = worker.source.lag()
    assert (lag.size, lag.seconds, lag.records) == (None, 0.0, 0)
    assert topic.source().peek()[0] == f"the topic {topic.name} has records"


@pytest.mark.costly
async def test_killed_before_and_after_storing(topic: Topic, store: SqliteStore) -> None:
    """What was not committed is read again by the next process, and counts once, stored or not."""
    topic.add(*names(9), partition=0)
    killed = topic.worker(store, batch_records=4)
    await killed.drain_until(killed.source.read, "a batch is read")
    killed.admit(killed.take())
    crash(killed.source)
    stored = counted(store, Tally.SEEN)
    assert 0 < stored < 10
    await drained(topic.worker(store), 10)
    assert books(store) == once(10)
    assert 0 < counted(store, Tally.RESENT) <= stored  # those of an earlier batch may have been committed


@pytest.mark.costly
async def test_removed_before_it_was_read(topic: Topic, store: SqliteStore) -> None:
    """Messages that the broker removed are counted as lost: those between the committed offset and the first one."""
    worker = topic.worker(store)
    await drained(worker, 1)
    worker.source.close()
    padding = "x" * 100_000  # a partition of the mock cluster keeps some 5 MB
    for start in range(0, 80, 20):
        topic.add(*(a_line(f"r{number}", answer=padding) for number in range(start, start + 20)), partition=0)
    worker = topic.worker(store)
    await worker.drain_until(lambda: topic.committed() == 81, "all is read")
    lost = counted(store, Tally.LOST, "trimmed")
    assert lost > 0
    assert books(store) == once(81 - int(lost))


@pytest.mark.slow
async def test_a_message_that_ends_every_process_is_given_up(topic: Topic, store: SqliteStore) -> None:
    """After five attempts it is copied with a reason, and counted; all others are stored."""
    deadly = a_line("r4")
    topic.add(*names(9), partition=0)
    dead = f"{topic.name}.dead"
    topic.cluster.producer.produce(dead, b"creates it")
    topic.cluster.producer.flush(DEADLINE)
    processes = 0
    while counted(store, Tally.SEEN) < 10:
        worker = topic.worker(store, dead_letters=dead)
        while counted(store, Tally.SEEN) < 10:
            batch = worker.source.read()
            if batch is not None and deadly in batch.lines:
                processes += 1
                crash(worker.source)
                break
            if batch is not None:
                await worker.intake.step()
    assert processes == 5
    assert counted(store, Tally.REJECTED, "undeliverable") == 1
    reader = confluent_kafka.Consumer(
        {"bootstrap.servers": topic.cluster.servers, "group.id": "reader", "auto.offset.reset": "earliest"}
    )
    reader.assign([confluent_kafka.TopicPartition(dead, number, 0) for number in range(4)])
    letters = [one for one in reader.consume(2, DEADLINE) if one.value() == deadly]
    reader.close()
    assert dict(letters[0].headers())["ragwatch-reason"] == b"delivered 5 times and never stored"


@pytest.mark.costly
async def test_a_second_worker_takes_its_share(topic: Topic, store: SqliteStore) -> None:
    """While partitions move between workers, every message is counted once, and none is left out."""
    topic.add(*names(40))
    workers = [topic.worker(store, batch_records=3, consumer="one")]
    await workers[0].drain_until(lambda: counted(store, Tally.SEEN) > 3, "some are stored")
    workers.append(topic.worker(store, batch_records=3, consumer="two"))
    end = time.monotonic() + DEADLINE
    topic.add(*names(40, "s"))
    while counted(store, Tally.SEEN) < 81 or not all(one.source._client.partitions for one in workers):  # type: ignore[attr-defined]
        assert time.monotonic() < end
        for worker in workers:
            await worker.intake.step()
    workers[0].source.close()
    topic.add(*names(40, "t"))
    await drained(workers[1], 121)
    assert books(store) == once(121)


@pytest.mark.costly
async def test_where_a_new_group_starts(topic: Topic, store: SqliteStore) -> None:
    """At the end: only what comes later is read. Where the group was lost: after what is stored."""
    worker = topic.worker(store, start="end")
    source: Any = worker.source
    await worker.drain_until(lambda: source.read() is None and source._client.joined, "it has joined")
    topic.add("later", partition=0)
    await drained(worker, 1)
    topic.add("last", partition=0)
    await drained(topic.worker(store, start="end", group="other"), 2)
    assert (books(store), counted(store, Tally.RESETS, "group_recreated")) == (once(2), 1)


def test_what_is_wrong_is_said(cluster: Cluster) -> None:
    """No broker, no property of that name: an error that names the part and what to do."""
    nowhere = {"servers": "127.0.0.1:1", "timeout_seconds": 0.3}
    for call in (lambda source: source.read(), lambda source: source.peek()):
        source = build(Options(name="app", topic="rag", **nowhere))
        with pytest.raises(SourceError, match=r"kafka topic rag at 127.0.0.1:1: .* start them, or correct servers"):
            call(source)
        source.close()
    source = build(Options(name="app", topic="rag", servers=cluster.servers, properties={"no.such": "x"}))
    with pytest.raises(SourceError, match=r"no\.such"):
        source.read()


def test_passwords_are_not_shown() -> None:
    """They are masked, further properties as well, and are given to the client."""
    options = Options(name="app", topic="t", username="rag", password=SECRET, tls=True, properties={"ssl.key": SECRET})
    assert SECRET not in repr(options)
    known = options.client_properties()
    assert (known["security.protocol"], known["sasl.password"], known["ssl.key"]) == ("sasl_ssl", SECRET, SECRET)


def test_the_extra_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the library the error says what to install."""
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(ConfigError, match=r"sources.app.kind: .* pip install 'ragwatch-exporter\[kafka\]'"):
        build(Options(name="app", topic="t"))
