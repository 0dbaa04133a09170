"""References and controls: the bound holds, weights are honoured, and too little is not enough."""

import math
import random
from collections.abc import Iterable
from functools import partial
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwatch.statistics.drift.detect import DetectorState, Direction, Score, Unit, begin, step
from ragwatch.statistics.drift.detectors import Betting, ScorePair, ScoreQueue, pair
from ragwatch.statistics.drift.normal_range import lowest_unchanged
from ragwatch.statistics.drift.reference import ReferenceScheme

build = partial(Betting, threshold=10_000)
DAY, PER_DAY = 86400.0, 20
SCHEME = ReferenceScheme(lambda mean: Betting(mean, 30.0), unit=Unit.DAYS, span=DAY)


def learnt(scheme: ReferenceScheme, scores: Iterable[Score], every: float = 60.0) -> tuple[float, ...]:
    """The reference after these scores, one a minute."""
    reference: tuple[float, ...] = ()
    for index, score in enumerate(scores):
        reference = scheme.learn(reference, score, index * every)
    return reference


@pytest.mark.uncounted
def test_the_baseline_holds_with_weights() -> None:
    """Drawn at 1 and at .1 by route, without tolerance: the traffic's mean is above the baseline in 95 % of runs.

    The worst design for the interval: the traffic that is rarely drawn is worse (docs/statistics.md).
    """
    rng, held = random.Random(1), 0
    scheme = ReferenceScheme(build, scores=1500, tolerance=0.0, max_weight=10.0, risk=0.01)
    for _ in range(60):
        some = []
        for _ in range(1500):
            heavy = rng.random() < 1 / 11
            some.append(Score(float(rng.random() < (0.8 if heavy else 0.98)), 10.0 if heavy else 1.0))
        baseline = scheme.baseline(learnt(scheme, some))
        assert baseline is not None
        held += baseline <= 0.89
    assert held >= 57


@pytest.mark.parametrize("some", [[], [1.0], [1.0, 0.5], [0.0] * 5000])
def test_too_little_is_no_baseline(some: list[float]) -> None:
    """Few scores, or none above 0, allow no baseline."""
    scheme = ReferenceScheme(build)
    assert scheme.baseline(learnt(scheme, map(Score, some))) is None


@pytest.mark.parametrize(
    ("mean", "tolerance", "odds", "lowest"),
    [(0.5, 0.1, True, 0.4), (0.99, 0.02, True, 0.9878), (0.99, 0.02, False, 0.97), (0.999, 0.05, True, 0.9984)],
)
def test_the_tolerance_is_what_was_asked_and_less_near_1(
    mean: float, tolerance: float, lowest: float, *, odds: bool
) -> None:
    """Of many scores the interval is narrow, and the baseline is what the tolerance allows, on either scale."""
    scheme = ReferenceScheme(build, scores=1, tolerance=tolerance, odds=odds)
    one = scheme.learn((), Score(mean))
    many = (1e7, *(1e7 * value for value in one[1:6]), 1.0)
    assert scheme.baseline(many) == pytest.approx(lowest, abs=1e-3)


@given(st.floats(0, 1), st.floats(0, 0.999), st.floats(0, 1))
def test_laws_of_the_tolerance(mean: float, tolerance: float, other: float) -> None:
    """Never above the mean, never more below than asked, and in the order of the means."""
    lowest = lowest_unchanged(mean, tolerance)
    assert mean - tolerance - 1e-12 <= lowest <= mean + 1e-12
    low, high = sorted((mean, other))
    assert lowest_unchanged(low, tolerance) <= lowest_unchanged(high, tolerance) + 1e-12
    assert lowest_unchanged(mean, 0.0) == pytest.approx(mean)


@pytest.mark.uncounted
@pytest.mark.parametrize(("per_day", "swing"), [(50_000, 0.04), (500, 0.0)])
def test_the_worst_hours_of_a_busy_day_are_normal(per_day: int, swing: float) -> None:
    """With many scores a day whose mean swings, the baseline is near the worst hours; with few, only the tolerance."""
    rng = random.Random(3)
    scores = (
        Score(float(rng.random() < 0.9 + 0.04 * math.sin(2 * math.pi * index / per_day))) for index in range(per_day)
    )
    scheme = ReferenceScheme(build, scores=500)
    baseline = scheme.baseline(learnt(scheme, scores, 86400.0 / per_day))
    assert baseline is not None
    if swing:
        assert 0.85 <= baseline < 0.87
    else:
        assert 0.84 < baseline <= 0.9


def test_a_reference_of_an_earlier_version_is_continued() -> None:
    """It held no parts of the day: its scores still count, and the parts fill from now on."""
    scheme = ReferenceScheme(build, scores=100)
    whole = learnt(scheme, [Score(0.9), Score(0.8)] * 50)
    assert scheme.baseline(whole[:7]) is not None
    continued = scheme.learn(whole[:7], Score(0.5))
    assert (continued[0], len(continued)) == (101.0, len(whole))


@pytest.mark.parametrize("direction", list(Direction))
def test_learns(direction: Direction) -> None:
    """After 100 scores there is a baseline that is worse than their mean, on that side; after 2,000 it is nearer."""
    scheme = ReferenceScheme(build, direction, scores=2000)
    reference: tuple[float, ...] = ()
    rng = random.Random(4)
    widths = []
    for count in range(1, 2001):
        reference = scheme.learn(reference, Score(float(rng.random() < 0.7)))
        baseline = scheme.baseline(reference)
        assert (baseline is not None) == (count >= 100)
        if baseline is not None:
            widths.append(0.7 - baseline if direction is Direction.FALL else baseline - 0.7)
    assert 0.0 < widths[-1] < 0.1
    assert widths[-1] < widths[0]
    assert scheme.detector(reference) is not None
    assert scheme.size(Score(0.5)) == 1.0


def test_a_hopeless_quantity_is_learnt_on() -> None:
    """Where scores are so low that nothing can fall below the bound there is no detector, however many there are."""
    scheme = ReferenceScheme(build, scores=10)
    assert scheme.detector(learnt(scheme, [Score(0.02)] * 3000)) is None


def test_probabilities_raised_after_learning() -> None:
    """A reference learnt at a heaviest weight of 10 is bounded for that weight, whatever is configured since.

    A heavier one, of what was drawn at a lower probability than configured, counts as the heaviest.
    """
    then, now = ReferenceScheme(build, max_weight=10.0), ReferenceScheme(build, max_weight=1.0)
    reference = learnt(then, (Score(0.9, 10.0 if index % 11 else 1.0) for index in range(3000)))
    assert now.baseline(reference) == then.baseline(reference)
    assert then.learn((), Score(0.5, 1000.0)) == pytest.approx(then.learn((), Score(0.5, 10.0)))


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=60))
def test_pairs_in_order_of_arrival(stream: list[tuple[float, bool]]) -> None:
    """The i-th score of either side meets the i-th of the other, whichever runs ahead."""
    queue, result = ScoreQueue(), []
    for value, control in stream:
        queue, made = pair(queue, Score(value), control=control)
        if made is not None:
            result.append((made.score.value, made.control.value))
    ours = [value for value, control in stream if not control]
    theirs = [value for value, control in stream if control]
    assert result == list(zip(ours, theirs, strict=False))


def test_a_side_far_ahead_lets_its_oldest_go() -> None:
    """The queue is bounded."""
    queue = ScoreQueue()
    for index in range(1500):
        queue, _ = pair(queue, Score(index / 1500), control=False)
    assert len(queue.scores) == 1000
    _, made = pair(queue, Score(1.0), control=True)
    assert made == ScorePair(Score(500 / 1500), Score(1.0))


def claims(rng: random.Random, mean: float) -> Score:
    """Supported of 2 to 8 claims, alike within an answer."""
    count, share = rng.randint(2, 8), rng.betavariate(1.5 * mean, 1.5 * (1 - mean))
    return Score(sum(rng.random() < share for _ in range(count)) / count)


def watched(seed: int, before: int, after: int, mean: float) -> DetectorState[Score]:
    """The watch of a route with 20 scores a day, whose mean is .90 and then another one, until an alarm."""
    rng, watch = random.Random(seed), begin(SCHEME)
    for index in range(before + after):
        score = claims(rng, 0.9 if index < before else mean)
        watch = step(SCHEME, watch, index, DAY * index / PER_DAY, score)
        if watch.alarm is not None:
            break
    return watch


@pytest.mark.uncounted
def test_a_month_without_a_change() -> None:
    """Twenty routes for a month after their first 100 scores: one alarm in 30 days each is allowed, few have one."""
    assert sum(watched(seed, 700, 0, 0.9).alarm is not None for seed in range(20)) <= 8


@pytest.mark.uncounted
def test_a_breakage_after_a_hundred_scores() -> None:
    """From .90 to .70: noticed within 60 answers on average."""
    assert fmean(watched(100 + seed, 100, 400, 0.7).alarm.seq - 99 for seed in range(40)) <= 60
