"""References and controls: the bound holds, weights are honoured, and too little is not enough."""

from __future__ import annotations

import math
import random
from statistics import fmean, variance

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwatch.core.drift.detect import Direction, Score
from ragwatch.core.drift.detectors.betting import Betting, ScorePair, TwoSample
from ragwatch.core.drift.detectors.control import ControlScheme, ScoreQueue, pair, queue_from_dict, queue_to_dict
from ragwatch.core.drift.detectors.reference import ReferenceScheme, lower_bound
from ragwatch.core.estimate import Addends


def build(baseline: float) -> Betting:
    """The detector against a baseline."""
    return Betting(baseline, 10_000)


@given(st.integers(0, 2**31), st.integers(200, 2000))
def test_the_bound_is_maurers_and_pontils(seed: int, size: int) -> None:
    """With equal weights, whatever they are, the bound is the published formula."""
    rng = random.Random(seed)
    some = [rng.betavariate(9, 1) for _ in range(size)]
    log = math.log(2 / 0.05)
    expected = fmean(some) - math.sqrt(2 * variance(some) * log / size) - 7 * log / (3 * (size - 1))
    assert lower_bound(Addends.of([(value, 0.25) for value in some]), 4.0) == pytest.approx(expected)


@pytest.mark.uncounted
def test_the_bound_holds_with_weights() -> None:
    """Drawn at 1 and at .1 by route, the traffic's mean is above the bound in at least 95 % of runs."""
    rng, held = random.Random(1), 0
    for _ in range(100):
        some = []
        for _ in range(1500):
            heavy = rng.random() < 1 / 11
            some.append((float(rng.random() < (0.8 if heavy else 0.98)), 0.1 if heavy else 1.0))
        bound = lower_bound(Addends.of(some), 10.0)
        assert bound is not None
        held += bound <= 0.89
    assert held >= 95


@pytest.mark.parametrize("some", [[], [1.0], [1.0, 0.5], [0.0] * 5000])
def test_too_little_bounds_nothing(some: list[float]) -> None:
    """Few scores, or none above 0, allow no bound above 0."""
    assert lower_bound(Addends.of([(value, 1.0) for value in some]), 1.0) is None


@pytest.mark.parametrize("direction", list(Direction))
def test_learns(direction: Direction) -> None:
    """After the wanted scores there is a baseline worse than their mean by the tolerance and a little, on that side."""
    scheme = ReferenceScheme(build, direction, scores=2000)
    reference: tuple[float, ...] = ()
    rng = random.Random(4)
    for count in range(2000):
        assert scheme.detector(reference) is None, count
        reference = scheme.learn(reference, Score(float(rng.random() < 0.7)))
    baseline = scheme.baseline(reference)
    assert baseline is not None
    assert 0.02 < (0.7 - baseline if direction is Direction.FALL else baseline - 0.7) < 0.1
    assert scheme.detector(reference) is not None
    assert scheme.size(Score(0.5)) == 1.0


def test_a_hopeless_quantity_is_learnt_on() -> None:
    """Where scores are so low that nothing can fall below the bound there is no detector, however many there are."""
    scheme = ReferenceScheme(build, scores=10)
    reference: tuple[float, ...] = ()
    for _ in range(3000):
        reference = scheme.learn(reference, Score(0.02))
    assert scheme.detector(reference) is None


def test_a_heavier_weight_counts_as_the_heaviest() -> None:
    """What was drawn at a lower probability than configured does not outweigh its part of the bound."""
    scheme = ReferenceScheme(build, max_weight=10.0)
    assert scheme.learn((), Score(0.5, 1000.0)) == pytest.approx(scheme.learn((), Score(0.5, 10.0)))


def test_probabilities_raised_after_learning() -> None:
    """A reference learnt at a heaviest weight of 10 is bounded for that weight, whatever is configured since."""
    then, now = ReferenceScheme(build, max_weight=10.0), ReferenceScheme(build, max_weight=1.0)
    reference: tuple[float, ...] = ()
    for index in range(3000):
        reference = then.learn(reference, Score(0.9, 10.0 if index % 11 else 1.0))
    assert now.baseline(reference) == then.baseline(reference)


def test_control() -> None:
    """Against a control there is nothing to learn and a detector at once."""
    scheme = ControlScheme(TwoSample(100))
    one = ScorePair(Score(0.5), Score(0.5))
    assert scheme.learn((), one) == ()
    assert scheme.detector(()) is scheme.test
    assert scheme.size(one) == 1.0


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=60))
def test_pairs_in_order_of_arrival(stream: list[tuple[float, bool]]) -> None:
    """The i-th score of either side meets the i-th of the other, whichever runs ahead, and over a restart."""
    queue, result = ScoreQueue(), []
    for value, control in stream:
        queue, made = pair(queue_from_dict(queue_to_dict(queue)), Score(value), control=control)
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
