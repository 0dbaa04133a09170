"""CUSUM and Page-Hinkley: equal to their definition, and to river's."""

from __future__ import annotations

import random
from itertools import accumulate

import pytest

from ragwatch.statistics.drift.detect import Direction, Score
from ragwatch.statistics.drift.detectors import Cusum, PageHinkley


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
    numbers = watching.start()
    for value in values:
        numbers = watching.step(numbers, Score(value))
    sums = list(accumulate([0.0, *(sign * (0.9 - value) - 0.05 for value in values)]))
    assert watching.evidence(numbers) == pytest.approx(sums[-1] - min(sums))


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
    numbers = watching.start()
    for _ in range(40):
        numbers = watching.step(numbers, Score(0.9, 4.0))
    before = watching.evidence(numbers)
    heavy = watching.evidence(watching.step(numbers, Score(0.0, 4.0))) - before
    light = watching.evidence(watching.step(numbers, Score(0.0, 1.0))) - before
    assert light == pytest.approx(heavy / 4, rel=0.05)
