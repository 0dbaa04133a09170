"""Power: more sampling is faster, narrower and dearer; what cannot be noticed is said to be so."""

from __future__ import annotations

import math
import random
from statistics import fmean

import pytest

from ragwatch.offline.power import PowerQuestion, delay, half_width, plan
from ragwatch.statistics.drift.detect import Score
from ragwatch.statistics.drift.detectors.betting import Betting

SCORES = [1.0] * 7 + [0.8, 0.75, 0.5]


def test_what_tolerance_swallows_is_not_noticed() -> None:
    """A drop within the tolerance has no delay, and too little traffic has no width."""
    answer = plan(PowerQuestion(20, 0.5, drop=0.005), SCORES, random.Random(1).random, runs=5)
    assert (answer.delay_scores, answer.delay_hours, answer.half_width_hour) == (None, None, None)
    assert half_width(SCORES, 0.5) is None
    assert half_width([0.0, 1.0] * 50, 400.0) == pytest.approx(1.96 * 0.5 / 20, rel=1e-3)  # z s / sqrt(n)
    assert half_width([0.9], 100.0) is None  # one score does not tell how much they scatter


def test_the_delay_begins_with_the_drop() -> None:
    """A baseline that scores do not reach alarms all the time, and starts over; a drop below nothing is one to 0.

    A run that is given up is no delay: a mean over only those that ended would be too small.
    """
    early = delay(Betting(0.9, 10), [0.8], 0.1, random.Random(3).random, runs=5)
    deep = delay(Betting(0.9, 100), [0.9, 0.95], 2.0, random.Random(3).random, runs=3)
    assert early is not None
    assert deep is not None
    assert (1 <= early < 20, deep < 5) == (True, True)
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


def test_a_score_a_month_is_not_noticed_at_the_first() -> None:
    """One reading adds the run length of a day at most, however long the silence before it: so it is in the daemon."""
    scores = [1.0] * 9 + [0.5]
    answer = plan(PowerQuestion(1.0, 0.03, drop=0.9), scores, random.Random(1).random, runs=20)
    daily = plan(PowerQuestion(1.0, 1.0, drop=0.9), scores, random.Random(1).random, runs=20)
    assert answer.delay_scores == daily.delay_scores
    assert (daily.scores_per_day, daily.delay_hours) == (1.0, 24.0 * daily.delay_scores)
    assert answer.delay_scores is not None
    assert answer.delay_scores > 1.5
