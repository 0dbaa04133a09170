"""Brokers and workers that are stopped (SIGSTOP) for longer than every timeout, and go on: each record counts once."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import nats
import pytest
import redis
from functional.daemon import RagwatchProcess, record, write_config
from support.brokers import BrokerProcess, counted, nats_server, redis_server, wait_until
from support.patience import DEADLINE
from support.postgres import shared_server
from support.stores import emptied

from ragwatch.core.tally import Tally
from ragwatch.sources.nats.loop_thread import LoopThread
from ragwatch.stores.postgres.connections import Target
from ragwatch.stores.postgres.postgres_store import PostgresStore

SEEN = 'ragwatch_requests_seen_total{source="app"}'
LAG = 'ragwatch_source_lag_records{source="app"}'
SCHEMA = "stopped"
COUNTS = [pytest.param(1000, marks=pytest.mark.costly), pytest.param(20_000, marks=pytest.mark.slow)]


class Broker(Protocol):
    """A broker with a stream, and what its producer can do."""

    server: BrokerProcess

    def add(self, numbers: range) -> None:
        """Add records."""
        ...

    def held(self) -> int:
        """Records that were delivered and not acknowledged."""
        ...

    def source(self, consumer: str) -> dict[str, Any]:
        """Options of a source."""
        ...

    def close(self) -> None:
        """End the server."""
        ...


class RedisBroker:
    """A stream of a Redis server."""

    def __init__(self, folder: Path) -> None:
        self.server = redis_server(folder)
        self._client: Any = redis.Redis(port=self.server.port)

    def add(self, numbers: range) -> None:
        """Add records."""
        with self._client.pipeline(transaction=False) as pipeline:
            for number in numbers:
                pipeline.xadd("rag", {"data": record(number)})
            pipeline.execute()

    def held(self) -> int:
        """Records that were delivered and not acknowledged."""
        groups = self._client.xinfo_groups("rag")
        return int(groups[0]["pending"]) if groups else 0

    def source(self, consumer: str) -> dict[str, Any]:
        """Options of a source."""
        own = {"stream": "rag", "consumer": consumer, "claim_idle_seconds": 0.5, "timeout_seconds": 0.5}
        return {"kind": "redis_streams", "url": f"redis://127.0.0.1:{self.server.port}/0", **own}

    def close(self) -> None:
        """End the server."""
        self._client.close()
        self.server.kill()


class NatsBroker:
    """A stream of a NATS server."""

    def __init__(self, folder: Path) -> None:
        self.server = nats_server(folder)
        self._thread = LoopThread("producer")
        url = f"nats://127.0.0.1:{self.server.port}"
        self._client = self._thread.run(nats.connect(url, max_reconnect_attempts=-1), DEADLINE)
        self._stream = self._client.jetstream(timeout=DEADLINE)
        self._thread.run(self._stream.add_stream(name="rag", subjects=["rag"]), DEADLINE)

    def add(self, numbers: range) -> None:
        """Add records."""

        async def publish() -> None:
            for number in numbers:
                await self._stream.publish("rag", record(number).encode())

        wait_until(lambda: self._client.is_connected, "the producer is connected")
        self._thread.run(publish(), DEADLINE)

    def held(self) -> int:
        """Records that were delivered and not acknowledged."""
        try:
            info = self._thread.run(self._stream.consumer_info("rag", "ragwatch"), DEADLINE)
        except nats.js.errors.NotFoundError:
            return 0
        return info.num_ack_pending or 0

    def source(self, consumer: str) -> dict[str, Any]:  # noqa: ARG002 - workers share one consumer
        """Options of a source."""
        own = {"stream": "rag", "ack_wait_seconds": 0.5, "timeout_seconds": 0.5}
        return {"kind": "nats", "url": f"nats://127.0.0.1:{self.server.port}", **own}

    def close(self) -> None:
        """End the server."""
        self._thread.run(self._client.close(), DEADLINE)
        self._thread.close()
        self.server.kill()


@pytest.fixture(params=["redis", "nats"])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Broker]:
    """A broker without records."""
    folder = tmp_path / "broker"
    folder.mkdir()
    one: Broker = RedisBroker(folder) if request.param == "redis" else NatsBroker(folder)
    yield one
    one.close()


def configured(folder: Path, broker: Broker, store: dict[str, str] | None = None) -> Path:
    """The configuration of a worker."""
    folder.mkdir()
    common = {"name": "app", "start": "beginning", "batch_records": 50, "max_deliveries": 100}
    sections = {"store": json.dumps(store)} if store else {}
    return write_config(folder, sources=json.dumps([common | broker.source(folder.name)]), **sections)


@pytest.mark.parametrize("count", COUNTS)
def test_a_broker_that_is_stopped(tmp_path: Path, broker: Broker, count: int) -> None:
    """Readiness names it, pages and metrics stay, and everything is read once when it goes on."""
    broker.add(range(count))
    with RagwatchProcess(configured(tmp_path / "worker", broker)).wait_until_serving() as ragwatch:
        wait_until(broker.held, "records are delivered")
        broker.server.signal(signal.SIGSTOP)
        try:
            wait_until(lambda: ragwatch.get("/-/ready")[0] == 503, "it says that the broker does not reply")
            assert "the server does not answer in time" in ragwatch.get("/-/ready")[1]
            assert ragwatch.get("/-/healthy")[0] == 200
        finally:
            broker.server.signal(signal.SIGCONT)
        broker.add(range(count, count + 1))
        series = ragwatch.wait_for(SEEN, count + 1)
        ragwatch.wait_for(LAG, 0)
        wait_until(lambda: ragwatch.get("/-/ready")[0] == 200, "it is ready again")
        assert not any("rejected_total" in name and value for name, value in series.items())
        assert ragwatch.series()[SEEN] == count + 1
        wait_until(lambda: broker.held() == 0, "everything is acknowledged")


@pytest.mark.parametrize("count", COUNTS)
def test_a_worker_that_is_stopped(tmp_path: Path, broker: Broker, count: int) -> None:
    """Another worker takes over what it holds; when it goes on, what it has read is known already."""
    server = shared_server()
    emptied(server.url, SCHEMA)
    store = {"kind": "postgres", "url": server.url, "database_schema": SCHEMA}
    broker.add(range(count))
    stopped = RagwatchProcess(configured(tmp_path / "stopped", broker, store))
    with stopped, RagwatchProcess(configured(tmp_path / "other", broker, store)) as other:
        stopped.wait_until_serving()
        end = time.monotonic() + DEADLINE
        stopped.signal(signal.SIGSTOP)
        while not broker.held():  # it is stopped while it holds records
            assert time.monotonic() < end
            stopped.signal(signal.SIGCONT)
            time.sleep(0.002)
            stopped.signal(signal.SIGSTOP)
        other.wait_until_serving()
        counts = PostgresStore(Target(server.url, SCHEMA))
        try:
            wait_until(lambda: counted(counts, Tally.SEEN) == count, "the other worker has read what was held")
            stopped.signal(signal.SIGCONT)
            broker.add(range(count, count + 50))
            # Each worker exports what it has counted itself: they add up to what is stored.
            wait_until(
                lambda: sum(one.series().get(SEEN, 0.0) for one in (stopped, other)) == count + 50, "all is read"
            )
            for one in (stopped, other):
                one.wait_for(LAG, 0)
            wait_until(lambda: broker.held() == 0, "everything is acknowledged")
            assert counted(counts, Tally.SEEN) == count + 50
            assert counts.tallies()[Tally.DRAWN, ("search",)] == count + 50
        finally:
            counts.close()
