"""Draws that wait or are damaged: deferred, read by a second judge, or unjudged; none is lost or read twice."""

import asyncio
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import LogCapture
from support.batched import Life, Provider
from support.kit import AT, JUDGE, Clock, ScriptedJudge, a_claim, a_draw, a_verdict, an_admission, an_evidence
from support.loops import a_judging, take_all

from ragwatch.errors import JudgeError
from ragwatch.pipeline import judging
from ragwatch.pipeline.judging import MAX_PAUSE_SECONDS, Follower, JudgingLoop, give_up
from ragwatch.pipeline.labels import tasks
from ragwatch.pipeline.labels.tasks import LabelTasks
from ragwatch.pipeline.labels.verdicts import LabelRules
from ragwatch.ports import Query
from ragwatch.statistics.sampling import FollowRule
from ragwatch.statistics.tally import Invariant, Tally, violations
from ragwatch.stores import settling
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry

DOWN = JudgeError("unavailable", "529", permanent=False)


async def test_an_outage_settles_nothing(store: SqliteStore) -> None:
    """Draws stay pending, each is asked about once until its pause is over, and is judged when the judge is back.

    While a judge wants to be left alone no call is made.
    """
    store.admit(an_admission(*(a_draw(f"r{index}") for index in range(10))))
    judge, clock = ScriptedJudge({f"r{index}": DOWN for index in range(10)}), Clock()
    loop = a_judging(store, judge, clock=clock, max_age_seconds=3600)
    judge.tired = 30.0
    assert (await loop.step(), judge.asked, store.pending()) == (False, [], {JUDGE: 10})
    judge.tired = 0.0
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
    assert not loop._deferrals  # nor does it stay in memory


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


EVERY = FollowRule(1.0, 1.0)


def first(store: SqliteStore, rule: FollowRule, share: float = 1.0, **script: Any) -> JudgingLoop:
    """The judge `embedded`, followed by `second`."""
    return a_judging(store, ScriptedJudge(script), followers={"second": Follower(rule, lambda: share)})


def leased(store: SqliteStore) -> dict[str, float]:
    """What waits for the second judge: probability by sample id."""
    return {draw.sample.id: draw.probability for draw in store.lease("second", 1000, now=AT, seconds=1.0)}


@pytest.mark.parametrize(("probability", "share", "expected"), [(0.5, 1.0, 0.125), (1.0, 0.8, 0.2)])
async def test_the_probabilities_multiply(
    store: SqliteStore, probability: float, share: float, expected: float
) -> None:
    """The second judge's are those of the draw, of the share it reads of the first's, and of what its budget allows."""
    store.admit(an_admission(*(a_draw(f"r{index}", probability=probability) for index in range(200))))
    loop = first(store, FollowRule(0.25, 0.25), share=share)
    await take_all(loop)
    waiting = leased(store)
    assert set(waiting.values()) == {expected}
    assert 25 < len(waiting) < 75
    assert store.tallies()[Tally.ASSIGNED, ("second",)] == len(waiting)
    assert set(violations(*store.tallies_and_pending())) <= {Invariant.DRAWN_WERE_SEEN}  # no source: nothing was seen


async def test_what_the_first_was_unsure_of_is_read_more_often(store: SqliteStore) -> None:
    """An even chance of support brings the higher probability, certainty the lower one."""
    script = {f"r{index}": an_evidence(replace(a_claim(), support=0.5 if index % 2 else 1.0)) for index in range(200)}
    store.admit(an_admission(*(a_draw(f"r{index}") for index in range(200))))
    loop = first(store, FollowRule(0.1, 0.9), **script)
    await take_all(loop)
    waiting = leased(store)
    unsure = [name for name, probability in waiting.items() if abs(probability - 0.9) < 1e-9]
    sure = [name for name, probability in waiting.items() if abs(probability - 0.1) < 1e-9]
    assert len(unsure) + len(sure) == len(waiting)
    assert all(int(name[1:]) % 2 for name in unsure)
    assert not any(int(name[1:]) % 2 for name in sure)
    assert len(unsure) > 5 * len(sure) > 0


async def test_what_the_first_could_not_read_is_followed_too(store: SqliteStore) -> None:
    """A failure of the first judge must not take the answer out of the second one's population."""
    store.admit(an_admission(a_draw("bad"), a_draw("empty", answer=" ")))
    loop = first(store, FollowRule(0.001, 1.0), bad=JudgeError("refused", "no"))
    await loop.step()
    assert leased(store) == {"bad": 1.0, "empty": 1.0}


async def test_late_draws_are_followed_as_well(store: SqliteStore) -> None:
    """What became too old for the first judge still reaches the second."""
    store.admit(an_admission(a_draw("a")))
    clock = Clock(AT + 10 * 86400)
    loop = a_judging(store, clock=clock, followers={"second": Follower(EVERY, lambda: 1.0)})
    assert await loop.expire() is True
    assert await loop.expire() is False
    assert leased(store) == {"a": 1.0}
    assert store.tallies()[Tally.UNJUDGED, ("search", "embedded", "expired")] == 1
    assert set(violations(*store.tallies_and_pending())) <= {
        Invariant.DRAWN_WERE_SEEN
    }  # no source here: nothing was seen


def harm(store: SqliteStore, name: str) -> None:
    """Damage the stored text of a draw."""
    store.engine._writer.execute("UPDATE samples SET body = X'00ff' WHERE key = ?", (a_draw(name).key,))


def reasons(store: SqliteStore) -> dict[str, str | None]:
    """Reason by key, None for a judged one."""
    return {row.verdict.key: row.verdict.reason for row in store.find(Query())}


async def test_a_damaged_draw_is_unjudged_and_the_next_is_read(
    store: SqliteStore, telemetry: Telemetry, log: LogCapture
) -> None:
    """The judge is not asked about it; it is counted by its reason, told once, and leaves the queue."""
    store.admit(an_admission(a_draw("a"), a_draw("b")))
    harm(store, "a")
    judge = ScriptedJudge()
    loop = a_judging(store, judge, telemetry=telemetry)
    await take_all(loop)
    assert reasons(store) == {a_draw("a").key: "damaged", a_draw("b").key: None}
    assert (judge.asked, store.pending()) == (["b"], {})
    assert store.tallies()[Tally.UNJUDGED, ("search", JUDGE, "damaged")] == 1
    (told,) = [entry for entry in log.entries if entry.get("reason") == "damaged"]
    assert a_draw("a").key in told["why"]


async def test_damaged_draws_expire_and_are_given_up(store: SqliteStore) -> None:
    """What waits too long, or for a judge that is gone, goes, whether its text can be read or not."""
    store.admit(an_admission(a_draw("a"), a_draw("b"), judges=(JUDGE, "gone")))
    harm(store, "a")
    loop = a_judging(store, clock=Clock(AT + 1e6))
    assert await loop.expire()
    assert give_up(store, [JUDGE], now=AT) == 2
    assert store.pending() == {}


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> int:
    """How many characters of texts are leased, read and given to people at a time: few, so that texts are short."""
    for module, name in ((settling, "MAX_LEASED_CHARS"), (judging, "MAX_CHARS"), (tasks, "MAX_CHARS")):
        monkeypatch.setattr(module, name, 8000)
    return 8000


async def test_all_that_is_large_and_late_expires_in_one_step(store: SqliteStore, limit: int) -> None:
    """A lease of large texts is a few at a time; expiring goes on until none is left."""
    store.admit(an_admission(*(a_draw(name, answer="x" * limit) for name in "abcde")))
    assert len(store.lease(JUDGE, 9, now=AT, seconds=0.0)) == 1
    loop = a_judging(store, clock=Clock(AT + 1e6))
    assert await loop.expire()
    assert (store.pending(), await loop.expire()) == ({}, False)


async def test_long_answers_are_taken_up_a_few_at_a_time(store: SqliteStore, limit: int) -> None:
    """However many draws a batch may hold, the texts that are held at a time are limited; all are read in the end."""
    store.admit(an_admission(*(a_draw(name, answer="x" * (limit // 2)) for name in "abcdefgh")))
    loop = a_judging(store, batch=32)
    most = 0
    while await loop.step():
        most = max(most, sum(loop._chars.values()))
        assert len(loop._tasks) <= 6
    assert len(reasons(store)) == 8
    assert most <= 3 * limit


@pytest.mark.parametrize("sent", [False, True])
async def test_a_batch_passes_over_what_is_damaged(tmp_path: Path, telemetry: Telemetry, *, sent: bool) -> None:
    """Damaged before it is sent, or while it is out: unjudged with that reason; the others are judged."""
    life = Life(tmp_path / "state", Provider(), telemetry=telemetry)
    life.admit(*"abcd")
    if sent:
        assert await life.loop.step() is True
    life.store.engine._writer.execute("UPDATE samples SET body = X'00ff' WHERE key = ?", (a_draw("a").key,))
    await life.work()
    assert life.provider.entries == 4 - (not sent)
    reasons = {row.verdict.key: row.verdict.reason for row in life.store.find(Query())}
    assert reasons == {a_draw(name).key: None for name in "bcd"} | {a_draw("a").key: "damaged"}
    assert (life.store.pending(), life.store.batches(JUDGE)) == ({}, [])
    life.store.close()


def test_a_damaged_sample_is_no_task(store: SqliteStore) -> None:
    """People are given the others, and labels on it are kept."""
    draws = [a_draw(name) for name in "abc"]
    store.admit(an_admission(*draws))
    store.settle([a_verdict(draw) for draw in draws])
    harm(store, "b")
    labelling = LabelTasks(LabelRules({JUDGE: "scripted-1"}, (JUDGE,)), store=store, clock=Clock(), uniform=lambda: 0.5)
    assert sorted(task["sample"]["id"] for task in labelling.tasks("ann", 9)) == ["a", "c"]
    put = labelling.put([{"key": draws[1].key, "annotator": "ann", "at": AT, "scores": {"faithfulness": 1.0}}])
    assert put == {"new": 1, "replaced": 0, "unmatched": 0}


def test_tasks_are_fewer_where_texts_are_long(store: SqliteStore, limit: int) -> None:
    """A person asks for ten and is given what fits a response; the others come the next time."""
    draws = [a_draw(name, answer="x" * (limit // 2 - 1000)) for name in "abcde"]
    store.admit(an_admission(*draws))
    store.settle([a_verdict(draw) for draw in draws])
    labelling = LabelTasks(LabelRules({JUDGE: "scripted-1"}, (JUDGE,)), store=store, clock=Clock(), uniform=lambda: 0.5)
    given = labelling.tasks("ann", 10)
    assert len(given) == 2
    for task in given:
        labelling.put([{"key": task["key"], "annotator": "ann", "at": AT, "scores": {"faithfulness": 1.0}}])
    assert len(labelling.tasks("ann", 10)) == 2
