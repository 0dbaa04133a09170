"""Kafka under rebalances: workers join, leave and crash every few seconds, and no message is lost or counted twice.

The mock cluster of librdkafka always; a real broker where RAGWATCH_TEST_KAFKA names one (`host:port`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from support.brokers import Worker, books, counted, once
from support.patience import DEADLINE
from unit.sources.test_kafka import Cluster, Topic, crash, names

from ragwatch.core.tally import Tally
from ragwatch.stores.sqlite.store import SqliteStore

SERVERS = os.environ.get("RAGWATCH_TEST_KAFKA")
MESSAGES, PERIOD_SECONDS, CHANGES = 20_000, 5.0, 9


class RealCluster:
    """A broker that runs already."""

    def __init__(self, servers: str) -> None:
        self.servers = servers
        self.producer: Any = confluent_kafka.Producer({"bootstrap.servers": servers})

    def create(self, name: str) -> None:
        """Create a topic with four partitions."""
        topics = AdminClient({"bootstrap.servers": self.servers}).create_topics([NewTopic(name, 4, 1)])
        topics[name].result(DEADLINE)


@pytest.fixture(params=["mock", "real"])
def topic(request: pytest.FixtureRequest) -> Iterator[Topic]:
    """A topic with one message."""
    if request.param == "real" and SERVERS is None:
        pytest.skip("RAGWATCH_TEST_KAFKA names no broker")
    one = Topic(Cluster() if request.param == "mock" else RealCluster(SERVERS or ""))  # type: ignore[arg-type]
    yield one
    one.close()


@pytest.mark.slow
async def test_members_that_come_and_go(topic: Topic, store: SqliteStore) -> None:
    """Every 5 s a member joins, leaves or crashes after storing: 20,000 messages, each stored once."""
    steady, changing = topic.worker(store, consumer="steady", batch_records=100), list[Worker]()
    produced = 1
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
            crash(guest.source)
        end = time.monotonic() + PERIOD_SECONDS
        share = (MESSAGES - produced) // (CHANGES - change)
        topic.add(*names(share, f"c{change}-"))
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
