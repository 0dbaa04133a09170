"""Cascades: a second judge reads after a first one, with a probability that is stored and never counted twice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from support.judgings import a_judging
from support.kit import AT, Clock, ScriptedJudge, a_claim, a_draw, an_admission, an_evidence

from ragwatch.core.cascade import FollowRule
from ragwatch.core.invariants import Invariant, violations
from ragwatch.core.tally import Tally
from ragwatch.errors import JudgeError
from ragwatch.pipeline.judging import Follower, JudgingLoop, give_up
from ragwatch.stores.sqlite.store import SqliteStore

EVERY = FollowRule(1.0, 1.0)


def first(store: SqliteStore, rule: FollowRule, share: float = 1.0, **script: Any) -> JudgingLoop:
    """The judge `embedded`, followed by `second`."""
    return a_judging(store, ScriptedJudge(script), followers={"second": Follower(rule, lambda: share)})


def leased(store: SqliteStore) -> dict[str, float]:
    """What waits for the second judge: probability by sample id."""
    return {draw.sample.id: draw.probability for draw in store.lease("second", 1000, now=AT, seconds=1.0)}


async def test_the_probabilities_multiply(store: SqliteStore) -> None:
    """What the second judge reads came about by the draw, and by the share that it reads of the first's."""
    store.admit(an_admission(*(a_draw(f"r{index}", probability=0.5) for index in range(200))))
    judging = first(store, FollowRule(0.25, 0.25))
    while await judging.step():
        pass
    waiting = leased(store)
    assert set(waiting.values()) == {0.125}
    assert 25 < len(waiting) < 75
    assert store.tallies()[Tally.ASSIGNED, ("second",)] == len(waiting)
    assert set(violations(*store.tallies_and_pending())) <= {
        Invariant.DRAWN_WERE_SEEN
    }  # no source here: nothing was seen


async def test_what_the_first_was_unsure_of_is_read_more_often(store: SqliteStore) -> None:
    """An even chance of support brings the higher probability, certainty the lower one."""
    script = {f"r{index}": an_evidence(replace(a_claim(), support=0.5 if index % 2 else 1.0)) for index in range(200)}
    store.admit(an_admission(*(a_draw(f"r{index}") for index in range(200))))
    judging = first(store, FollowRule(0.1, 0.9), **script)
    while await judging.step():
        pass
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
    judging = first(store, FollowRule(0.001, 1.0), bad=JudgeError("refused", "no"))
    await judging.step()
    assert leased(store) == {"bad": 1.0, "empty": 1.0}


async def test_a_short_budget_lowers_the_probability_and_says_so(store: SqliteStore) -> None:
    """The factor in force when the verdict falls is part of the stored probability."""
    store.admit(an_admission(*(a_draw(f"r{index}") for index in range(300))))
    judging = first(store, EVERY, share=0.2)
    while await judging.step():
        pass
    waiting = leased(store)
    assert set(waiting.values()) == {0.2}
    assert 30 < len(waiting) < 90


async def test_late_draws_are_followed_as_well(store: SqliteStore) -> None:
    """What became too old for the first judge still reaches the second."""
    store.admit(an_admission(a_draw("a")))
    clock = Clock(AT + 10 * 86400)
    judging = a_judging(store, clock=clock, followers={"second": Follower(EVERY, lambda: 1.0)})
    assert await judging.expire() is True
    assert await judging.expire() is False
    assert leased(store) == {"a": 1.0}
    assert store.tallies()[Tally.UNJUDGED, ("search", "embedded", "expired")] == 1
    assert set(violations(*store.tallies_and_pending())) <= {
        Invariant.DRAWN_WERE_SEEN
    }  # no source here: nothing was seen


def test_nobody_reads_on_behind_a_judge_that_was_taken_out(store: SqliteStore) -> None:
    """Who followed it follows another one by now, or none: what waited is unjudged, once, and the books balance."""
    store.admit(an_admission(a_draw("a"), a_draw("b")))
    assert give_up(store, ["second"], now=AT) == 2
    assert (leased(store), store.pending()) == ({}, {})
    assert store.tallies()[Tally.ASSIGNED, ("second",)] == 0
    assert set(violations(*store.tallies_and_pending())) <= {Invariant.DRAWN_WERE_SEEN}
