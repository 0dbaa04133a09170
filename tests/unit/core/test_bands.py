"""Bands: they hold at all times, never widen, honour weights, and survive as plain values."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwatch.core.drift.bands import HedgedBand, from_dict, to_dict

pairs = st.lists(st.tuples(st.floats(0, 1), st.floats(1, 20)), max_size=40)


@given(pairs)
def test_a_band_only_narrows(some: list[tuple[float, float]]) -> None:
    """Each band lies within the one before, within [0, 1], and kept as JSON it is the same band."""
    band = HedgedBand(max_weight=10.0)
    for score, weight in some:
        after = from_dict(json.loads(json.dumps(to_dict(band)))).after(score, weight)
        assert after == band.after(score, weight)
        assert 0.0 <= band.low <= after.low
        assert after.high <= band.high <= 1.0
        band = after


def test_mirror() -> None:
    """Scores turned round turn the band round."""
    rng = random.Random(1)
    one, other = HedgedBand(), HedgedBand()
    for _ in range(300):
        score = rng.betavariate(6, 2)
        one, other = one.after(score), other.after(1 - score)
    assert (1 - other.high, 1 - other.low) == pytest.approx((one.low, one.high))


@pytest.mark.costly
def test_watched_all_the_time() -> None:
    """Looked at after each of 400 weighted scores, the truth is outside at any time in at most 5 % of runs."""
    rng, missed = random.Random(2), 0
    for _ in range(60):
        band = HedgedBand(max_weight=10.0)
        for _ in range(400):
            heavy = rng.random() < 1 / 11
            band = band.after(float(rng.random() < (0.8 if heavy else 0.96)), 10.0 if heavy else 1.0)
        missed += not band.low <= 0.88 <= band.high
    assert missed <= 3


def test_a_narrow_band() -> None:
    """Scores with a small variance give a narrow band."""
    rng = random.Random(3)
    band = HedgedBand()
    for _ in range(240):
        band = band.after(rng.betavariate(9, 1))
    assert band.high - band.low < 0.15


def test_another_kind_is_refused() -> None:
    """A stored band of another kind is not restored."""
    with pytest.raises(ValueError, match="kind 'bernstein' instead of 'hedged'"):
        from_dict(to_dict(HedgedBand()) | {"kind": "bernstein"})


def test_equal_weights_are_none() -> None:
    """A common weight leaves the band as it is, and one above the heaviest counts as the heaviest."""
    plain, equal, above = HedgedBand(), HedgedBand(max_weight=8.0), HedgedBand(max_weight=8.0)
    for score in (1.0, 0.5, 0.75, 1.0) * 20:
        plain, equal, above = plain.after(score), equal.after(score, 8.0), above.after(score, 99.0)
    assert (equal.low, equal.high) == (above.low, above.high) == (plain.low, plain.high)


def test_a_mean_that_moved_leaves_a_point() -> None:
    """Where no mean fits the whole stream one grid point stays: the band is too narrow, but a band."""
    band = HedgedBand()
    for score in (0.0,) * 2000 + (1.0,) * 2000:
        band = band.after(score)
    assert len(band.up) == 1
    assert 0.0 < band.high - band.low <= 0.01 + 1e-9
