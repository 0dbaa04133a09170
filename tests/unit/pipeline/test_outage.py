"""Outages: draws that cannot be read at present are deferred with backoff, and never lost or read twice."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
from support.judgings import a_judging
from support.kit import JUDGE, Clock, ScriptedJudge, a_draw, an_admission, an_evidence

from ragwatch.core.tally import Tally
from ragwatch.errors import JudgeError
from ragwatch.pipeline.judging import MAX_PAUSE_SECONDS
from ragwatch.ports import Query
from ragwatch.stores.sqlite.store import SqliteStore

DOWN = JudgeError("unavailable", "529", permanent=False)


async def test_an_outage_settles_nothing(store: SqliteStore) -> None:
    """Draws stay pending, each is asked about once until its pause is over, and is judged when the judge is back."""
    store.admit(an_admission(*(a_draw(f"r{index}") for index in range(10))))
    judge, clock = ScriptedJudge({f"r{index}": DOWN for index in range(10)}), Clock()
    loop = a_judging(store, judge, clock=clock, max_age_seconds=3600)
    assert [await loop.step() for _ in range(3)] == [True, False, False]
    assert (len(judge.asked), store.pending()) == (10, {JUDGE: 10})
    judge.script.clear()
    clock.now += 6
    assert await loop.step() is True
    assert (store.pending(), store.tallies()[Tally.JUDGED, ("search", JUDGE)]) == ({}, 10)


@pytest.mark.costly
async def test_pauses_grow_to_a_limit(store: SqliteStore) -> None:
    """A long outage is asked about ever more rarely: in 10 hours, some 60 times a draw and not 7,000."""
    store.admit(an_admission(a_draw("a")))
    judge, clock = ScriptedJudge({"a": DOWN}), Clock()
    loop = a_judging(store, judge, clock=clock, max_age_seconds=3600)
    times: list[float] = []
    for _ in range(7200):
        if await loop.step():
            times.append(clock.now)
        clock.now += 5
    pauses = [later - earlier for earlier, later in pairwise(times)]
    assert pauses == sorted(pauses)
    assert max(pauses) <= MAX_PAUSE_SECONDS + 5
    assert len(times) < 80


async def test_a_tired_judge_is_given_nothing(store: SqliteStore) -> None:
    """While a judge wants to be left alone, draws stay where they are, and no call is made."""
    store.admit(an_admission(a_draw("a")))
    judge = ScriptedJudge()
    judge.tired = 30.0
    loop = a_judging(store, judge, max_age_seconds=3600)
    assert await loop.step() is False
    assert (judge.asked, store.pending()) == ([], {JUDGE: 1})


async def test_what_waited_too_long_expires_and_is_counted(store: SqliteStore) -> None:
    """After `max_age` a draw is settled as unjudged: it widens the worst case instead of vanishing."""
    store.admit(an_admission(a_draw("old")))
    clock = Clock()
    loop = a_judging(store, ScriptedJudge({"old": DOWN}), clock=clock, max_age_seconds=3600)
    await loop.step()
    assert await loop.expire() is False
    expired = []
    for _ in range(10):
        clock.now += 400.0
        expired.append(await loop.expire())
    assert expired.count(True) == 1
    assert store.tallies()[Tally.UNJUDGED, ("search", JUDGE, "expired")] == 1
    assert [row.verdict.reason for row in store.find(Query())] == ["expired"]


async def test_a_slow_reading_holds_nobody_up(store: SqliteStore) -> None:
    """What was read is settled while another reading still goes on, and that one is settled at the end."""
    gate = asyncio.Event()

    async def slow() -> object:
        await gate.wait()
        return an_evidence((1, 0))

    store.admit(an_admission(a_draw("slow"), a_draw("quick")))
    loop = a_judging(store, ScriptedJudge({"slow": slow}), max_age_seconds=3600)
    assert await loop.step() is True
    assert store.tallies()[Tally.JUDGED, ("search", JUDGE)] == 1
    gate.set()
    await loop.finish()
    assert store.tallies()[Tally.JUDGED, ("search", JUDGE)] == 2


@pytest.mark.parametrize("back", [True, False])
async def test_a_clock_that_leaps_expires_nothing(store: SqliteStore, *, back: bool) -> None:
    """A day ahead, for a moment or for good: who waited for a minute waits on, and no longer than `max_age` in all."""
    clock = Clock()
    loop = a_judging(store, clock=clock, max_age_seconds=3600)
    store.admit(an_admission(a_draw()))
    assert await loop.expire() is False
    clock.now += 60.0 + 86400.0
    assert await loop.expire() is False
    if back:
        clock.now -= 86400.0
    for _ in range(49):
        clock.now += 60.0
        assert await loop.expire() is False
    expired = []
    for _ in range(12):
        clock.now += 60.0
        expired.append(await loop.expire())
    assert expired.count(True) == 1


async def test_behind_a_leap_of_the_clock_others_wait_as_long(store: SqliteStore) -> None:
    """What is drawn after it waits for `max_age`, neither longer nor shorter."""
    clock = Clock()
    loop = a_judging(store, clock=clock, max_age_seconds=3600)
    await loop.expire()
    clock.now += 86400.0
    await loop.expire()
    store.admit(an_admission(a_draw(at=clock.now)))
    expired = []
    for _ in range(62):
        clock.now += 60.0
        expired.append(await loop.expire())
    assert (expired.index(True), sum(expired)) == (60, 1)
