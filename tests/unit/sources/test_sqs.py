"""Source `sqs` with moto's server: every message is counted once, whatever fails.

moto keeps visibility timeouts, numbers of deliveries and receipt handles as SQS does; it loses and repeats nothing.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import boto3
import orjson
import pytest
from moto.server import ThreadedMotoServer
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from support.brokers import Worker, books, counted, once
from support.kit import Clock, a_line
from support.ports import free_port
from support.retrievers import serving

from ragwatch.core.tally import Tally
from ragwatch.errors import ConfigError, SourceError
from ragwatch.ports import Batch
from ragwatch.sources.brokers.consumer import BrokerSource as SqsSource
from ragwatch.sources.brokers.sqs import Options, SqsClient, build
from ragwatch.stores.sqlite.store import SqliteStore

pytestmark = pytest.mark.servers

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

    def __init__(self, address: str, *, fifo: bool = False) -> None:
        self._address = address
        self.client: Any = boto3.client(
            "sqs",
            endpoint_url=address,
            region_name=KEYS["region"],
            aws_access_key_id="AKIA",
            aws_secret_access_key=SECRET,
        )
        end, more = (".fifo", {"Attributes": {"FifoQueue": "true"}}) if fifo else ("", {})
        names = (f"rag-{uuid4()}{end}" for _ in range(2))
        self.url, self.dead = (self.client.create_queue(QueueName=name, **more)["QueueUrl"] for name in names)
        self._sources: list[SqsSource] = []

    def add(self, *contents: str | bytes) -> None:
        """Add a record for each name."""
        bodies = [one if isinstance(one, bytes) else a_line(one) for one in contents]
        for start in range(0, len(bodies), 10):
            part = enumerate(bodies[start : start + 10])
            entries = [{"Id": str(place), "MessageBody": body.decode()} for place, body in part]
            assert not self.client.send_message_batch(QueueUrl=self.url, Entries=entries).get("Failed")

    def add_to_groups(self, *names: str) -> None:
        """Add a record for each name to the group of its first letter; the name is its deduplication id."""
        for name in names:
            self.client.send_message(
                QueueUrl=self.url,
                MessageBody=a_line(name).decode(),
                MessageGroupId=name[0],
                MessageDeduplicationId=name,
            )

    def end_time_of(self, batch: Batch, source: SqsSource) -> None:
        """Let the time be over after which the messages of a batch are delivered again."""
        reading = source._reading
        assert reading is not None
        assert reading.batch is batch
        for one in (*reading.good, *reading.dead):
            self.client.change_message_visibility(QueueUrl=self.url, ReceiptHandle=one.handle[0], VisibilityTimeout=0)

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


@pytest.fixture
def fifo(address: str) -> Iterator[Queue]:
    """An empty FIFO queue."""
    one = Queue(address, fifo=True)
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
    taken = []
    for stored in (True, True, False):  # the last one ends before it stores anything
        killed = queue.worker(store)
        taken.append((batch := killed.take(), killed.source))
        if stored:
            killed.admit(batch)
    for batch, source in taken:
        queue.end_time_of(batch, source)
        source.close()
    worker = queue.worker(store)
    await worker.drain_until(lambda: queue.left() == 0, "all are deleted")
    assert books(store) == once(3)
    assert counted(store, Tally.RESENT) == 2


async def test_a_message_that_ends_every_process_is_given_up(queue: Queue, store: SqliteStore) -> None:
    """After so many deliveries it is counted and copied with the reason; no other message goes with it."""
    queue.add("bad", *names(5))
    deaths = 0
    while deaths < 2:
        process = queue.worker(store, max_deliveries=2, dead_letters=queue.dead)
        while True:
            batch = process.source.read()
            if batch is not None and any(b'"bad"' in line for line in batch.lines):
                deaths += 1
                queue.end_time_of(batch, process.source)
                break
            if not await process.intake.step():
                break
        process.source.close()
    worker = queue.worker(store, max_deliveries=2, dead_letters=queue.dead)
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
    stopped, other = queue.worker(store), queue.worker(store)
    queue.end_time_of(stopped.take(), stopped.source)
    await other.drain_until(lambda: counted(store, Tally.SEEN) == 3, "the other has counted all")
    await stopped.drain()
    assert books(store) == once(3)
    assert (counted(store, Tally.RESENT), queue.left()) == (1, 0)


def test_a_batch_that_waits_for_the_store_stays_with_its_worker(queue: Queue) -> None:
    """Its visibility is extended while it cannot be stored: its time is over just before, and nobody else gets it."""
    queue.add("r1")
    clock = Clock(0.0)
    source = SqsSource(Options(name="app", queue_url=queue.url, endpoint_url=queue._address, **KEYS), SqsClient, clock)
    batch = source.read()
    assert batch is not None
    clock.now = 40.0
    queue.end_time_of(batch, source)
    assert source.read() is batch
    assert queue.client.receive_message(QueueUrl=queue.url).get("Messages") is None
    source.close()


def ids_of(batch: Batch | None) -> list[str]:
    """Ids of the records of a batch."""
    return [] if batch is None else [orjson.loads(line)["id"] for line in batch.lines]


async def test_groups_of_a_fifo_queue_keep_their_order(fifo: Queue, store: SqliteStore) -> None:
    """One worker at a time has a group; its records are stored in order, by whichever worker, after a kill too."""
    sent = [f"{group}{number}" for number in range(8) for group in "xyz"]
    fifo.add_to_groups(*sent, "x0", "y7")
    killed, other = fifo.worker(store), fifo.worker(store, batch_records=16)
    stored = ids_of(killed.take())
    assert stored == ["x0"]
    killed.admit(killed.take())
    order: list[str] = []
    while len(order) < 16:
        order += ids_of(other.take())
        assert await other.intake.step()
    assert not any(name.startswith("x") for name in order)
    fifo.end_time_of(killed.take(), killed.source)
    later = fifo.worker(store)
    while len(order) < 24:
        order += ids_of(later.take())
        assert await later.intake.step()
    assert sorted(order, key=lambda name: name[0]) == [f"{group}{number}" for group in "xyz" for number in range(8)]
    assert (books(store), fifo.left(), counted(store, Tally.RESENT)) == (once(24), 0, 1)


async def test_a_dead_letter_of_a_fifo_queue_frees_its_group(fifo: Queue, store: SqliteStore) -> None:
    """It is copied to a FIFO queue, once; what is behind it is read then, and other groups did not wait."""
    fifo.add_to_groups("bad", "b1", "b2", "c1")
    options = {"max_deliveries": 2, "dead_letters": fifo.dead}
    for _ in range(2):
        process = fifo.worker(store, **options)
        assert ids_of(process.take()) == ["bad"]
        if not store.pending():
            assert await fifo.worker(store, **options).intake.step()
        fifo.end_time_of(process.take(), process.source)
    assert books(store) == once(1)
    worker = fifo.worker(store, **options)
    batch = worker.take()
    worker.admit(batch)
    dead = worker.source._reading
    assert dead is not None
    worker.source._client.copy(dead.dead[0])  # and then the process ends, so that the next one does it again
    worker.source.commit(batch)
    await worker.drain_until(lambda: fifo.left() == 0, "nothing is left")
    assert books(store) == {**once(3), "seen": 4, "rejected": 1}
    asked = {"MessageAttributeNames": ["All"], "AttributeNames": ["All"], "MaxNumberOfMessages": 10}
    (letter,) = fifo.client.receive_message(QueueUrl=fifo.dead, **asked)["Messages"]
    assert ('"bad"' in letter["Body"], letter["Attributes"]["MessageGroupId"]) == (True, "b")


def test_a_lost_reply_of_a_fifo_queue_is_asked_for_again() -> None:
    """Under the id of the request, so that the group does not wait; what came before it in the same batch is read."""
    attempts: list[str] = []
    lost = {0, 3}

    async def reply(request: Request) -> Response:
        if not request.headers["x-amz-target"].endswith("ReceiveMessage"):
            return JSONResponse({})
        attempts.append((await request.json())["ReceiveRequestAttemptId"])
        number = len(attempts) - 1
        message = {"MessageId": f"m{number}", "Body": a_line(f"r{number}").decode(), "ReceiptHandle": "h"}
        return JSONResponse({"Messages": [message]}, 503 if number in lost else 200)

    with serving(Route("/{path:path}", reply, methods=["POST"])) as address:
        source = build(Options(name="app", queue_url=f"{address}/1/rag.fifo", endpoint_url=address, **KEYS))
        with pytest.raises(SourceError, match="the server refuses ReceiveMessage"):
            source.read()
        batches = []
        for _ in range(3):
            batch = source.read()
            assert batch is not None
            source.commit(batch)
            batches.append(ids_of(batch))
        source.close()
    assert batches == [["r1"], ["r2"], ["r4", "r5", "r6", "r7"]]
    assert [attempts[0] == attempts[1], attempts[3] == attempts[4], len(set(attempts))] == [True, True, 6]


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
