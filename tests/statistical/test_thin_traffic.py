"""Detection from 100 scores on: false alarms while the reference grows, and delays, at the default risk and tolerance.

The evidence of all runs is computed at once with numpy; baselines come from `ReferenceScheme`, sizes and suspicion from
`detect`. `test_the_same_alarms` proves that this is the arithmetic of the detector. Seeds are fixed.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.score_draws import Floats, bernoulli, beta, claims, separate_claims

from ragwatch.statistics.drift.detect import SUSPICION, Score, Unit, begin, look_sizes, step
from ragwatch.statistics.drift.detectors import FRACTIONS, Betting
from ragwatch.statistics.drift.normal_range import PARTS
from ragwatch.statistics.drift.reference import ReferenceScheme

DAYS, DAY, COMPLETE = 30.0, 86400.0, 2000
BETS, MOST = np.array(FRACTIONS), 1e200
SIZES = np.array(look_sizes(100, COMPLETE))
Draw = Callable[[np.random.Generator, float, tuple[int, ...]], Floats]
BARS = ((0.7, 100, 60), (0.7, COMPLETE, 25), (0.85, COMPLETE, 1000))


def rare(rng: np.random.Generator, mean: float, size: tuple[int, ...]) -> Floats:
    """Scores of 1, and few of .5: most references of a high mean hold hardly any."""
    return np.where(rng.random(size) < 2 * (1 - mean), 0.5, 1.0)


def scheme_of(detectors: int) -> ReferenceScheme:
    """The scheme of one of so many detectors, at the default settings."""
    promise: Any = {"scores": COMPLETE, "unit": Unit.DAYS, "risk": 0.05 / detectors, "span": DAY}
    return ReferenceScheme(lambda mean: Betting(mean, DAYS * detectors), **promise)


def baseline(scheme: ReferenceScheme, scores: np.ndarray, per_day: int) -> float | None:
    """The baseline of the first scores of a stream."""
    part = np.arange(scores.size) * PARTS // per_day % PARTS
    counts, sums = np.bincount(part, minlength=PARTS), np.bincount(part, scores, PARTS)
    n, total, squares = float(scores.size), float(scores.sum()), float((scores**2).sum())
    parts = np.stack([counts, sums, counts], axis=1).ravel().tolist()
    return scheme.baseline((n, n, total, n, total, squares, 1.0, *parts))


def alarms(streams: np.ndarray, per_day: int, detectors: int) -> np.ndarray:
    """Index of the first alarm of each stream (a row), -1 for none. All learn from 100 scores, or those of a day."""
    scheme, threshold = scheme_of(detectors), DAYS * detectors
    first = max(100, per_day + 1)
    floors = np.array([baseline(scheme, row[:first], per_day) or 0.0 for row in streams])
    looks = np.full(len(streams), np.searchsorted(SIZES, first, side="right"))
    numbers = np.zeros((len(streams), BETS.size))
    found = np.full(len(streams), -1)
    for index in range(first, streams.shape[1]):
        gains = (floors - streams[:, index]) / (1.0 - floors)
        numbers = np.minimum((1.0 + BETS * gains[:, None]) * (numbers + 1.0 / per_day), MOST)
        evidence = numbers.mean(axis=1)
        found[(evidence >= threshold) & (found < 0)] = index
        reached = np.searchsorted(SIZES, index + 1, side="right")
        due = (reached - looks > (evidence >= SUSPICION * threshold)) & (looks < SIZES.size - 1) & (found < 0)
        for row in np.flatnonzero(due):
            floors[row] = baseline(scheme, streams[row, : index + 1], per_day) or 0.0
            looks[row], numbers[row] = reached, 0.0
        if (found >= 0).all():
            break
    return found


@pytest.mark.slow
@pytest.mark.parametrize("per_day", [20, 200])
def test_the_same_alarms(per_day: int) -> None:
    """Score by score, `detect.step` raises them at the same scores."""
    rng, scheme = np.random.default_rng(31), scheme_of(2)
    streams = np.concatenate([claims(rng, 0.9, (20, 330)), claims(rng, 0.75, (20, 600))], axis=1)
    expected = []
    for row in streams:
        watch = begin(scheme)
        for index, value in enumerate(row):
            watch = step(scheme, watch, index, DAY * index / per_day, Score(float(value)))
        expected.append(-1 if watch.alarm is None else watch.alarm.seq)
    assert alarms(streams, per_day, 2).tolist() == expected
    assert min(expected) > 0


@pytest.mark.slow
@pytest.mark.parametrize("per_day", [20, 60])
@pytest.mark.parametrize(
    ("draw", "mean"),
    [(claims, 0.9), (claims, 0.75), (claims, 0.98), (bernoulli, 0.9), (bernoulli, 0.75), (beta, 0.9), (rare, 0.98)],
)
def test_small_references_keep_the_promise(draw: Draw, mean: float, per_day: int) -> None:
    """A month after the first 100 scores, nothing changes: one false alarm in 30 days over 16 detectors, or fewer."""
    rng = np.random.default_rng([32, per_day, int(100 * mean)])
    for detectors, runs in ((16, 2000), (1, 500)):
        share = float((alarms(draw(rng, mean, (runs, 100 + 30 * per_day)), per_day, detectors) >= 0).mean())
        print(f"{draw.__name__} {mean}, {per_day} a day, {detectors} detectors: {share:.4f} of {1 / detectors:.4f}")
        assert share <= 1 / detectors


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draw", "per_day"), [(claims, 20), (separate_claims, 20), (separate_claims, 60), (beta, 20), (beta, 60)]
)
def test_bars(draw: Draw, per_day: int) -> None:
    """One detector with a false alarm in 30 days: from .90 to .70 and to .85, after 100 and after 2,000 scores."""
    for mean, before, most in BARS:
        wait, longest, missed = delay(draw, mean, before, per_day, 1)
        print(f"{draw.__name__}, {per_day} a day: .90 -> {mean} after {before}: {wait:.0f} (p90 {longest:.0f})")
        assert wait <= most
        assert missed <= 0.02


@pytest.mark.slow
@pytest.mark.parametrize("draw", [claims, separate_claims, bernoulli, beta])
@pytest.mark.parametrize(("per_day", "detectors"), [(20, 1), (20, 16), (99, 16)])
def test_delays(draw: Draw, per_day: int, detectors: int) -> None:
    """The table of docs/statistics.md."""
    cells = [
        (mean, before, *delay(draw, mean, before, per_day, detectors))
        for before in (100, 400, COMPLETE)
        for mean in (0.7, 0.8, 0.85)
        if before == COMPLETE or mean == 0.7
    ]
    print(f"{draw.__name__}, {per_day} a day, {detectors}:")
    for mean, before, wait, longest, missed in cells:
        print(f"{mean} after {before}: {wait:.0f} ({longest:.0f}), {missed:.0%} missed")
    assert all(missed < 0.5 for *_, missed in cells)


def delay(draw: Draw, mean: float, before: int, per_day: int, detectors: int) -> tuple[float, float, float]:
    """Scores from a fall of the mean from .90 to the alarm: mean, 90 % quantile, and the share of runs without one."""
    rng, runs = np.random.default_rng([33, before, int(100 * mean)]), 200
    streams = np.concatenate([draw(rng, 0.9, (runs, before)), draw(rng, mean, (runs, 5000))], axis=1)
    found = alarms(streams, per_day, detectors)
    waits = found[found >= before] - before + 1
    return float(waits.mean()), float(np.quantile(waits, 0.9)), float((found < 0).mean())
