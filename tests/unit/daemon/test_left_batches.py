"""Message batches that are open when a judge sends no more: they are paid for, and collected."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.batched import FULLY, PRICE, Life, Provider, names
from support.callers import said
from support.kit import JUDGE

from ragwatch.pipeline.batching import LeftBatchesLoop
from ragwatch.pipeline.judging import JudgingLoop, JudgingRules


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    """A process with a judge that sends batches."""
    with closing(Life(tmp_path / "state", Provider())) as found:
        yield found


async def unbatched(life: Life, **parts: Any) -> LeftBatchesLoop:
    """The loop that takes the place of that of a judge that sends batches."""
    rules = JudgingRules(max_age_seconds=90 * 86400.0)
    loop = LeftBatchesLoop(life.judge, rules, store=life.store, telemetry=life.telemetry, clock=life.clock, **parts)
    await life.loop.finish()
    loop.inherit(life.loop)
    return loop


async def work(life: Life, loop: JudgingLoop) -> None:
    """Step and expire for an hour."""
    for _ in range(12):
        while await loop.step():
            pass
        await loop.expire()
        life.clock.now += 300.0


async def test_an_open_batch_is_collected(life: Life) -> None:
    """What was sent is not asked again, what comes is read at once, however much, and nothing stays reserved."""
    life.provider.outcomes = {"r00x": [said("no JSON")]}
    life.admit(*names(10))
    await life.loop.step()
    loop = await unbatched(life)
    new = [f"new-{name}" for name in names(20)[10:]]
    life.admit(*new)
    life.provider.script = [said(FULLY) for _ in new]
    await loop.step()
    await loop.expire()
    assert (set(life.reasons()), len(life.store.batches(JUDGE))) == (set(new), 1)
    await work(life, loop)
    assert life.reasons() == dict.fromkeys([*names(10), *new]) | {"r00x": "unreadable"}
    assert (life.provider.entries, len(life.provider.asked), len(life.provider.taken)) == (10, 10, 1)
    assert (life.store.pending(), life.store.batches(JUDGE)) == ({}, [])
    assert life.spent().usd == pytest.approx(10 * PRICE + 10 * 2 * PRICE)  # a batch is half the price
    await loop.close()


async def test_one_worker_collects(life: Life) -> None:
    """Others, which do not lead, read draws and leave batches alone."""
    life.admit(*names(4))
    await life.loop.step()

    async def nothing() -> bool:
        return False

    loop = await unbatched(life, led=lambda _: nothing)
    life.admit("new")
    life.provider.script = [said(FULLY)]
    await work(life, loop)
    assert (set(life.reasons()), len(life.store.batches(JUDGE))) == ({"new"}, 1)
    await loop.close()
