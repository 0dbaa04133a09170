"""What every kind of source promises: see `ports.Source`. What only brokers promise is in `test_brokers`."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.all_brokers import Brokers
from support.brokers import SOURCE, Worker, books, counted, names, once
from support.feeds import Feed, JoinFeed, OtlpFeed, PushFeed, QueueFeed, TailFeed
from support.patience import DEADLINE

from ragwatch.statistics.tally import Tally
from ragwatch.stores.sqlite.store import SqliteStore

KINDS: dict[str, Callable[[Path], Feed]] = {
    "tail": TailFeed,
    "join": JoinFeed,
    "push": lambda _: PushFeed(),
    "otlp": lambda _: OtlpFeed(),
}
SERVED = [pytest.param(kind, marks=pytest.mark.servers) for kind in ("redis_streams", "nats", "sqs")]
KAFKA = pytest.param("kafka", marks=[pytest.mark.servers, pytest.mark.costly])
pytestmark = pytest.mark.parametrize("kind", [*KINDS, *SERVED, KAFKA])


@pytest.fixture
async def feed(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Feed]:
    """What feeds a source of one kind."""
    if kind in KINDS:
        feed = KINDS[kind](tmp_path)
        yield feed
        await feed.end()
        return
    brokers: Brokers = request.getfixturevalue("brokers")
    queue = brokers.queue(kind)
    yield QueueFeed(queue)
    queue.close()


async def read_until(worker: Worker, holds: Callable[[], object], what: str) -> None:
    """Step until a condition holds; clients get their turn."""
    end = time.monotonic() + DEADLINE
    while not holds():
        assert time.monotonic() < end, f"never happened: {what}"
        await worker.intake.step()
        await asyncio.sleep(0.002)


async def arrived(worker: Worker) -> Any:
    """The next batch."""
    end = time.monotonic() + DEADLINE
    while (batch := await asyncio.to_thread(worker.source.read)) is None:
        assert time.monotonic() < end
        await asyncio.sleep(0.002)
    return batch


def is_done(store: SqliteStore, count: int) -> bool:
    """Whether so many records are stored, and no part of a record waits."""
    return counted(store, Tally.SEEN) >= count and not list(store.parts(SOURCE))


@pytest.mark.parametrize("stored", [False, True])
async def test_killed_between_reading_and_acknowledging(feed: Feed, store: SqliteStore, *, stored: bool) -> None:
    """Whether a batch was stored or not when the process ended: nothing is lost, and every record counts once."""
    killed = feed.start(store)
    feed.add(*names(6))
    for _ in range(2):
        batch = await arrived(killed)
        if stored:
            killed.admit(batch)
        feed.kill(killed)
        killed = feed.start(store)
    await read_until(killed, lambda: is_done(store, 6), "all is read")
    for _ in range(3):
        await killed.intake.step()
        await asyncio.sleep(0.01)
    assert books(store) == once(6)


async def test_commits_are_in_order_and_once(feed: Feed, store: SqliteStore) -> None:
    """A batch is the same until it is committed; to commit an earlier one once more does nothing to it."""
    worker = feed.start(store)
    feed.add(*names(6))
    first = await arrived(worker)
    worker.admit(first)
    worker.source.commit(first)
    while not is_done(store, 6):
        batch = await asyncio.to_thread(worker.source.read)
        if batch is not None:
            with contextlib.suppress(ValueError):
                worker.source.commit(first)
            assert not feed.keeps_batches or worker.source.read() is batch
            worker.admit(batch)
            worker.source.commit(batch)
        await asyncio.sleep(0.002)
    assert books(store) == once(6)


async def test_nothing_is_read_while_too_much_waits_to_be_judged(feed: Feed, store: SqliteStore) -> None:
    """What is behind the limit stays where it is, its lag is known, and it is read when there is room."""
    worker = feed.start(store, max_pending=2)
    feed.add(*names(4))
    await read_until(worker, lambda: sum(store.pending().values()) >= 2, "the limit is reached")
    feed.add(*[f"later{number}" for number in range(3)])
    seen = counted(store, Tally.SEEN)
    await read_until(
        worker, lambda: worker.intake.lag and (worker.intake.lag.size or worker.intake.lag.records), "a lag is known"
    )
    assert counted(store, Tally.SEEN) == seen < 7
    worker.intake.rules = replace(worker.intake.rules, max_pending=1_000_000)
    await read_until(worker, lambda: is_done(store, 7), "the rest is read")
    assert books(store) == once(7)
    await read_until(
        worker,
        lambda: worker.intake.lag and not (worker.intake.lag.size or worker.intake.lag.records),
        "no lag is left",
    )


async def test_what_cannot_be_read_is_counted(feed: Feed, store: SqliteStore) -> None:
    """One wrong record is rejected with its reason and the name of the field, and costs no other."""
    worker = feed.start(store)
    feed.add("r0", "wrong", "r1")
    reason, field = feed.refusal
    await read_until(worker, lambda: books(store)["drawn"] == 2 and books(store)["rejected"], "all is read")
    assert counted(store, Tally.REJECTED, reason) == 1
    first = worker.intake.first_rejected
    assert first is not None
    assert (str(first.reason), first.field) == (reason, field)


async def test_it_ends_within_its_grace(feed: Feed, store: SqliteStore) -> None:
    """With a batch that is not stored, and once more when it is closed already; what was read is read again."""
    worker = feed.start(store)
    feed.add(*names(2))
    await arrived(worker)
    start = time.monotonic()
    feed.kill(worker)
    worker.source.close()
    assert time.monotonic() - start < 5
    other = feed.start(store)
    await read_until(other, lambda: is_done(store, 2), "all is read")
    assert books(store) == once(2)
