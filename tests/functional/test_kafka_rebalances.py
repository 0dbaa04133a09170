"""Kafka under rebalances: workers join, leave and crash every few seconds, and no message is lost or counted twice.

The mock cluster of librdkafka, or a real broker where RAGWATCH_TEST_KAFKA names one (`host:port`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.all_brokers import Brokers
from support.brokers import Worker, books, counted, once
from support.kit import a_line
from support.patience import DEADLINE
from support.queues import KafkaQueue

from ragwatch.statistics.tally import Tally
from ragwatch.stores.sqlite.store import SqliteStore

MESSAGES, PERIOD_SECONDS, CHANGES = 20_000, 5.0, 9


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[KafkaQueue]:
    """An empty topic."""
    brokers = Brokers(tmp_path)
    one: KafkaQueue = brokers.queue("kafka")
    yield one
    one.close()
    brokers.close()


@pytest.mark.slow
async def test_members_that_come_and_go(queue: KafkaQueue, store: SqliteStore) -> None:
    """Every 5 s a member joins, leaves or crashes after storing: 20,000 messages, each stored once."""
    steady, changing = queue.worker(store, consumer="steady", batch_records=100), list[Worker]()
    produced = 0
    for change in range(CHANGES):
        if change % 2 == 0:
            changing.append(queue.worker(store, consumer=f"guest-{change}", batch_records=100))
        elif change % 4 == 1:
            guest = changing.pop()
            guest.source.close()
        else:
            guest = changing.pop()
            if (batch := guest.source.read()) is not None:
                guest.admit(batch)
            queue.kill(guest)
        end = time.monotonic() + PERIOD_SECONDS
        share = (MESSAGES - produced) // (CHANGES - change)
        queue.send([a_line(f"c{change}-{number}") for number in range(share)], spread=True)
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
    assert queue.committed() == MESSAGES
