"""The real daemon behind a real broker: records count once, whatever is killed or stopped, and it says what is down."""

import json
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from functional.daemon import DRAWN, JUDGED, SEEN, RagwatchProcess, record, write_config
from support.all_brokers import Brokers
from support.brokers import Worker, books, counted, once
from support.kit import a_line
from support.patience import DEADLINE, wait_until
from support.postgres import shared_server
from support.queues import KafkaQueue, Queue
from support.stores import database, emptied

from ragwatch.statistics.tally import Tally
from ragwatch.stores.postgres.postgres_store import PostgresStore
from ragwatch.stores.sqlite.store import SqliteStore

LAG = 'ragwatch_source_lag_records{source="app"}'
SCHEMA = "stopped"
COUNTS = [pytest.param(1000, marks=pytest.mark.costly), pytest.param(20_000, marks=pytest.mark.slow)]
OWN = {"redis_streams": {"claim_idle_seconds": 0.5, "timeout_seconds": 0.5},
       "nats": {"ack_wait_seconds": 0.5, "timeout_seconds": 1}}  # fmt: skip


@pytest.fixture(params=sorted(OWN))
def queue(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Queue]:
    """A queue without records."""
    (tmp_path / "broker").mkdir()
    brokers = Brokers(tmp_path / "broker")
    one: Queue = brokers.queue(request.param)
    yield one
    one.close()
    brokers.close()


def add(queue: Queue, numbers: range) -> None:
    """Add records."""
    queue.send([record(number).encode() for number in numbers])


def configured(folder: Path, queue: Queue, store: dict[str, str] | None = None) -> Path:
    """The configuration of a worker."""
    folder.mkdir()
    common: dict[str, Any] = {"kind": queue.kind, "name": "app", "start": "beginning", "batch_records": 50}
    common |= queue.options | OWN[queue.kind] | {"max_deliveries": 100}
    if queue.kind == "redis_streams":
        common["consumer"] = folder.name
    sections = {"store": json.dumps(store)} if store else {}
    return write_config(folder, sources=json.dumps([common]), **sections)


@pytest.mark.parametrize(
    ("count", "kills"),
    [pytest.param(500, 3, marks=pytest.mark.costly), pytest.param(20_000, 40, marks=pytest.mark.slow)],
)
def test_a_daemon_and_a_broker_that_are_killed(tmp_path: Path, queue: Queue, count: int, kills: int) -> None:
    """Every record is stored once and acknowledged; so it is after the server was killed, or stopped for a while.

    Readiness names what is wrong with the broker; health and figures stay.
    """
    config, rng = configured(tmp_path / "worker", queue), random.Random(kills)
    add(queue, range(count))
    for _ in range(kills):
        with RagwatchProcess(config).wait_until_serving() as ragwatch:
            time.sleep(rng.uniform(0.0, 0.3))
            ragwatch.kill()
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        ragwatch.wait_for(SEEN, count)
        ragwatch.wait_for(LAG, 0)
        queue.server.kill()
        ragwatch.wait_until_ready(503, naming="cannot be reached")
        assert ragwatch.get("/-/healthy")[0] == 200
        queue.server.start()
        add(queue, range(count, count + 1))
        ragwatch.wait_for(JUDGED, count + 1)
        ragwatch.wait_until_ready()
        queue.server.signal(signal.SIGSTOP)
        try:
            ragwatch.wait_until_ready(503, naming="the server does not answer in time")
            assert ragwatch.get("/-/healthy")[0] == 200
        finally:
            queue.server.signal(signal.SIGCONT)
        add(queue, range(count + 1, count + 2))
        series = ragwatch.wait_for(JUDGED, count + 2)
        ragwatch.wait_for(LAG, 0)
        ragwatch.wait_until_ready()
        assert not any("rejected_total" in name and value for name, value in series.items())
    assert (series[SEEN], series[DRAWN], queue.left()) == (count + 2, count + 2, 0)


@pytest.mark.parametrize("queue", ["redis_streams", pytest.param("nats", marks=pytest.mark.slow)], indirect=True)
@pytest.mark.parametrize("count", COUNTS)
def test_a_worker_that_is_stopped(tmp_path: Path, queue: Queue, count: int) -> None:
    """Another worker takes over what it holds; when it goes on, what it has read is known already."""
    server = shared_server()
    emptied(server.url, SCHEMA)
    store = {"kind": "postgres", "url": server.url, "database_schema": SCHEMA}
    add(queue, range(count))
    stopped = RagwatchProcess(configured(tmp_path / "stopped", queue, store))
    with stopped, RagwatchProcess(configured(tmp_path / "other", queue, store)) as other:
        stopped.wait_until_serving()
        end = time.monotonic() + DEADLINE
        stopped.signal(signal.SIGSTOP)
        while not queue.held():  # it is stopped while it holds records
            assert time.monotonic() < end
            stopped.signal(signal.SIGCONT)
            time.sleep(0.002)
            stopped.signal(signal.SIGSTOP)
        other.wait_until_serving()
        counts = PostgresStore(database(server.url, SCHEMA))
        try:
            wait_until(lambda: counted(counts, Tally.SEEN) >= count, "the other worker has read what was held")
            assert counted(counts, Tally.SEEN) == count
            stopped.signal(signal.SIGCONT)
            add(queue, range(count, count + 50))
            # Each worker exports what it has counted itself: they add up to what is stored.
            wait_until(
                lambda: sum(one.series().get(SEEN, 0.0) for one in (stopped, other)) == count + 50, "all is read"
            )
            for one in (stopped, other):
                one.wait_for(LAG, 0)
            wait_until(lambda: queue.left() == 0, "everything is acknowledged")
            assert counted(counts, Tally.SEEN) == count + 50
            assert counts.tallies()[Tally.DRAWN, ("search",)] == count + 50
        finally:
            stopped.signal(signal.SIGCONT)  # else its end would be waited for
            print(*other.lines[-20:])  # shown where it fails
            counts.close()


MESSAGES, PERIOD_SECONDS, CHANGES = 20_000, 5.0, 9


@pytest.fixture
def topic(tmp_path: Path) -> Iterator[KafkaQueue]:
    """An empty topic, of librdkafka's mock cluster, or of the broker that RAGWATCH_TEST_KAFKA names (`host:port`)."""
    brokers = Brokers(tmp_path)
    one: KafkaQueue = brokers.queue("kafka")
    yield one
    one.close()
    brokers.close()


@pytest.mark.slow
async def test_members_that_come_and_go(topic: KafkaQueue, store: SqliteStore) -> None:
    """Every 5 s a member joins, leaves or crashes after storing: 20,000 messages, each stored once."""
    steady, changing = topic.worker(store, consumer="steady", batch_records=100), list[Worker]()
    produced = 0
    for change in range(CHANGES):
        if change % 2 == 0:
            changing.append(topic.worker(store, consumer=f"guest-{change}", batch_records=100))
        elif change % 4 == 1:
            guest = changing.pop()
            guest.source.close()
        else:
            guest = changing.pop()
            if (batch := guest.source.read()) is not None:
                guest.admit(batch)
            topic.kill(guest)
        end = time.monotonic() + PERIOD_SECONDS
        share = (MESSAGES - produced) // (CHANGES - change)
        topic.send([a_line(f"c{change}-{number}") for number in range(share)], spread=True)
        produced += share
        while time.monotonic() < end:
            for worker in (steady, *changing):
                await worker.intake.step()
    deadline = time.monotonic() + DEADLINE
    while counted(store, Tally.SEEN) < produced:
        assert time.monotonic() < deadline, f"{counted(store, Tally.SEEN)} of {produced} arrived"
        for worker in (steady, *changing):
            await worker.intake.step()
    for worker in (steady, *changing):
        await worker.drain()
    assert produced == MESSAGES
    assert books(store) == once(MESSAGES)
    assert topic.committed() == MESSAGES
