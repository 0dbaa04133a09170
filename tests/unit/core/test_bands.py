"""Bands: they hold at all times, never widen, honour weights, and survive as plain values."""

from __future__ import annotations

import json
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwatch.core.drift.bands import BernsteinBand, HedgedBand, from_dict, to_dict

KINDS = [BernsteinBand, HedgedBand]
pairs = st.lists(st.tuples(st.floats(0, 1), st.floats(1, 20)), max_size=40)


@pytest.mark.parametrize("kind", KINDS)
@given(pairs)
def test_a_band_only_narrows(kind: type[BernsteinBand | HedgedBand], some: list[tuple[float, float]]) -> None:
    """Each band lies within the one before, within [0, 1], and kept as JSON it is the same band."""
    band = kind(heaviest=10.0)
    for score, weight in some:
        after = from_dict(json.loads(json.dumps(to_dict(band)))).after(score, weight)
        assert after == band.after(score, weight)
        assert 0.0 <= band.low <= after.low
        assert after.high <= band.high <= 1.0
        band = after


@pytest.mark.parametrize("kind", KINDS)
def test_mirror(kind: type[BernsteinBand | HedgedBand]) -> None:
    """Scores turned round turn the band round."""
    rng = random.Random(1)
    one, other = kind(), kind()
    for _ in range(300):
        score = rng.betavariate(6, 2)
        one, other = one.after(score), other.after(1 - score)
    assert (1 - other.high, 1 - other.low) == pytest.approx((one.low, one.high))


@pytest.mark.parametrize("kind", KINDS)
def test_watched_all_the_time(kind: type[BernsteinBand | HedgedBand]) -> None:
    """Looked at after each of 400 weighted scores, the truth is outside at any time in at most 5 % of runs."""
    rng, missed = random.Random(2), 0
    for _ in range(60):
        band = kind(heaviest=10.0)
        for _ in range(400):
            heavy = rng.random() < 1 / 11
            band = band.after(float(rng.random() < (0.8 if heavy else 0.96)), 10.0 if heavy else 1.0)
        missed += not band.low <= 0.88 <= band.high
    assert missed <= 3


def test_betting_is_narrower() -> None:
    """On scores with little spread both are narrow, and betting is the narrower of the two."""
    rng = random.Random(3)
    hedged, bernstein = HedgedBand(), BernsteinBand()
    for _ in range(240):
        score = rng.betavariate(9, 1)
        hedged, bernstein = hedged.after(score), bernstein.after(score)
    assert hedged.high - hedged.low < bernstein.high - bernstein.low < 0.15


@pytest.mark.parametrize("kind", KINDS)
def test_equal_weights_are_none(kind: type[BernsteinBand | HedgedBand]) -> None:
    """A common weight leaves the band as it is, and one above the heaviest counts as the heaviest."""
    plain, equal, above = kind(), kind(heaviest=8.0), kind(heaviest=8.0)
    for score in (1.0, 0.5, 0.75, 1.0) * 20:
        plain, equal, above = plain.after(score), equal.after(score, 8.0), above.after(score, 99.0)
    assert (equal.low, equal.high) == (above.low, above.high) == (plain.low, plain.high)


def test_bernstein_by_hand() -> None:
    """The lower end is where the inequality of the docstring becomes an equality."""
    band, sums = BernsteinBand(), []
    for score in (1.0, 0.9, 0.8, 1.0) * 25:
        bet = min(0.5, band.spread.bet(0.05))
        sums.append((bet, -math.log(1 - bet) - bet, score))
        band = band.after(score)
    middle = band.low
    gained = sum(bet * (score - middle) - psi * (score - middle) ** 2 for bet, psi, score in sums)
    assert gained == pytest.approx(math.log(2 / 0.05))


def test_a_mean_that_moved_leaves_a_point() -> None:
    """Where no mean fits the whole stream one grid point stays: the band is too narrow, but a band."""
    band = HedgedBand()
    for score in (0.0,) * 2000 + (1.0,) * 2000:
        band = band.after(score)
    assert len(band.up) == 1
    assert 0.0 < band.high - band.low <= 0.01 + 1e-9
