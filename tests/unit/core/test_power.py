"""Power: more sampling is faster, narrower and dearer; what cannot be noticed is said to be so."""

from __future__ import annotations

import math
import random
from statistics import fmean

import pytest

from ragwatch.core.drift.detect import Score
from ragwatch.core.drift.detectors.betting import Betting
from ragwatch.core.power import PowerQuestion, delay, half_width, plan

SCORES = [1.0] * 7 + [0.8, 0.75, 0.5]


def test_plan() -> None:
    """Twice the rate costs twice, takes about half the hours, and narrows by the root of two."""
    one, two = (
        plan(PowerQuestion(10_000, probability, price=0.002), SCORES, random.Random(1).random, runs=60)
        for probability in (0.1, 0.2)
    )
    assert (one.scores_per_day, one.usd_per_day) == pytest.approx((1000.0, 2.0))
    assert two.usd_per_day == pytest.approx(4.0)
    assert one.delay_hours is not None
    assert two.delay_hours is not None
    assert 0.4 < two.delay_hours / one.delay_hours < 0.65
    assert one.delay_scores == pytest.approx(one.delay_hours / 24 * 1000)
    assert one.half_width_day is not None
    assert two.half_width_day == pytest.approx(one.half_width_day / math.sqrt(2))


def test_what_tolerance_swallows_is_not_noticed() -> None:
    """A drop within the tolerance has no delay, and too little traffic has no width."""
    answer = plan(PowerQuestion(20, 0.5, drop=0.005), SCORES, random.Random(1).random, runs=5)
    assert (answer.delay_scores, answer.delay_hours, answer.half_width_hour) == (None, None, None)
    assert half_width(SCORES, 0.5) is None
    assert half_width([0.9], 100.0) is None  # one score does not tell how much they scatter


def test_a_run_given_up_is_no_delay() -> None:
    """A mean over only those runs that ended would be too small: there is none."""
    assert delay(Betting(0.9, 10_000), [0.905], 0.01, random.Random(1).random, runs=3, max_scores=10) is None


@pytest.mark.uncounted
def test_growth_foretells_the_delay() -> None:
    """ln(threshold) / growth is about the delay, for a drop that breaks a share of answers altogether."""
    watching = Betting(0.9, 1e6)
    scores = [0.92] * 100
    broken = [0.92] * 80 + [0.0] * 20
    steps = [watching.step(watching.start(), Score(score)) for score in broken]
    growth = max(fmean(math.log(evidence) for evidence in bet) for bet in zip(*steps, strict=True))  # Kelly 1956
    waited = delay(watching, scores, 0.92 * 0.2, random.Random(2).random, runs=100)
    assert waited is not None
    assert waited == pytest.approx(math.log(1e6) / growth, rel=0.25)  # to first order (Lorden 1971)


def test_a_false_alarm_before_the_drop_starts_over() -> None:
    """A baseline that the scores do not reach alarms all the time, and the delay is still one after the drop."""
    waited = delay(Betting(0.9, 10), [0.8], 0.1, random.Random(3).random, runs=5)
    assert waited is not None
    assert 1 <= waited < 20


def test_a_drop_below_nothing() -> None:
    """A drop of more than the mean is one to 0."""
    answer = delay(Betting(0.9, 100), [0.9, 0.95], 2.0, random.Random(3).random, runs=3)
    assert answer is not None
    assert answer < 5


def test_a_score_a_month_is_not_noticed_at_the_first() -> None:
    """One reading adds the run length of a day at most, however long the silence before it: so it is in the daemon."""
    scores = [1.0] * 9 + [0.5]
    answer = plan(PowerQuestion(1.0, 0.03, drop=0.9), scores, random.Random(1).random, runs=20)
    daily = plan(PowerQuestion(1.0, 1.0, drop=0.9), scores, random.Random(1).random, runs=20)
    assert answer.delay_scores == daily.delay_scores
    assert answer.delay_scores is not None
    assert answer.delay_scores > 1.5
