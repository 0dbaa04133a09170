"""Source `sqs` with moto's server: every message is counted once, whatever fails.

moto keeps visibility timeouts, numbers of deliveries and receipt handles as SQS does; it loses and repeats nothing.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import boto3
import pytest
from moto.server import ThreadedMotoServer
from support.brokers import Worker, books, counted, free_port, once
from support.kit import a_line

from ragwatch.core.tally import Tally
from ragwatch.errors import ConfigError, SourceError
from ragwatch.sources.sqs import Options, SqsSource, build
from ragwatch.stores.sqlite.store import SqliteStore

SECRET = "hunter22"  # noqa: S105 - a made up one
KEYS = {"access_key_id": "AKIA", "secret_access_key": SECRET, "region": "eu-central-1"}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Address of a server with the API of SQS."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", free_port(), verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


class Queue:
    """A queue of its own, as its producer and its operator see it."""

    def __init__(self, address: str) -> None:
        self._address = address
        self.client: Any = boto3.client(
            "sqs",
            endpoint_url=address,
            region_name=KEYS["region"],
            aws_access_key_id="AKIA",
            aws_secret_access_key=SECRET,
        )
        self.url, self.dead = (self.client.create_queue(QueueName=f"rag-{uuid4()}")["QueueUrl"] for _ in range(2))
        self._sources: list[SqsSource] = []

    def add(self, *contents: str | bytes) -> None:
        """Add a record for each name."""
        bodies = [one if isinstance(one, bytes) else a_line(one) for one in contents]
        for start in range(0, len(bodies), 10):
            part = enumerate(bodies[start : start + 10])
            entries = [{"Id": str(place), "MessageBody": body.decode()} for place, body in part]
            assert not self.client.send_message_batch(QueueUrl=self.url, Entries=entries).get("Failed")

    def source(self, **options: Any) -> SqsSource:
        """A source that reads it."""
        place = {"queue_url": self.url, "endpoint_url": self._address}
        self._sources.append(build(Options(name="app", **place | KEYS | options)))
        return self._sources[-1]

    def worker(self, store: SqliteStore, **options: Any) -> Worker:
        """A worker that reads it."""
        return Worker(self.source(**options), store)

    def left(self, url: str | None = None) -> int:
        """Messages in a queue."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        reply = self.client.get_queue_attributes(QueueUrl=url or self.url, AttributeNames=names)
        return sum(map(int, reply["Attributes"].values()))

    def close(self) -> None:
        """Close all connections."""
        self.client.close()
        for source in self._sources:
            source.close()


@pytest.fixture
def queue(address: str) -> Iterator[Queue]:
    """An empty queue."""
    one = Queue(address)
    yield one
    one.close()


def names(count: int) -> list[str]:
    """Ids of records."""
    return [f"r{number}" for number in range(count)]


async def test_messages_are_deleted_when_they_are_stored(queue: Queue, store: SqliteStore) -> None:
    """All records are stored in batches that grow, what cannot be read is rejected, and the queue is empty then."""
    queue.add(*names(40), b"{")
    worker = queue.worker(store, batch_records=16)
    sizes = []
    while counted(store, Tally.SEEN) < 40:
        sizes.append(len(worker.take().lines))
        assert await worker.intake.step()
    assert sizes == [1, 2, 4, 8, 16, 10]
    assert (counted(store, Tally.REJECTED, "torn_json"), queue.left()) == (1, 0)
    assert worker.source.read() is None
    assert worker.source.lag().records == 0
    assert worker.source.lag().seconds is None


@pytest.mark.costly
async def test_killed_before_and_after_storing(queue: Queue, store: SqliteStore) -> None:
    """What was not deleted is delivered again, and counts once, stored or not; one without an id, too."""
    row = b'{"question": "q", "contexts": ["c"], "answer": "a", "route": "search"}'
    queue.add("r1", row, "r3")
    for _ in range(2):
        killed = queue.worker(store, visibility_seconds=1)
        killed.admit(killed.take())
        killed.source.close()
    queue.worker(store, visibility_seconds=1).take()  # ends before it stores anything
    await asyncio.sleep(1.1)
    worker = queue.worker(store)
    await worker.drain_until(lambda: queue.left() == 0, "all are deleted")
    assert books(store) == once(3)
    assert counted(store, Tally.RESENT) == 2


async def test_a_message_that_ends_every_process_is_given_up(queue: Queue, store: SqliteStore) -> None:
    """After so many deliveries it is counted and copied with the reason; no other message goes with it."""
    queue.add("bad", *names(5))
    deaths = 0
    while deaths < 2:
        process = queue.worker(store, visibility_seconds=1, max_deliveries=2, dead_letters=queue.dead)
        while True:
            batch = process.source.read()
            if batch is not None and any(b'"bad"' in line for line in batch.lines):
                deaths += 1
                break
            if not await process.intake.step():
                break
        process.source.close()
        await asyncio.sleep(1.1)
    worker = queue.worker(store, visibility_seconds=1, max_deliveries=2, dead_letters=queue.dead)
    await worker.drain_until(lambda: queue.left() == 0, "nothing is left")
    assert books(store) == {**once(5), "seen": 6, "rejected": 1}
    assert counted(store, Tally.REJECTED, "undeliverable") == 1
    (letter,) = queue.client.receive_message(QueueUrl=queue.dead, MessageAttributeNames=["All"])["Messages"]
    assert '"bad"' in letter["Body"]
    assert letter["MessageAttributes"]["RagwatchReason"]["StringValue"] == "delivered 2 times and never stored"


@pytest.mark.costly
async def test_a_worker_that_is_stopped_past_the_visibility_timeout(queue: Queue, store: SqliteStore) -> None:
    """Another one reads its messages; when it goes on, they are known, and its late deletion is no error."""
    queue.add(*names(3))
    stopped, other = queue.worker(store, visibility_seconds=1), queue.worker(store)
    stopped.take()
    await asyncio.sleep(1.1)
    await other.drain_until(lambda: counted(store, Tally.SEEN) == 3, "the other has counted all")
    await stopped.drain()
    assert books(store) == once(3)
    assert (counted(store, Tally.RESENT), queue.left()) == (1, 0)


@pytest.mark.costly
async def test_a_batch_that_waits_for_the_store_stays_with_its_worker(queue: Queue) -> None:
    """Its visibility is extended while it cannot be stored."""
    queue.add("r1")
    seconds = iter([0.0, 0.0, 40.0, 40.0])
    source = SqsSource(
        Options(name="app", queue_url=queue.url, endpoint_url=queue._address, visibility_seconds=2, **KEYS),
        monotonic=lambda: next(seconds, 40.0),
    )
    batch = source.read()
    await asyncio.sleep(1.2)
    assert source.read() is batch
    await asyncio.sleep(1.0)  # beyond the first timeout
    assert queue.client.receive_message(QueueUrl=queue.url).get("Messages") is None
    source.close()


def test_peek_takes_nothing(queue: Queue) -> None:
    """What `ragwatch check` shows stays in the queue for all workers."""
    source = queue.source()
    assert "is empty" in source.peek()[0]
    queue.add("r1")
    text, batch = source.peek()
    assert ("has records" in text, batch is not None and len(batch.lines)) == (True, 1)
    assert source.read() is not None


def test_what_is_wrong_is_said(queue: Queue) -> None:
    """A server that is down, a queue that is missing, a region that nobody names: each with what to do."""
    with pytest.raises(SourceError, match="there is no such queue; create it, or correct queue_url"):
        queue.source(queue_url=f"{queue.url}x").read()
    dead = f"http://127.0.0.1:{free_port()}"
    down = queue.source(queue_url=f"{dead}/1/rag", endpoint_url=dead)
    with pytest.raises(SourceError, match="the server cannot be reached"):
        down.read()
    assert down.lag().records is None
    with pytest.raises(ConfigError, match=r"sources\.app\.region: "):
        build(Options(name="app", queue_url="https://sqs.eu.amazonaws.com/1/rag"))
    shown = repr(Options(name="app", queue_url=queue.url, **KEYS))
    assert SECRET not in shown


def test_the_extra_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what to install."""
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(ConfigError, match=r"pip install 'ragwatch-exporter\[sqs\]'"):
        build(Options(name="app", queue_url="https://sqs.eu.amazonaws.com/1/rag"))
