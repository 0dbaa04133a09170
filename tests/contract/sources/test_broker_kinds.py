"""What only one kind of broker does: see `test_brokers` for what all of them promise."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nats.js.errors import ServiceUnavailableError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from support.all_brokers import Brokers
from support.brokers import Worker, books, counted, names, nats_server, once
from support.kit import a_line
from support.patience import DEADLINE
from support.queues import SECRET, KafkaQueue, NatsQueue, RedisQueue, SqsQueue
from support.retrievers import serving

from ragwatch.errors import ConfigError, SourceError
from ragwatch.ports import Batch, Source
from ragwatch.sources.brokers import kafka, nats, sqs
from ragwatch.statistics.tally import Tally
from ragwatch.stores.sqlite.store import SqliteStore

pytestmark = pytest.mark.servers

REDIS = pytest.mark.parametrize("queue", ["redis_streams"], indirect=True)
NATS = pytest.mark.parametrize("queue", ["nats"], indirect=True)
KAFKA = pytest.mark.parametrize("queue", ["kafka"], indirect=True)
FIFO = pytest.mark.parametrize("queue", [("sqs", {"fifo": True})], indirect=True)


@REDIS
async def test_a_redis_stream_that_does_not_exist_yet_is_read_whole(queue: RedisQueue, store: SqliteStore) -> None:
    """The group is created before the first entry, so that none is missed; and again with a stream that was lost.

    After FLUSHALL the stream may have smaller ids than those that are stored.
    """
    worker = queue.worker(store, start="end")
    await worker.drain()
    queue.add(*names(3))
    await worker.drain()
    assert books(store) == once(3)
    queue.client.delete(queue.name)
    queue.client.xadd(queue.name, {"data": a_line("new")}, id="1-1")
    await worker.drain()
    assert books(store) == once(4)


@REDIS
async def test_a_redis_stream_that_is_trimmed_while_everything_is_read(queue: RedisQueue, store: SqliteStore) -> None:
    """What was stored before it was trimmed is not lost, nor is what was trimmed before the group existed."""
    queue.add(*names(10))
    queue.trim(4)
    worker = queue.worker(store)
    await worker.drain()
    queue.trim(0)
    queue.add("later")
    await worker.drain()
    assert (books(store), counted(store, Tally.LOST, "trimmed")) == (once(5), 0)


@REDIS
@pytest.mark.parametrize("taken_over", [False, True])
async def test_entries_deleted_before_they_are_stored(
    queue: RedisQueue, store: SqliteStore, *, taken_over: bool
) -> None:
    """They were delivered, are counted as lost, and are pending no more."""
    queue.add(*names(6))
    queue.worker(store).take()
    queue.client.xdel(queue.name, *[row[0] for row in queue.client.xrange(queue.name)[:4]])
    worker = queue.worker(store, **(queue.other if taken_over else {}))
    await worker.drain_until(lambda: books(store) == once(2), "the others are stored")
    await worker.drain()
    assert (counted(store, Tally.LOST, "deleted"), queue.left()) == (4, 0)


@REDIS
async def test_a_field_of_its_own_and_rights(queue: RedisQueue, store: SqliteStore) -> None:
    """An entry without the field is rejected; a key of another type and missing rights are said."""
    queue.client.xadd(queue.name, {"other": "{}"})
    await queue.worker(store).drain()
    assert counted(store, Tally.REJECTED, "missing_field") == 1
    queue.client.set(f"{queue.name}-text", "text")
    with pytest.raises(SourceError, match=r"redis stream .* at redis.* holds no stream; correct stream"):
        queue.source(stream=f"{queue.name}-text").read()
    with pytest.raises(SourceError, match=r"refuses the login .* correct username and password"):
        queue.source(username="nobody", password=SECRET).read()
    queue.client.acl_setuser("reader", enabled=True, passwords=f"+{SECRET}", commands=["+@all"], keys=["other"])
    with pytest.raises(SourceError, match="may not do this"):
        queue.source(username="reader", password=SECRET).read()


@pytest.mark.costly
@given(st.lists(st.tuples(st.integers(0, 1), st.sampled_from(["read", "store", "commit", "restart"])), max_size=30))
def test_redis_skips_nothing_whatever_two_consumers_do(brokers: Brokers, steps: list[tuple[int, str]]) -> None:
    """Two consumers read, store, acknowledge and restart in any order: at last every entry was stored."""
    queue = brokers.queue("redis_streams")
    queue.add(*names(6))
    stored: set[int] = set()

    def started(number: int) -> Source:
        options = {"batch_records": 2, "claim_idle_seconds": 0.001, "max_deliveries": 100}
        source: Source = queue.source(consumer=str(number), **options)
        return source

    sources = [started(0), started(1)]
    batches: list[Batch | None] = [None, None]
    try:
        for number, step in steps:
            batch = batches[number]
            if step == "restart":
                sources[number], batches[number] = started(number), None
            elif step == "read":
                batches[number] = sources[number].read()
            elif step == "store":
                stored.update([] if batch is None else batch.offsets)
            elif batch is not None and stored.issuperset(batch.offsets):
                sources[number].commit(batch)
        last = started(2)
        end = time.monotonic() + DEADLINE
        while len(stored) < 6 or queue.left():
            assert time.monotonic() < end
            if (batch := last.read()) is not None:
                stored.update(batch.offsets)
                last.commit(batch)
        assert len(stored) == 6
    finally:
        queue.close()


@NATS
async def test_a_nats_stream_that_is_created_again_is_read_whole(queue: NatsQueue, store: SqliteStore) -> None:
    """Its numbers start over, and its records without an id are new ones."""
    queue.add(*(a_line("x", id=None, question=f"Which {number}?") for number in range(3)))
    worker = queue.worker(store)
    await worker.drain()
    queue.do(queue.manager.delete_stream(queue.name))
    with pytest.raises(SourceError, match="there is no such stream; create it, or correct stream"):
        worker.source.read()
    queue.create()
    queue.add(*(a_line("x", id=None, question=f"Which other {number}?") for number in range(2)))
    await worker.drain()
    assert books(store) == once(5)


@NATS
async def test_nats_removed_between_processes(queue: NatsQueue, store: SqliteStore) -> None:
    """What was removed while no process was there is counted as lost; peeking creates no consumer."""
    queue.add("a")
    assert queue.source().peek()[1] is not None
    assert queue.do(queue.manager.stream_info(queue.name)).state.consumer_count == 0
    await queue.worker(store).drain()
    queue.add(*names(7, "t"))
    queue.trim(4)
    await queue.worker(store).drain()
    assert (books(store), counted(store, Tally.LOST, "trimmed")) == (once(5), 3)


def test_what_a_nats_server_says(tmp_path: Path) -> None:
    """A wrong password names the keys to correct; a port with 503 in it says nothing of JetStream."""
    server = nats_server(tmp_path, "--user", "rag", "--pass", SECRET)
    try:
        address = f"nats://127.0.0.1:{server.port}"
        source = nats.build(nats.Options(name="app", stream="s", url=address, username="rag"))
        with pytest.raises(SourceError, match=r"refuses the login .* correct username, password, token"):
            source.read()
        source.close()
    finally:
        server.kill()
    refused = ConnectionRefusedError(111, "Connect call failed ('127.0.0.1', 50307)")
    assert nats.reason_of(refused).startswith("the server cannot be reached ([Errno 111]")
    assert "no JetStream" in nats.reason_of(ServiceUnavailableError(code=503, err_code=10039))


@KAFKA
@pytest.mark.costly
async def test_a_second_worker_takes_its_share(queue: KafkaQueue, store: SqliteStore) -> None:
    """While partitions move between workers, every message is counted once, and none is left out."""

    async def read(workers: Sequence[Worker], count: int) -> None:
        end = time.monotonic() + DEADLINE
        while counted(store, Tally.SEEN) < count or not all(one.source._client.partitions for one in workers):  # type: ignore[attr-defined]
            assert time.monotonic() < end
            for worker in workers:
                await worker.intake.step()

    queue.send([a_line(one) for one in names(40)], spread=True)
    workers = [queue.worker(store, batch_records=3, consumer="one")]
    await read(workers, 4)
    workers.append(queue.worker(store, batch_records=3, consumer="two"))
    queue.send([a_line(one) for one in names(40, "s")], spread=True)
    await read(workers, 80)
    workers[0].source.close()
    queue.send([a_line(one) for one in names(40, "t")], spread=True)
    await read(workers[1:], 120)
    assert books(store) == once(120)


@KAFKA
@pytest.mark.costly
async def test_kafka_removed_before_it_was_read(queue: KafkaQueue, store: SqliteStore) -> None:
    """Messages between the committed offset and the first one that the broker has are counted as lost.

    And a worker whose batch waits for the store gives signs of life meanwhile.
    """
    queue.add("first")
    worker = queue.worker(store)
    await worker.drain_until(worker.source.read, "a batch is read")
    source: Any = worker.source
    batch = source.read()
    source._client._polled_at = float("-inf")  # as after some seconds in which it could not be stored
    assert source.read() is batch
    await worker.drain_until(lambda: queue.left() == 0, "it is stored")
    worker.source.close()
    padding = "x" * 100_000  # a partition of the mock cluster keeps some 5 MB
    for start in range(0, 80, 20):
        queue.add(*(a_line(f"r{number}", answer=padding) for number in range(start, start + 20)))
    worker = queue.worker(store)
    await worker.drain_until(lambda: queue.committed() == 81, "all is read")
    lost = counted(store, Tally.LOST, "trimmed")
    assert lost > 0
    assert books(store) == once(81 - int(lost))


def test_properties_of_kafka() -> None:
    """Passwords and further properties are masked and given to the client; one that is none is said."""
    options = kafka.Options(name="a", topic="t", username="rag", password=SECRET, tls=True, properties={"k": SECRET})
    assert SECRET not in repr(options)
    known = options.client_properties()
    assert (known["security.protocol"], known["sasl.password"], known["k"]) == ("sasl_ssl", SECRET, SECRET)
    source = kafka.build(kafka.Options(name="app", topic="rag", properties={"no.such": "x"}))
    with pytest.raises(SourceError, match=r"no\.such"):
        source.read()


def ids_of(batch: Batch | None) -> list[str]:
    """Ids of the records of a batch."""
    return [] if batch is None else [orjson.loads(line)["id"] for line in batch.lines]


@pytest.mark.parametrize("queue", ["sqs"], indirect=True)
async def test_batches_of_sqs_grow(queue: SqsQueue, store: SqliteStore) -> None:
    """A process begins with one message, and doubles that. Without a region nothing starts."""
    queue.add(*names(40))
    worker = queue.worker(store, batch_records=16)
    sizes = []
    while counted(store, Tally.SEEN) < 40:
        sizes.append(len(worker.take().lines))
        assert await worker.intake.step()
    assert sizes == [1, 2, 4, 8, 16, 9]
    with pytest.raises(ConfigError, match=r"sources\.app\.region: "):
        sqs.build(sqs.Options(name="app", queue_url="https://sqs.eu.amazonaws.com/1/rag"))


@pytest.mark.parametrize(
    ("login", "profile", "key"),
    [
        ({"region": "eu-west-1", "access_key_id": "AKIA"}, "", "access_key_id"),
        ({"region": "eu-west-1"}, "[default]\ncredential_process = false\n", "access_key_id"),
        ({"access_key_id": "AKIA", "secret_access_key": "x"}, "", "region"),
    ],
)
def test_the_key_that_is_wrong_is_named(
    login: dict[str, str], profile: str, key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A login that is half, or that a command does not give, is no matter of the region."""
    (tmp_path / "config").write_text(profile)
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    options = sqs.Options.model_validate({"name": "app", "queue_url": "https://sqs.eu.amazonaws.com/1/rag", **login})
    with pytest.raises(ConfigError, match=rf"sources\.app\.{key}: "):
        sqs.build(options)


def send_to_groups(queue: SqsQueue, *records: str) -> None:
    """Add a record for each name to the group of its first letter; the name is its deduplication id."""
    for name in records:
        group = {"MessageGroupId": name[0], "MessageDeduplicationId": name}
        queue.client.send_message(QueueUrl=queue.url, MessageBody=a_line(name).decode(), **group)


@FIFO
async def test_groups_of_a_fifo_queue_keep_their_order(queue: SqsQueue, store: SqliteStore) -> None:
    """One worker at a time has a group; its records are stored in order, by whichever worker, after a kill too."""
    send_to_groups(queue, *[f"{group}{number}" for number in range(8) for group in "xyz"], "x0", "y7")
    killed, other = queue.worker(store), queue.worker(store, batch_records=16)
    assert ids_of(killed.take()) == ["x0"]
    killed.admit(killed.take())
    order: list[str] = []
    while len(order) < 16:
        order += ids_of(other.take())
        assert await other.intake.step()
    assert not any(name.startswith("x") for name in order)
    queue.expire(killed)
    later = queue.worker(store)
    while len(order) < 24:
        order += ids_of(later.take())
        assert await later.intake.step()
    assert sorted(order, key=lambda name: name[0]) == [f"{group}{number}" for group in "xyz" for number in range(8)]
    assert (books(store), queue.left(), counted(store, Tally.RESENT)) == (once(24), 0, 1)


@FIFO
async def test_a_dead_letter_of_a_fifo_queue_frees_its_group(queue: SqsQueue, store: SqliteStore) -> None:
    """It is copied to a FIFO queue, once; what is behind it is read then, and other groups did not wait."""
    send_to_groups(queue, "bad", "b1", "b2", "c1")
    options = {"max_deliveries": 2, "dead_letters": queue.dead}
    for _ in range(2):
        process = queue.worker(store, **options)
        assert ids_of(process.take()) == ["bad"]
        if not store.pending():
            assert await queue.worker(store, **options).intake.step()
        queue.expire(process)
    assert books(store) == once(1)
    worker = queue.worker(store, **options)
    batch = worker.take()
    worker.admit(batch)
    source: Any = worker.source
    source._client.copy(source._reading.dead[0])  # and then the process ends, so that the next one does it again
    source.commit(batch)
    await worker.drain_until(lambda: queue.left() == 0, "nothing is left")
    assert books(store) == {**once(3), "seen": 4, "rejected": 1}
    asked = {"AttributeNames": ["All"], "MaxNumberOfMessages": 10}
    (letter,) = queue.client.receive_message(QueueUrl=queue.dead, **asked)["Messages"]
    assert ('"bad"' in letter["Body"], letter["Attributes"]["MessageGroupId"]) == (True, "b")


def test_a_lost_reply_of_a_fifo_queue_is_asked_for_again() -> None:
    """Under the id of the request, so that the group does not wait; what came before it in the same batch is read."""
    attempts: list[str] = []

    async def reply(request: Request) -> Response:
        if not request.headers["x-amz-target"].endswith("ReceiveMessage"):
            return JSONResponse({})
        attempts.append((await request.json())["ReceiveRequestAttemptId"])
        number = len(attempts) - 1
        message = {"MessageId": f"m{number}", "Body": a_line(f"r{number}").decode(), "ReceiptHandle": "h"}
        return JSONResponse({"Messages": [message]}, 503 if number in (0, 3) else 200)

    with serving(Route("/{path:path}", reply, methods=["POST"])) as address:
        keys = {"access_key_id": "AKIA", "secret_access_key": SECRET, "region": "eu-central-1"}
        options = {"name": "app", "queue_url": f"{address}/1/rag.fifo", "endpoint_url": address, **keys}
        source = sqs.build(sqs.Options.model_validate(options))
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
