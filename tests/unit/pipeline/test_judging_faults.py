"""Judging faults: slow readings, a store that cannot be written, and bounds on memory."""

from __future__ import annotations

import asyncio

import pytest
from support.judgings import a_judging
from support.kit import AT, JUDGE, Clock, ScriptedJudge, a_draw, an_admission

from ragwatch.core.sampling import key_of
from ragwatch.errors import JudgeError, StoreError
from ragwatch.pipeline.judging import give_up
from ragwatch.pipeline.reading import JudgeSelfTests
from ragwatch.ports import Query
from ragwatch.stores.sqlite.store import SqliteStore


async def settled() -> None:
    """Let tasks go on until they wait for something that does not come."""
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.mark.costly
async def test_no_draw_is_read_twice_at_a_time(store: SqliteStore) -> None:
    """32 draws of a judge with one place wait up to 32 minutes for it; the lease is five."""
    gate = asyncio.Event()
    judge = ScriptedJudge(dict.fromkeys("ab", gate.wait), concurrency=2)
    store.admit(an_admission(a_draw("a"), a_draw("b")))
    clock = Clock()
    loop = a_judging(store, judge, batch=32, clock=clock)
    await loop.step()
    clock.now += 301.0
    await loop.step()
    gate.set()
    await loop.finish()
    assert judge.asked == ["a", "b"]


async def test_a_store_that_cannot_write_costs_no_sample(store: SqliteStore) -> None:
    """A full disk refuses the reservation: the draw was not read, nothing lies in it, it stays pending."""
    judge = ScriptedJudge({"a": StoreError("state: 3 MiB are free on the disk")})
    store.admit(an_admission(a_draw("a")))
    loop = a_judging(store, judge)
    await loop.step()
    assert store.find(Query(limit=10)) == []
    assert store.pending() == {JUDGE: 1}


async def test_what_is_expired_is_forgotten(store: SqliteStore) -> None:
    """Every outage that outlasts max_age leaves an entry for each draw, until a reload."""
    judge = ScriptedJudge({"a": JudgeError("unavailable", "down", permanent=False)})
    store.admit(an_admission(a_draw("a")))
    clock = Clock()
    loop = a_judging(store, judge, max_age_seconds=60.0, clock=clock)
    await loop.step()
    clock.now += 1000.0
    assert await loop.expire() is True
    assert store.pending() == {}
    assert key_of("app", "a") not in loop._deferrals


async def test_finishing_begins_nothing(store: SqliteStore) -> None:
    """When asked to end, what is under way ends; what waits for its place stays pending.

    A loop that a reload brings reads it at once, or gives it up where its judge is gone: nothing was wrong with it.
    """
    gate = asyncio.Event()
    judge = ScriptedJudge({"a": gate.wait}, concurrency=1)
    store.admit(an_admission(*(a_draw(name) for name in "abcd")))
    loop = a_judging(store, judge)
    await loop.step()
    assert judge.asked == ["a"]
    ending = asyncio.create_task(loop.finish())
    await settled()
    gate.set()
    await ending
    assert judge.asked == ["a"]
    assert store.pending() == {JUDGE: 3}
    assert give_up(store, [], now=AT) == 3
    assert store.pending() == {}


async def test_a_trial_never_costs_the_verdict(store: SqliteStore) -> None:
    """The answer was read and paid; reading it once more, to test the judge, must not hold up or lose that."""
    asked: list[str] = []

    async def first_at_once_then_never() -> None:
        asked.append("")
        if len(asked) > 1:
            await asyncio.Event().wait()

    store.admit(an_admission(a_draw("a")))
    judge = ScriptedJudge({"a": first_at_once_then_never})
    loop = a_judging(store, judge, self_tests=JudgeSelfTests(repeat=1.0))
    await loop.step()
    await loop.close()
    assert len(asked) == 2
    assert [row.verdict.outcome for row in store.find(Query(limit=1))] == ["judged"]


async def test_what_could_not_be_written_outlives_a_reload(store: SqliteStore) -> None:
    """A reading may have cost money: the loop that takes the place of a closed one writes it, and asks nobody again."""
    first, second = ScriptedJudge({}), ScriptedJudge({})
    store.admit(an_admission(a_draw("a")))
    old, new = (a_judging(store, judge) for judge in (first, second))
    store.engine._writer.execute("PRAGMA query_only=ON")
    with pytest.raises(StoreError):
        await old.step()
    await old.close()
    new.inherit(old)
    store.engine._writer.execute("PRAGMA query_only=OFF")
    await new.step()
    assert (first.asked, second.asked) == (["a"], [])
    assert (store.pending(), len(store.find(Query(limit=10)))) == ({}, 1)
