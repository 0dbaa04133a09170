"""Bands looked at after every score from 30 to 2,000 miss the truth at any time in at most 5 % of runs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from support.score_draws import bernoulli, separate_claims

from ragwatch.statistics.drift.bands import HedgedBand

RUNS = 300
Draw = Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray]]


def claims(rng: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Claim ratios of mean .9, all drawn alike."""
    return separate_claims(rng, 0.9, size), np.ones(size)


def rare(rng: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Yes or no, 2 % no."""
    return bernoulli(rng, 0.98, size), np.ones(size)


def weighted(rng: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Two routes of equal traffic with means .84 and .96, drawn at .1 and 1."""
    heavy = rng.random(size) < 1 / 11
    return (rng.random(size) < np.where(heavy, 0.84, 0.96)).astype(float), np.where(heavy, 10.0, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize(("draw", "truth"), [(claims, 0.9), (rare, 0.98), (weighted, 0.9)])
def test_missed_at_any_time(draw: Draw, truth: float) -> None:
    """Of all runs at most 5 % leave the truth outside at any time: ends never move back, so the last band tells."""
    rng, missed, widths = np.random.default_rng(1), 0, {60: 0.0, 240: 0.0, 1440: 0.0}
    for _ in range(RUNS):
        band = HedgedBand(max_weight=10.0) if draw is weighted else HedgedBand()
        scores, weights = draw(rng, 2000)
        for count, (score, weight) in enumerate(zip(scores.tolist(), weights.tolist(), strict=True), start=1):
            band = band.after(score, weight)
            if count in widths:
                widths[count] += (band.high - band.low) / 2 / RUNS
        missed += not band.low <= truth <= band.high
    shown = ", ".join(f"{width:.3f} at {count}" for count, width in widths.items())
    print(f"{draw.__name__}: missed {missed / RUNS:.3f}; half-width {shown}")
    assert missed / RUNS <= 0.05
