"""The real daemon behind a real broker: records are counted once, whatever is killed, and it says when it is down."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nats
import pytest
import redis
from functional.daemon import RagwatchProcess, record, write_config
from support.brokers import BrokerProcess, Worker, books, counted, nats_server, once, redis_server, wait_until
from support.patience import DEADLINE

from ragwatch.core.tally import Tally
from ragwatch.ports import Source
from ragwatch.sources.brokers import nats as nats_source
from ragwatch.sources.brokers import redis_streams
from ragwatch.sources.brokers.nats import LoopThread
from ragwatch.stores.sqlite.store import SqliteStore

SEEN = 'ragwatch_requests_seen_total{source="app"}'
DRAWN = 'ragwatch_samples_drawn_total{route="search"}'
LAG = 'ragwatch_source_lag_records{source="app"}'
JUDGED = 'ragwatch_samples_judged_total{judge="embedded",route="search"}'
COUNTS = [pytest.param(500, 3, marks=pytest.mark.costly), pytest.param(20_000, 40, marks=pytest.mark.slow)]


def kill_often(config: Path, kills: int) -> None:
    """Start the daemon and kill it after a moment, several times."""
    rng = random.Random(kills)
    for _ in range(kills):
        with RagwatchProcess(config).wait_until_serving() as ragwatch:
            time.sleep(rng.uniform(0.0, 0.3))
            ragwatch.kill()


def outage(config: Path, server: BrokerProcess, count: int, add: Callable[[int], object]) -> dict[str, float]:
    """Let the daemon read everything; then the broker is down for a while, and one record more arrives."""
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        ragwatch.wait_for(SEEN, count)
        ragwatch.wait_for(LAG, 0)
        server.kill()
        wait_until(lambda: ragwatch.get("/-/ready")[0] == 503, "it says that the broker is down")
        assert "cannot be reached" in ragwatch.get("/-/ready")[1]
        assert ragwatch.get("/-/healthy")[0] == 200
        server.start()
        add(count)
        series = ragwatch.wait_for(JUDGED, count + 1)
        ragwatch.wait_for(LAG, 0)
        wait_until(lambda: ragwatch.get("/-/ready")[0] == 200, "it is ready again")
    return series


def redis_config(folder: Path, port: int, **options: Any) -> Path:
    """A configuration that reads a Redis stream."""
    source = {"kind": "redis_streams", "name": "app", "url": f"redis://127.0.0.1:{port}/0", "stream": "rag"}
    rest = {"start": "beginning", "batch_records": 50, "timeout_seconds": 0.5}
    return write_config(folder, sources=json.dumps([source | rest | options]))


@pytest.mark.parametrize(("count", "kills"), COUNTS)
def test_redis_with_a_daemon_that_is_killed(tmp_path: Path, count: int, kills: int) -> None:
    """Every entry is stored once and acknowledged; so it is after the server was killed as well."""
    server = redis_server(tmp_path)
    client: Any = redis.Redis(port=server.port)
    config = redis_config(tmp_path, server.port)
    try:
        for number in range(count):
            client.xadd("rag", {"data": record(number)})
        kill_often(config, kills)
        series = outage(config, server, count, lambda number: client.xadd("rag", {"data": record(number)}))
        assert (series[SEEN], series[DRAWN]) == (count + 1, count + 1)
        assert client.xpending("rag", "ragwatch")["pending"] == 0
    finally:
        client.close()
        server.kill()


@pytest.mark.parametrize(("count", "kills"), COUNTS)
def test_nats_with_a_daemon_that_is_killed(tmp_path: Path, count: int, kills: int) -> None:
    """Every message is stored once and acknowledged; so it is after the server was killed as well."""
    server, thread = nats_server(tmp_path), LoopThread("producer")
    rest = {"start": "beginning", "batch_records": 50, "timeout_seconds": 1, "ack_wait_seconds": 0.5}
    source = {"kind": "nats", "name": "app", "url": f"nats://127.0.0.1:{server.port}", "stream": "RAG"}
    config = write_config(tmp_path, sources=json.dumps([source | rest]))
    client = thread.run(nats.connect(f"nats://127.0.0.1:{server.port}", max_reconnect_attempts=-1), DEADLINE)
    jetstream = client.jetstream(timeout=DEADLINE)

    async def fill() -> None:
        await jetstream.add_stream(name="RAG", subjects=["rag"])
        for number in range(count):
            await jetstream.publish("rag", record(number).encode())

    def add(number: int) -> None:
        wait_until(lambda: client.is_connected, "the producer is connected again")
        thread.run(jetstream.publish("rag", record(number).encode()), DEADLINE)

    try:
        thread.run(fill(), DEADLINE)
        kill_often(config, kills)
        series = outage(config, server, count, add)
        info = thread.run(jetstream.consumer_info("RAG", "ragwatch"), DEADLINE)
        assert (series[SEEN], series[DRAWN], info.num_ack_pending) == (count + 1, count + 1, 0)
    finally:
        server.kill()
        server.start()
        thread.run(client.close(), DEADLINE)
        thread.close()
        server.kill()


@pytest.mark.parametrize("kind", ["redis", "nats"])
@pytest.mark.parametrize(
    "count", [pytest.param(500, marks=pytest.mark.costly), pytest.param(20_000, marks=pytest.mark.slow)]
)
async def test_two_workers_of_which_one_is_killed_and_one_is_stopped(
    tmp_path: Path, store: SqliteStore, kind: str, count: int
) -> None:
    """A worker that is killed after storing, and one that is stopped past the idle time: each record counts once."""
    server = redis_server(tmp_path) if kind == "redis" else nats_server(tmp_path)
    thread = LoopThread("producer")
    workers: list[Worker] = []

    def started(name: str) -> Worker:
        common = {"name": "app", "start": "beginning", "batch_records": 100}
        if kind == "redis":
            own = {"url": f"redis://127.0.0.1:{server.port}/0", "consumer": name, "claim_idle_seconds": 0.5}
            source: Source = redis_streams.build(redis_streams.Options(stream="rag", **common, **own))
        else:
            own = {"url": f"nats://127.0.0.1:{server.port}", "ack_wait_seconds": 0.5}
            source = nats_source.build(nats_source.Options(stream="rag", **common, **own))
        workers.append(Worker(source, store))
        return workers[-1]

    async def fill_nats() -> None:
        client = await nats.connect(f"nats://127.0.0.1:{server.port}")
        jetstream = client.jetstream(timeout=DEADLINE)
        await jetstream.add_stream(name="rag", subjects=["rag"])
        for number in range(count):
            await jetstream.publish("rag", record(number).encode())
        await client.close()

    try:
        if kind == "redis":
            with redis.Redis(port=server.port) as client:
                for number in range(count):
                    client.xadd("rag", {"data": record(number)})
        else:
            thread.run(fill_nats(), DEADLINE)
        killed, stopped, other = started("killed"), started("stopped"), started("other")
        for _ in range(2):
            await killed.intake.step()
        killed.admit(killed.take())
        killed.source.close()
        stopped.take()
        await other.drain_until(lambda: books(store) == once(count), "the other has counted all")
        await stopped.drain()
        await other.drain()
        assert books(store) == once(count)
        assert counted(store, Tally.RESENT) >= 100
    finally:
        for worker in workers:
            worker.source.close()
        thread.close()
        server.kill()
