"""Reading stored answers again: what was read is stored at once, what was not stays open."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.kit import AT, JUDGE, ScriptedJudge, a_draw, a_verdict, an_admission, an_evidence
from support.patience import DEADLINE

from ragwatch.errors import JudgeError
from ragwatch.model.budget import Cost, SpendingCap
from ragwatch.model.evidence import Evidence
from ragwatch.pipeline.rejudging import RejudgeOutcome, RejudgeRequest, Rejudging, outcome_of
from ragwatch.pipeline.sampling_control import JudgePlan, SamplingControl
from ragwatch.ports import Query
from ragwatch.statistics.tally import Tallies, Tally
from ragwatch.statistics.verdict import UnjudgedReason
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry

NAMES = ("a", "b", "c", "d")
KEYS = tuple(a_draw(name).key for name in NAMES)
REQUEST = RejudgeRequest(JUDGE, 0.5, KEYS)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    """Four answers, drawn with probability 0.5 and read by the first judge."""
    opened = SqliteStore(tmp_path / "state")
    draws = [a_draw(name, probability=0.5) for name in NAMES]
    opened.admit(an_admission(*draws))
    opened.settle([a_verdict(draw) for draw in draws])
    yield opened
    opened.close()


def rejudging(judge: ScriptedJudge, store: SqliteStore) -> Rejudging:
    """Reading with a judge."""
    return Rejudging(judge, store=store, timeout_seconds=DEADLINE, telemetry=Telemetry())


def read_by(store: SqliteStore, judge: str = "second") -> dict[str, float]:
    """Probability of each stored verdict of a judge, by id."""
    return {row.verdict.id: row.verdict.probability for row in store.find(Query(judge=judge))}


async def test_what_cannot_be_read_stays_open(store: SqliteStore) -> None:
    """A failure is counted with its reason, one of the moment comes back, and the next run reads both."""
    broken = JudgeError(UnjudgedReason.REFUSED, "not this one")
    later = JudgeError(UnjudgedReason.OVER_BUDGET, "no budget for it", permanent=False)
    judge = ScriptedJudge(name="second", script={"b": broken, "c": later})
    outcome = await rejudging(judge, store).read(REQUEST)
    assert (outcome.stored, outcome.skipped, outcome.failed, outcome.deferred) == (
        2,
        0,
        {"refused": 1},
        {"over_budget": 1},
    )
    assert outcome.left == (KEYS[2],)
    assert read_by(store) == {"a": 0.25, "d": 0.25}
    assert outcome_of(outcome.to_dict()) == outcome
    again = await rejudging(ScriptedJudge(name="second"), store).read(REQUEST)
    assert (again.stored, again.skipped) == (2, 2)
    assert set(read_by(store).values()) == {0.25}
    assert len(read_by(store)) == 4


async def test_what_was_read_is_stored_when_it_is_cancelled(store: SqliteStore) -> None:
    """Readings may have cost money; those under way end, and nothing else is stored."""
    waits, last = asyncio.Event(), asyncio.Event()

    async def forever() -> Evidence:
        last.set()
        await waits.wait()
        return an_evidence((1, 0))

    outcome = RejudgeOutcome()
    task = asyncio.create_task(
        rejudging(ScriptedJudge(name="second", script={"d": forever}), store).read(REQUEST, outcome)
    )
    await asyncio.wait_for(last.wait(), DEADLINE)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert set(read_by(store)) == {"a", "b", "c"}
    assert outcome.stored == 3


async def test_unknown_answers_are_left_out(store: SqliteStore) -> None:
    """They are counted as skipped; without any answer, nothing is read."""
    judge = ScriptedJudge(name="second")
    outcome = await rejudging(judge, store).read(RejudgeRequest("nobody", 1.0, KEYS))
    assert (outcome, judge.asked) == (RejudgeOutcome(skipped=4), [])


def test_its_cost_does_not_make_live_readings_look_dear(store: SqliteStore) -> None:
    """The price of a reading is what all readings cost by their number: live draws fall by the budget that is left."""
    cap = SpendingCap(86400.0, usd=1.0)

    def factor(readings: Tallies) -> float:
        control = SamplingControl({"second": JudgePlan(1.0, (cap,))}, store, 1000)
        arrived: Tallies = Counter({(Tally.ASSIGNED, ("second",)): 100})
        control.update(Counter(), {}, AT - 100.0)
        control.update(arrived + readings, {}, AT)
        return control.factor("second")

    for _ in range(100):
        reservation = store.reserve("second", Cost(0.001), [cap], now=AT - 50.0)
        assert reservation is not None
    judged, rejudged = (Tally.JUDGED, ("search", "second")), (Tally.REJUDGED, ("second",))
    mixed = factor(Counter({judged: 25, rejudged: 75}))
    assert mixed == factor(Counter({judged: 100})) > factor(Counter({judged: 25}))
    assert mixed < 1.0
