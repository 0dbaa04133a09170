"""Drift detectors: the betting one is a fair game at worst; CUSUM and Page-Hinkley equal their definitions."""

import math
import random
from collections.abc import Iterable
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwatch.statistics.drift.detect import Detector, Direction, Numbers, Score
from ragwatch.statistics.drift.detectors import KINDS, MAX_EVIDENCE, Betting, Cusum, PageHinkley, ScorePair, TwoSample

scores = st.lists(st.floats(0, 1), max_size=60)


def run(watching: Detector[Score], stream: Iterable[float], weight: float = 1.0) -> Numbers:
    """What a detector remembers after a stream."""
    numbers = watching.start()
    for value in stream:
        numbers = watching.step(numbers, Score(value, weight), 1.0)
    return numbers


def until(watching: Detector[Any], stream: Iterable[Any]) -> int | None:
    """Readings until the alarm."""
    numbers = watching.start()
    for count, reading in enumerate(stream, start=1):
        numbers = watching.step(numbers, reading, 1.0)
        if watching.evidence(numbers) >= watching.threshold:
            return count
    return None


def test_equal_to_the_definition() -> None:
    """Evidence is the mean over bets of sum over starts of the product of gains since."""
    stream = [0.9, 0.2, 1.0, 0.75, 0.0, 1.0]
    watching = Betting(baseline=0.8, threshold=100, fractions=(0.1, 0.5))
    expected = 0.0
    for fraction in watching.fractions:
        gains = [1 + fraction / 0.2 * (0.8 - value) for value in stream]
        expected += sum(math.prod(gains[start:]) for start in range(len(gains))) / 2
    assert watching.evidence(run(watching, stream)) == pytest.approx(expected)


@given(st.floats(0, 1), st.floats(0.01, 0.99), st.lists(st.floats(0, 1e4), min_size=6, max_size=6))
def test_on_average_no_score_gains_at_the_baseline(low: float, share: float, before: list[float]) -> None:
    """For two-point scores whose mean is the baseline the expected evidence is what was there plus one: ARL >= 1/a."""
    high = 1.0
    baseline = share * low + (1 - share) * high
    watching = Betting(baseline=baseline, threshold=100)
    numbers = tuple(before)
    after = [watching.evidence(watching.step(numbers, Score(value))) for value in (low, high)]
    assert share * after[0] + (1 - share) * after[1] <= (watching.evidence(numbers) + 1) * (1 + 1e-9)


@given(scores)
def test_a_rise_is_a_fall_of_the_rest(stream: list[float]) -> None:
    """Watching x rise above m is watching 1 - x fall below 1 - m."""
    fall = Betting(baseline=0.875, threshold=100)
    rise = Betting(baseline=0.125, threshold=100, direction=Direction.RISE)
    assert run(rise, [1.0 - value for value in stream]) == pytest.approx(run(fall, stream))


@given(scores)
def test_only_relative_weights_count(stream: list[float]) -> None:
    """Equal weights are no weights, and a weight above the heaviest counts as the heaviest."""
    plain, heavy = Betting(0.9, 100), Betting(0.9, 100, max_weight=10.0)
    assert run(heavy, stream, weight=10.0) == run(heavy, stream, weight=1e6) == run(plain, stream)


def test_weights_decide_whose_fall_it_is() -> None:
    """Of two routes of equal traffic one falls, drawn ten times as often as the other, which rises: no alarm."""
    rng, stream = random.Random(5), []
    for _ in range(8000):
        often = rng.random() < 10 / 11
        stream.append(Score(float(rng.random() < (0.80 if often else 0.96)), 1.0 if often else 10.0))
    assert until(Betting(0.86, 10_000, max_weight=10.0), stream) is None  # the traffic's mean is 0.88
    assert until(Betting(0.86, 10_000), (Score(each.value) for each in stream)) is not None  # that of the drawn 0.815


@pytest.mark.uncounted
@pytest.mark.parametrize("baseline", [0.0, 0.5, 0.999, 1.0])
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_endless_streams_stay_finite(baseline: float, value: float) -> None:
    """Neither a baseline at an end nor ten thousand equal scores overflow or divide by zero."""
    watching = Betting(baseline, 10_000)
    evidence = watching.evidence(run(watching, [value] * 10_000))
    assert 0.0 <= evidence <= MAX_EVIDENCE
    assert (evidence >= 10_000) == (value == 0.0)


def test_two_samples() -> None:
    """A fall of both sides alike is no alarm; a fall beside a control that stays is, in the direction that is worse."""
    rng = random.Random(3)

    def pairs(mean: float, control: float) -> list[ScorePair]:
        return [ScorePair(Score(float(rng.random() < mean)), Score(float(rng.random() < control))) for _ in range(3000)]

    fall, rise = TwoSample(10_000), TwoSample(10_000, Direction.RISE)
    for watching, means, alarms in (
        (fall, (0.7, 0.7), False),
        (fall, (0.7, 0.9), True),
        (rise, (0.7, 0.9), False),
        (rise, (0.3, 0.1), True),
    ):
        assert (until(watching, pairs(*means)) is not None) is alarms, (watching, means)
    assert fall.design != rise.design
    light = TwoSample(100, max_weight=10.0, fractions=(0.5,))  # evidence moves by the product of both weights
    assert light.step((0.0,), ScorePair(Score(0.0, 1.0), Score(1.0, 5.0))) == pytest.approx((1 + 0.5 * 0.05,))


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_kinds(kind: str) -> None:
    """Each kind is built alike, notices zeros after ones, and tells designs of different directions apart."""
    threshold = {"betting": 1000.0, "cusum": 1.0, "page_hinkley": 5.0}[kind]
    fall, rise = (KINDS[kind](0.9, threshold, direction, 1.0) for direction in Direction)
    assert fall.threshold == threshold
    assert fall.design != rise.design
    assert until(fall, [Score(0.9)] * 50 + [Score(0.0)] * 50) is not None
    assert until(rise, [Score(0.9)] * 50 + [Score(0.0)] * 50) is None


def stream(seed: int, size: int = 600) -> list[float]:
    """Scores that fall half-way."""
    rng = random.Random(seed)
    return [rng.betavariate(9, 1) if index < size // 2 else rng.betavariate(7, 3) for index in range(size)]


@pytest.mark.parametrize("direction", list(Direction))
def test_cusum_is_the_rise_above_the_least_partial_sum(direction: Direction) -> None:
    """Page's form: S_n - min S_k over partial sums of what each score falls short of, beyond the slack."""
    watching = Cusum(baseline=0.9, direction=direction)
    sign = 1.0 if direction is Direction.FALL else -1.0
    values = stream(1)
    sums = list(accumulate([0.0, *(sign * (0.9 - value) - 0.05 for value in values)]))
    assert watching.evidence(run(watching, values)) == pytest.approx(sums[-1] - min(sums))


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(("direction", "mode"), [(Direction.FALL, "down"), (Direction.RISE, "up")])
def test_page_hinkley_is_rivers(seed: int, direction: Direction, mode: str) -> None:
    """The first alarm comes at the same score as river's, whichever threshold."""
    drift = pytest.importorskip("river.drift", reason="needs river")
    values = stream(seed) if direction is Direction.FALL else [1.0 - value for value in stream(seed)]
    for threshold in (0.5, 2.0, 5.0, 20.0):
        ours, theirs = PageHinkley(threshold, direction), drift.PageHinkley(threshold=threshold, mode=mode)
        numbers, expected, result = ours.start(), None, None
        for index, value in enumerate(values):
            numbers = ours.step(numbers, Score(value))
            theirs.update(value)
            if expected is None and theirs.drift_detected:
                expected = index
            if result is None and ours.evidence(numbers) > ours.threshold:
                result = index
        assert result == expected


@pytest.mark.parametrize("watching", [Cusum(0.9, max_weight=4.0), PageHinkley(5.0, max_weight=4.0)])
def test_a_light_score_moves_little(watching: Cusum | PageHinkley) -> None:
    """A score of a quarter of the heaviest weight moves the sum by a quarter."""
    numbers = run(watching, [0.9] * 40, weight=4.0)
    before = watching.evidence(numbers)
    heavy = watching.evidence(watching.step(numbers, Score(0.0, 4.0))) - before
    light = watching.evidence(watching.step(numbers, Score(0.0, 1.0))) - before
    assert light == pytest.approx(heavy / 4, rel=0.05)
