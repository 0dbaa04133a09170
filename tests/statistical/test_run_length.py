"""Detectors keep their promise: no more false alarms than allowed, and the drop is noticed as soon as was measured.

The figures stand in docs/statistics.md; bench/detectors.py prints them beside river's detectors.
"""

import math
import random
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from support.score_draws import Floats, Mean, bernoulli, beta, claims, separate_claims

from ragwatch.statistics.drift.bands import HedgedBand
from ragwatch.statistics.drift.detect import Score, begin, step
from ragwatch.statistics.drift.detectors import Betting, ScorePair, TwoSample
from ragwatch.statistics.drift.reference import ReferenceScheme
from ragwatch.statistics.drift.shift import CountScheme

LENGTH = 10_000
Draw = Callable[[np.random.Generator, Mean, int], Floats]
MONTH = 30  # days
SEEDS = 20
BAND_RUNS = 300
BandDraw = Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray]]


def alarms(watching: Any, readings: Iterable[Any], size: float = 1.0) -> int:
    """Alarms among the readings; each begins anew."""
    count, numbers = 0, watching.start()
    for reading in readings:
        numbers = watching.step(numbers, reading, size)
        if watching.evidence(numbers) >= watching.threshold:
            numbers, count = watching.start(), count + 1
    return count


@pytest.mark.slow
@pytest.mark.parametrize("draw", [beta, claims, bernoulli])
def test_run_length(draw: Draw) -> None:
    """A million scores at the baseline, of any kind and without calibration: at least 10,000 to a false alarm."""
    found = alarms(Betting(0.9, LENGTH), map(Score, draw(np.random.default_rng(1), 0.9, 1_000_000).tolist()))
    print(f"{draw.__name__}: {found} alarms in 1e6")
    assert found <= 1_000_000 / LENGTH


@pytest.mark.slow
def test_run_length_with_weights() -> None:
    """Two routes drawn at 1 and at .1, the traffic's mean at the baseline: at least 10,000 to a false alarm."""
    rng = np.random.default_rng(2)
    heavy = rng.random(500_000) < 1 / 11
    scores = (rng.random(500_000) < np.where(heavy, 0.84, 0.96)).astype(float)
    readings = map(Score, scores.tolist(), np.where(heavy, 10.0, 1.0).tolist())
    found = alarms(Betting(0.9, LENGTH, max_weight=10.0), readings)
    assert found <= 500_000 / LENGTH


@pytest.mark.slow
@pytest.mark.parametrize(("draw", "most"), [(beta, 20), (claims, 75), (bernoulli, 125)])
def test_delay(draw: Draw, most: float) -> None:
    """From .90 to .80 the alarm comes after so many scores on average; runs with an earlier one are left out."""
    rng, waits = np.random.default_rng(3), []
    watching = Betting(0.9, LENGTH)
    for _ in range(1500):
        before, after = draw(rng, 0.9, 1000).tolist(), draw(rng, 0.8, 3000).tolist()
        numbers, wait = watching.start(), 0
        for index, value in enumerate([*before, *after]):
            numbers = watching.step(numbers, Score(value))
            if watching.evidence(numbers) >= LENGTH:
                wait = index - 999
                break
        if wait > 0:
            waits.append(wait)
    print(f"{draw.__name__}: mean {np.mean(waits):.1f}, p95 {np.quantile(waits, 0.95):.0f} of {len(waits)} runs")
    assert np.mean(waits) <= most


def swinging(draw: Draw, size: int, per_day: int, seed: int) -> list[float]:
    """Scores whose mean swings by .02 about .90 with the day; each seed begins at another hour."""
    rng = np.random.default_rng([4, per_day, seed])
    means = 0.9 + 0.02 * np.sin(2 * math.pi * (np.arange(size) / per_day + seed / SEEDS))
    return draw(rng, means, size).tolist()


def learnt(scores: Iterable[float], per_day: int) -> float:
    """The baseline after these scores, with the tolerance that is the default."""
    scheme, reference = ReferenceScheme(lambda baseline: Betting(baseline, LENGTH), tolerance=0.02), ()
    for index, value in enumerate(scores):
        reference = scheme.learn(reference, Score(value), 86400.0 * index / per_day)
    found = scheme.baseline(reference)
    assert found is not None
    return found


@pytest.mark.slow
@pytest.mark.parametrize("per_day", [1440, 14_400])
@pytest.mark.parametrize("draw", [beta, claims, bernoulli])
def test_the_swing_of_a_day(draw: Draw, per_day: int) -> None:
    """A mean that swings by .02 over the day, tolerance .02, a baseline learnt for a day, at any hour of beginning.

    The promise holds on average over the hours: one alarm in as many scores as 1 / a. Near 1 the tolerance is less than
    the swing, which so comes down to the baseline every night; no beginning has more than ten alarms in 100,000 scores.
    """
    reference, few, many = max(2000, per_day), [], []
    for seed in range(SEEDS):
        scores = swinging(draw, reference + 100_000, per_day, seed)
        baseline = learnt(scores[:reference], per_day)
        later = [Score(value) for value in scores[reference:]]
        many.append(alarms(Betting(baseline, LENGTH), later))
        few.append(alarms(Betting(baseline, MONTH * per_day), later))
    print(f"{draw.__name__}, {per_day} a day, alarms in 1e5 at 1/a = {LENGTH}: {many}; at {MONTH * per_day}: {few}")
    assert np.mean(few) <= 100_000 / (MONTH * per_day)
    assert max(few) <= 5
    assert np.mean(many) <= 100_000 / LENGTH / 2
    assert max(many) <= 10


@pytest.mark.slow
@pytest.mark.parametrize("draw", [beta, claims, bernoulli])
def test_a_learnt_baseline_keeps_the_promise(draw: Draw) -> None:
    """Forty deployments that learn from 2,000 scores, without tolerance, and then watch 10,000: most are silent.

    The promise allows one alarm in each. The risk is that of one of sixteen detectors, which four routes have by
    default. A baseline that were the plain mean of the reference would break the promise in half of them.
    """
    rng, silent = np.random.default_rng(5), 0
    scheme = ReferenceScheme(lambda baseline: Betting(baseline, LENGTH), tolerance=0.0, risk=0.05 / 16)
    for _ in range(40):
        watch = begin(scheme)
        for seq, value in enumerate(draw(rng, 0.9, 12_000).tolist()):
            watch = step(scheme, watch, seq, float(seq), Score(value))
        silent += watch.alarm is None
    print(f"{draw.__name__}: {silent} of 40 silent")
    assert silent >= 34


@pytest.mark.slow
def test_two_samples_keep_the_promise() -> None:
    """300,000 pairs of equal means and different spread: at least 10,000 to a false alarm."""
    rng = np.random.default_rng(6)
    sides = (map(Score, draw(rng, 0.9, 300_000).tolist()) for draw in (claims, bernoulli))
    count = alarms(TwoSample(LENGTH), map(ScorePair, *sides))
    print(f"two samples: {count} alarms in 3e5")
    assert count <= 300_000 / LENGTH


@pytest.mark.slow
def test_shift_keeps_the_promise() -> None:
    """Forty deployments that learn seven buckets from 5,000 requests and watch 50,000, no tolerance: 200 at 1/a."""
    rng, shares, total = random.Random(7), [0.02, 0.1, 0.2, 0.3, 0.2, 0.1, 0.08], 0
    generator = np.random.default_rng(rng.randrange(2**32))
    scheme = CountScheme(LENGTH, buckets=7, tolerance=0.0)
    for _ in range(40):
        watching = scheme.detector(scheme.learn((), generator.multinomial(5000, shares).tolist()))
        total += alarms(watching, (generator.multinomial(50, shares).tolist() for _ in range(1000)), 50)
    print(f"shift: {total} alarms in 2e6 requests")
    assert total <= 200


def claim_ratios(rng: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Claim ratios of mean .9, all drawn alike."""
    return separate_claims(rng, 0.9, size), np.ones(size)


def rarely_no(rng: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Yes or no, 2 % no."""
    return bernoulli(rng, 0.98, size), np.ones(size)


def by_route(rng: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Two routes of equal traffic with means .84 and .96, drawn at .1 and 1."""
    heavy = rng.random(size) < 1 / 11
    return (rng.random(size) < np.where(heavy, 0.84, 0.96)).astype(float), np.where(heavy, 10.0, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize(("draw", "truth"), [(claim_ratios, 0.9), (rarely_no, 0.98), (by_route, 0.9)])
def test_missed_at_any_time(draw: BandDraw, truth: float) -> None:
    """Of all runs at most 5 % leave the truth outside at any time: ends never move back, so the last band tells."""
    rng, missed, widths = np.random.default_rng(1), 0, {60: 0.0, 240: 0.0, 1440: 0.0}
    for _ in range(BAND_RUNS):
        band = HedgedBand(max_weight=10.0) if draw is by_route else HedgedBand()
        scores, weights = draw(rng, 2000)
        for count, (score, weight) in enumerate(zip(scores.tolist(), weights.tolist(), strict=True), start=1):
            band = band.after(score, weight)
            if count in widths:
                widths[count] += (band.high - band.low) / 2 / BAND_RUNS
        missed += not band.low <= truth <= band.high
    shown = ", ".join(f"{width:.3f} at {count}" for count, width in widths.items())
    print(f"{draw.__name__}: missed {missed / BAND_RUNS:.3f}; half-width {shown}")
    assert missed / BAND_RUNS <= 0.05
