"""What every source with a broker promises: a record counts once, whatever fails, and what is lost is counted.

Redis and NATS are real servers, SQS is moto's, Kafka is librdkafka's loopback cluster: see `support.queues`. That
cluster keeps a member that has left until its session ends: its tests wait.
"""

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from support.all_brokers import Brokers
from support.brokers import books, counted, names, once
from support.kit import a_line
from support.patience import DEADLINE, SCALE
from support.queues import SECRET, Queue

from ragwatch.errors import ConfigError, SourceError
from ragwatch.ports import Batch
from ragwatch.sources import KINDS
from ragwatch.statistics.snapshot import Lag
from ragwatch.statistics.tally import Tally
from ragwatch.stores.sqlite.store import SqliteStore

pytestmark = pytest.mark.servers

KAFKA = pytest.param("kafka", marks=pytest.mark.costly)
ALL = ("redis_streams", "nats", "sqs", KAFKA)
ANY = pytest.mark.parametrize("queue", ALL, indirect=True)
GROUPS = pytest.mark.parametrize("queue", ["redis_streams", "nats", KAFKA], indirect=True)
NEEDED = {
    "redis_streams": ("redis", "redis", {"stream": "s"}, "password"),
    "nats": ("nats", "nats", {"stream": "s"}, "token"),
    "kafka": ("confluent_kafka", "kafka", {"topic": "t"}, "password"),
    "sqs": ("boto3", "sqs", {"queue_url": "https://sqs.eu.amazonaws.com/1/rag"}, "secret_access_key"),
}
NOWHERE = {
    "redis_streams": {"url": "redis://127.0.0.1:1"},
    "nats": {"url": "nats://127.0.0.1:1"},
    "kafka": {"servers": "127.0.0.1:1", "timeout_seconds": 0.3},
    "sqs": {"queue_url": "http://127.0.0.1:1/1/rag", "endpoint_url": "http://127.0.0.1:1"},
}


async def taken(worker: Any) -> Batch:
    """The next batch, not stored yet."""
    await worker.drain_until(worker.source.read, "a batch is read")
    return worker.take()


@ANY
async def test_acknowledged_when_stored(queue: Queue, store: SqliteStore) -> None:
    """A batch is the same until it is committed, and its records are left in the broker; then nothing is left."""
    queue.add(*names(25))
    worker = queue.worker(store, batch_records=10)
    assert worker.source.lag() == Lag(None, None)
    batch = await taken(worker)
    worker.admit(batch)
    assert (worker.source.read() is batch, queue.left()) == (True, 25)
    lag = worker.source.lag()
    assert (lag.size, lag.records) == (None, 25)
    assert (lag.seconds is None) == (queue.kind == "sqs")
    assert 0 <= (lag.seconds or 0.0) < 60
    worker.source.commit(batch)
    assert queue.left() == 25 - len(batch.lines)
    await worker.drain_until(lambda: queue.left() == 0, "all is acknowledged")
    assert (books(store), counted(store, Tally.RESENT)) == (once(25), 0)
    assert worker.source.read() is None
    assert worker.source.lag() == Lag(None, None if queue.kind == "sqs" else 0.0, records=0)


@pytest.mark.parametrize("queue", ["redis_streams", "nats", "sqs"], indirect=True)
@pytest.mark.parametrize("stored", [False, True])
async def test_stopped_past_its_time(queue: Queue, store: SqliteStore, *, stored: bool) -> None:
    """Another worker takes over what one holds; when that goes on, each record counts once, with an id or without."""
    queue.add(*names(15), *(a_line("x", id=None, question=f"Which {number}?") for number in range(5)))
    stopped = queue.worker(store, batch_records=8)
    batch = await taken(stopped)
    if stored:
        stopped.admit(batch)
    queue.expire(stopped)
    other = queue.worker(store, **queue.other)
    await other.drain_until(lambda: books(store) == once(20) and not queue.left(), "all are taken over")
    await stopped.drain()
    assert (books(store), queue.left()) == (once(20), 0)


@pytest.mark.parametrize("queue", ["nats", "sqs"], indirect=True)
async def test_a_batch_that_waits_for_the_store_is_not_delivered_again(queue: Queue, store: SqliteStore) -> None:
    """While a batch cannot be stored, the broker is asked to wait."""
    queue.add(*names(3))
    seconds = 2 * round(SCALE)  # a busy machine may let this process wait for half of it
    wait = {"ack_wait_seconds": float(seconds)} if queue.kind == "nats" else {"visibility_seconds": seconds}
    worker, other = queue.worker(store, **wait), queue.worker(store, **wait)
    batch = await taken(worker)
    end = time.monotonic() + 1.5 * seconds
    while time.monotonic() < end:
        assert worker.source.read() is batch
        time.sleep(0.05)  # noqa: ASYNC251 - nothing else runs
    held = set(batch.offsets)
    assert held.isdisjoint((other.source.read() or batch).offsets) or queue.kind == "nats"
    await worker.drain()
    await other.drain()
    assert (books(store), counted(store, Tally.RESENT)) == (once(3), 0)


@GROUPS
@pytest.mark.parametrize(("start", "stored"), [("beginning", 3), ("end", 1)])
async def test_where_a_new_group_starts(queue: Queue, store: SqliteStore, start: str, stored: int) -> None:
    """At the beginning or at the end of what exists; a second process meets the group and reads on."""
    queue.add("a", "b")
    first, seen = queue.worker(store, start=start), 2 if start == "beginning" else 0
    await first.drain_until(
        lambda: first.source.lag().records == 0 and counted(store, Tally.SEEN) == seen, "all is read"
    )
    first.source.close()
    queue.add("c")
    worker = queue.worker(store, start=start)
    await worker.drain_until(lambda: counted(store, Tally.SEEN) == stored, "the rest is read")
    assert books(store) == once(stored)


@GROUPS
async def test_a_lost_group_is_created_again_after_what_is_stored(queue: Queue, store: SqliteStore) -> None:
    """Nothing is skipped, nothing counts twice, and the reset is counted; in this process and in the next."""
    queue.add(*names(3))
    worker = queue.worker(store, batch_records=2)
    await worker.drain_until(lambda: counted(store, Tally.SEEN) == 3, "all is read")
    if queue.kind == "kafka":  # whose group cannot be deleted while it has members
        worker.source.close()
        queue.options |= {"group": "other"}
    else:
        queue.add(*names(5, "s"))
        await worker.intake.step()
        queue.lose_group()
        await worker.drain()
        assert (books(store), counted(store, Tally.RESETS, "group_recreated")) == (once(8), 1)
        queue.lose_group()
    before, seen = counted(store, Tally.RESETS, "group_recreated"), int(counted(store, Tally.SEEN)) + 1
    queue.add("last")
    worker = queue.worker(store, start="end")
    await worker.drain_until(lambda: books(store) == once(seen), "the last is read")
    assert counted(store, Tally.RESETS, "group_recreated") == before + 1


@pytest.mark.parametrize("queue", ["redis_streams", "nats"], indirect=True)
async def test_removed_before_it_was_read(queue: Queue, store: SqliteStore) -> None:
    """What the broker removed is counted as lost, once, whoever notices it; and again the next time."""
    queue.add(*names(10))
    workers = [queue.worker(store, batch_records=2), queue.worker(store, batch_records=2, **queue.other)]
    await workers[0].intake.step()
    queue.trim(3)
    for worker in workers:
        await worker.drain()
    assert (counted(store, Tally.LOST, "trimmed"), books(store)) == (5, once(5))
    queue.add(*names(4, "s"))
    queue.trim(1)
    for worker in workers:
        await worker.drain()
    assert (counted(store, Tally.LOST, "trimmed"), books(store)) == (8, once(6))
    assert workers[0].source.lag() == Lag(None, 0.0, records=0)


@ANY
async def test_a_record_that_ends_every_process_becomes_a_dead_letter(queue: Queue, store: SqliteStore) -> None:
    """After so many deliveries it is copied with a reason, and counted; all others are stored."""
    deadly, deaths = a_line("r4"), 0
    queue.add(*names(9))
    options = {"max_deliveries": 3, **queue.dead_letters()}
    end = time.monotonic() + 4 * DEADLINE
    while counted(store, Tally.SEEN) < 9 or queue.left():
        worker = queue.worker(store, **options)
        while counted(store, Tally.SEEN) < 9 or queue.left():
            assert time.monotonic() < end
            batch = worker.source.read()
            if batch is not None and deadly in batch.lines:
                deaths += 1
                queue.kill(worker)
                break
            if batch is None or not await worker.intake.step():
                time.sleep(0.01)  # noqa: ASYNC251 - nothing else runs
    assert (deaths, queue.letters()) == (3, [(deadly, "delivered 3 times and never stored")])
    assert books(store) == {**once(8), "seen": 9, "rejected": 1}
    assert counted(store, Tally.REJECTED, "undeliverable") == 1


@ANY
async def test_records_that_cannot_be_read(queue: Queue, store: SqliteStore) -> None:
    """One too long, one empty and one without JSON are rejected by reason, and are done."""
    empty = [] if queue.kind == "sqs" else [b""]  # which takes no empty message
    queue.add(a_line("long", question="x" * 5000), b"{", *empty, "good")
    worker = queue.worker(store, max_record_bytes="4KiB")
    await worker.drain_until(lambda: queue.left() == 0, "all are done")
    rejected = {labels[1]: count for (name, labels), count in store.tallies().items() if name is Tally.REJECTED}
    assert rejected == {"line_too_long": 1, "torn_json": 1, **({"missing_field": 1} if empty else {})}
    assert counted(store, Tally.SEEN) == 3 + len(empty)


@ANY
def test_some_records_can_be_seen_without_taking_them(queue: Queue) -> None:
    """Peeking shows the newest, and leaves all to the group, which it does not create."""
    if queue.kind != "kafka":  # a topic of the mock cluster exists with its first message
        says, nothing = queue.source().peek()
        empty = "does not exist; ragwatch creates it at its start" if queue.kind == "redis_streams" else "is empty"
        assert (empty in says, nothing) == (True, None)
    queue.add("a", "b")
    says, batch = queue.source().peek()
    assert says.endswith("has records")
    assert batch is not None
    assert set(batch.lines) <= {a_line("a"), a_line("b")}
    assert queue.left() == 2


@ANY
def test_what_is_wrong_is_said(queue: Queue) -> None:
    """A server that is not there, a queue that does not exist: an error that names the part and what to do."""
    down = queue.source(**NOWHERE[queue.kind])
    for call in (down.read, down.peek):
        with pytest.raises(
            SourceError, match=rf"{queue.kind[:4]}.* cannot be reached .*correct (url|servers|queue_url)"
        ):
            call()
    assert down.lag() == Lag(None, None)
    if queue.missing:
        with pytest.raises(SourceError, match=rf"{queue.where}.* no such (stream|queue); create it, or correct"):
            queue.source(**queue.missing).read()


@pytest.mark.parametrize("kind", NEEDED)
def test_secrets_are_masked_and_missing_libraries_are_named(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A secret is not shown, in an address it is refused; without the library the error says what to install."""
    library, extra, options, secret = NEEDED[kind]
    module: Any = KINDS[kind]
    given = module.Options.model_validate({"name": "app", secret: SECRET, **options})
    assert SECRET not in repr(given)
    address = next(iter(NOWHERE[kind]))
    with pytest.raises(ValidationError, match="give them as username and password") as refused:
        module.Options.model_validate({"name": "app", **options, address: f"redis://:{SECRET}@host/1/x"})
    assert SECRET not in str(refused.value)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ConfigError, match=rf"sources.app.kind: .* pip install 'ragwatch-exporter\[{extra}\]'"):
        module.build(given)


@pytest.mark.parametrize("kind", ["redis_streams", "nats"])
async def test_a_server_that_is_down_is_waited_for(tmp_path: Path, store: SqliteStore, kind: str) -> None:
    """Reading and acknowledging fail with an error, the lag is unknown; when the server is back, nothing is missing."""
    brokers = Brokers(tmp_path)
    queue = brokers.queue(kind)
    try:
        queue.add(*names(20))
        worker = queue.worker(store, batch_records=5, timeout_seconds=1)
        worker.admit(batch := worker.take())
        queue.server.kill()
        with pytest.raises(SourceError):
            worker.source.commit(batch)
        with pytest.raises(SourceError, match="cannot be reached"):
            await worker.intake.step()
        assert worker.intake.lag == Lag(None, None)
        queue.server.start()
        await worker.drain_until(lambda: queue.left() == 0, "it catches up")
        assert (books(store), counted(store, Tally.RESENT)) == (once(20), 0)
        worker.intake.rules = replace(worker.intake.rules, max_pending=1)  # and while nothing is read
        queue.server.kill()
        await worker.drain_until(lambda: worker.intake.lag == Lag(None, None), "the lag is unknown")
        queue.server.start()
        queue.add("more")
        await worker.drain_until(lambda: worker.source.lag().records, "the lag is known again")
    finally:
        queue.close()
        brokers.close()
