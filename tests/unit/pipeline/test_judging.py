"""Judging: every outcome of a judge becomes a verdict, once, also with slow readings and a store that is full."""

import asyncio
from typing import Any

import pytest
from structlog.testing import LogCapture
from support.kit import AT, JUDGE, Clock, ScriptedJudge, a_claim, a_draw, an_admission, an_evidence
from support.loops import a_judging

from ragwatch.errors import JudgeError, StoreError
from ragwatch.model.evidence import Evidence, ShapeError
from ragwatch.model.sample import Sample
from ragwatch.pipeline.judging import give_up
from ragwatch.pipeline.reading import DrawReader, JudgeSelfTests
from ragwatch.ports import Query
from ragwatch.statistics.tally import Tally
from ragwatch.statistics.verdict import Judged, Unjudged, UnjudgedReason, Usage
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry


async def never() -> None:
    """An answer that does not come."""
    await asyncio.Event().wait()


FAILURES: dict[str, tuple[Any, str]] = {
    **{reason: (JudgeError(reason, "why"), reason) for reason in UnjudgedReason},
    "unheard_of": (JudgeError("unheard_of", "why"), "internal"),
    "slow": (never, "timeout"),
    "socket": (TimeoutError(), "timeout"),
    "torn": (ShapeError("torn"), "unreadable"),
    "other contexts": (an_evidence((), relevant=()), "unreadable"),
    "beyond": (an_evidence(a_claim(start=0, end=99)), "unreadable"),
    "bug": (ZeroDivisionError("division by zero"), "internal"),
}


QUICK = {"timeout_seconds": 0.01}
"""A judge that does not answer is given up at once."""


def outcomes(store: SqliteStore) -> dict[str, str | None]:
    """Reason by sample id; None for what was judged."""
    return {row.verdict.id: row.verdict.reason for row in store.find(Query(limit=1000))}


async def test_every_failure_has_its_reason_and_stops_nobody(store: SqliteStore) -> None:
    """Each kind of failure is counted by its reason, in one step, beside the good ones, and has no score at all."""
    store.admit(an_admission(a_draw("good"), *(a_draw(name) for name in FAILURES), a_draw("late")))
    judge = ScriptedJudge({name: outcome for name, (outcome, _) in FAILURES.items()})
    assert await a_judging(store, judge, **QUICK).step() is True
    assert outcomes(store) == {"good": None, "late": None} | {name: reason for name, (_, reason) in FAILURES.items()}
    assert store.pending() == {}
    tallies = store.tallies()
    assert tallies[Tally.JUDGED, ("search", JUDGE)] == 2
    unjudged = sum(value for (tally, _), value in tallies.items() if tally is Tally.UNJUDGED)
    assert tallies[Tally.DRAWN, ("search",)] == 2 + unjudged
    assert [row.key for row in store.window(0, 0.0, 100) if row.scores is not None] == [
        a_draw("good").key,
        a_draw("late").key,
    ]


async def test_settled_in_the_order_of_the_log(store: SqliteStore) -> None:
    """Whoever is read first at the same time: detectors meet scores in one order, so that a kill moves no alarm."""
    names = [f"r{index}" for index in range(12)]
    read = {name: asyncio.Event() for name in names}

    def after(name: str) -> Any:
        async def fail() -> None:
            await read[name].wait()

        return fail

    async def last() -> None:
        for event in reversed(read.values()):
            event.set()
            await asyncio.sleep(0)

    draws = [a_draw(name) for name in names]
    store.admit(an_admission(*draws))
    script = {**{name: after(name) for name in names}, names[-1]: last}
    await a_judging(store, ScriptedJudge(script, concurrency=12), timeout_seconds=10.0, batch=12).step()
    assert [row.key for row in store.window(0, 0.0, 100)] == [draw.key for draw in draws]


async def test_an_empty_answer_asks_nobody(store: SqliteStore, telemetry: Telemetry) -> None:
    """There is nothing to read: it is counted, and no call is made or paid."""
    store.admit(an_admission(a_draw("a", answer=""), a_draw("b", answer="  \n\t")))
    judge = ScriptedJudge()
    await a_judging(store, judge, telemetry=telemetry).step()
    assert (outcomes(store), judge.asked, telemetry.counts()) == (dict.fromkeys("ab", "empty_answer"), [], {})


async def test_batches_and_settling_once(store: SqliteStore) -> None:
    """Steps take a batch each, oldest first, until nothing is left; every draw is read once."""
    store.admit(an_admission(*(a_draw(f"r{index}") for index in range(5))))
    judge = ScriptedJudge()
    loop = a_judging(store, judge, batch=2, **QUICK)
    assert [await loop.step() for _ in range(4)] == [True, True, True, False]
    assert judge.asked == [f"r{index}" for index in range(5)]
    assert store.tallies()[Tally.JUDGED, ("search", JUDGE)] == 5


def test_draws_of_a_judge_that_is_gone_are_given_up(store: SqliteStore) -> None:
    """What waits for a judge that is no longer configured becomes unjudged, is counted, and waits no more."""
    store.admit(an_admission(a_draw("a"), a_draw("b")))
    assert give_up(store, [JUDGE], now=AT) == 0
    assert give_up(store, ["another"], now=AT) == 2
    assert outcomes(store) == {"a": "judge_removed", "b": "judge_removed"}
    assert store.pending() == {}
    assert store.tallies()[Tally.UNJUDGED, ("search", JUDGE, "judge_removed")] == 2


async def test_no_more_readings_at_once_than_the_judge_allows(telemetry: Telemetry) -> None:
    """`concurrency` is a promise to the judge, whatever the batch."""
    now = most = 0

    async def count() -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0)
        now -= 1

    judge = ScriptedJudge({f"r{index}": count for index in range(20)}, concurrency=3)
    reader = DrawReader(judge, timeout_seconds=5.0, telemetry=telemetry)
    await asyncio.gather(*(reader.read(a_draw(f"r{index}")) for index in range(20)))
    assert most == 3


async def test_a_bug_is_told_with_its_traceback(telemetry: Telemetry, log: LogCapture) -> None:
    """The verdict says which error it was; the log says where."""
    reader = DrawReader(ScriptedJudge({"a": ZeroDivisionError("no")}), timeout_seconds=5.0, telemetry=telemetry)
    verdict = await reader.read(a_draw("a"))
    assert isinstance(verdict, Unjudged)
    assert (verdict.reason, verdict.detail) == ("internal", "ZeroDivisionError")
    assert isinstance(log.entries[0]["exc_info"], ZeroDivisionError)


async def test_cancelling_is_not_a_verdict(store: SqliteStore) -> None:
    """A step that is cancelled leaves its draws pending for the next start."""
    store.admit(an_admission(a_draw("a")))
    asked = asyncio.Event()

    async def publish() -> None:
        asked.set()
        await never()

    loop = a_judging(store, ScriptedJudge({"a": publish}), timeout_seconds=60.0)
    step = asyncio.create_task(loop.step())
    await asked.wait()
    step.cancel()
    with pytest.raises(asyncio.CancelledError):
        await step
    await loop.close()
    assert (store.pending(), outcomes(store)) == ({JUDGE: 1}, {})
    assert len(store.lease(JUDGE, 1, now=AT + 301, seconds=1)) == 1


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


@pytest.mark.parametrize("reloads", [False, True])
async def test_what_could_not_be_written_is_written_later(store: SqliteStore, *, reloads: bool) -> None:
    """A reading may have cost money: the next step writes it, also that of a later loop, and asks nobody again."""
    first, second = ScriptedJudge({}), ScriptedJudge({})
    store.admit(an_admission(a_draw("a")))
    old = a_judging(store, first)
    new = a_judging(store, second) if reloads else old
    store.engine._writer.execute("PRAGMA query_only=ON")
    with pytest.raises(StoreError):
        await old.step()
    if reloads:
        await old.close()
        new.inherit(old)
    store.engine._writer.execute("PRAGMA query_only=OFF")
    await new.step()
    assert (first.asked, second.asked) == (["a"], [])
    assert (store.pending(), len(store.find(Query(limit=10)))) == ({}, 1)


class LengthJudge(ScriptedJudge):
    """A judge that accepts every answer of more than some characters, and fails beyond a second number."""

    def __init__(self, accepts: int, fails: int = 1_000_000) -> None:
        super().__init__()
        self.accepts, self.fails = accepts, fails

    async def read(self, sample: Sample) -> tuple[Evidence, Usage]:
        """Supported if it is long."""
        if len(sample.answer) > self.fails:
            raise ValueError("too long")
        return an_evidence((int(len(sample.answer) > self.accepts), 0)), Usage(1, 1, 0.0)


async def counted(judge: LengthJudge) -> dict[Tally, float]:
    """The tallies of the known-bad test of one answer."""
    reader = DrawReader(judge, timeout_seconds=5.0, telemetry=Telemetry())
    verdict = await reader.read(a_draw())
    assert isinstance(verdict, Judged)
    tallies = await JudgeSelfTests(known_bad=1.0).run(verdict, reader)
    return {tally: count for (tally, _), count in tallies.items()}


async def test_a_padded_answer_that_scores_higher_is_counted() -> None:
    """A judge that accepts long answers prefers padding; one that accepts all, or none, does not."""
    found = await counted(LengthJudge(150))
    assert (found[Tally.PADDED], found[Tally.PADDING_PREFERRED], found[Tally.FOOLED]) == (1, 1, 0)
    for length in (0, 1_000_000):
        found = await counted(LengthJudge(length))
        assert (found[Tally.PADDED], found[Tally.PADDING_PREFERRED]) == (1, 0)


async def test_a_failed_reading_counts_nothing() -> None:
    """If only the padded answer fails, the known-bad answer still counts."""
    assert set(await counted(LengthJudge(0, fails=150))) == {Tally.KNOWN_BAD, Tally.FOOLED}
    assert await counted(LengthJudge(0, fails=12)) == {}
