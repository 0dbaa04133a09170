"""Bands: they hold at all times, never widen, honour weights, and survive as plain values."""

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwatch.statistics.drift.bands import DAY, DayBand, HedgedBand, from_dict, to_dict

pairs = st.lists(st.tuples(st.floats(0, 1), st.floats(1, 20)), max_size=40)
FRESH = DayBand(HedgedBand())


@given(pairs)
def test_a_band_only_narrows(some: list[tuple[float, float]]) -> None:
    """Each band lies within the one before, within [0, 1]."""
    band = HedgedBand(max_weight=10.0)
    for score, weight in some:
        after = band.after(score, weight)
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
    for _ in range(40):
        band = HedgedBand(max_weight=10.0)
        for _ in range(400):
            heavy = rng.random() < 1 / 11
            band = band.after(float(rng.random() < (0.8 if heavy else 0.96)), 10.0 if heavy else 1.0)
        missed += not band.low <= 0.88 <= band.high
    assert missed <= 2


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


def run(scores: list[float], band: DayBand = FRESH, first: float = 0.0, weight: float = 1.0) -> DayBand:
    """The band after these scores, one every ten seconds."""
    for index, score in enumerate(scores):
        band = band.after(first + 10.0 * index, score, weight)
    return band


def yes(rate: float, count: int, seed: int = 1) -> list[float]:
    """Scores of 0 and 1."""
    rng = random.Random(seed)
    return [float(rng.random() < rate) for _ in range(count)]


def test_a_steady_day_is_one_band() -> None:
    """It is the confidence sequence itself."""
    scores, plain = yes(0.9, 800), HedgedBand()
    for score in scores:
        plain = plain.after(score)
    result = run(scores)
    assert (result.band, result.since) == (plain, 0.0)
    assert result.mean == pytest.approx(sum(scores) / len(scores))
    assert FRESH.mean is None


def test_midnight_begins_another_and_late_answers_do_not() -> None:
    """The day is that of the newest answer."""
    band = run(yes(0.9, 50), first=DAY - 300.0)
    assert (band.since, band.band.spread.n) == (DAY, 20)
    assert band.after(DAY - 200.0, 1.0).band.spread.n == 21


def test_a_mean_that_has_moved_begins_another() -> None:
    """The band of the good half does not stay where the truth is no more."""
    good = run(yes(0.9, 1000))
    band = run(yes(0.5, 1500), good, first=10_000.0)
    assert band.since is not None
    assert band.since > 10_000.0
    assert band.band.low <= 0.5 <= band.band.high < good.band.low


def test_weights_count() -> None:
    """Scores of a route that is drawn at .1 stand for ten."""
    band = DayBand(HedgedBand(max_weight=10.0)).after(0.0, 1.0, 10.0).after(1.0, 0.0, 1.0)
    assert band.mean == pytest.approx(10 / 11)


@pytest.mark.costly
@pytest.mark.parametrize("cut", [0, 1, 150, 250, 400])
def test_a_restart_changes_nothing(cut: int) -> None:
    """Kept as JSON after any score, in either part, it goes on as it would have."""
    scores = [*yes(0.9, 200), *yes(0.2, 200, 2)]
    kept = json.loads(json.dumps(to_dict(run(scores[:cut]))))
    assert run(scores[cut:], from_dict(FRESH, kept), 10.0 * cut) == run(scores)


def test_another_design_begins_anew() -> None:
    """Of another confidence or another largest weight nothing is taken over; a band of another kind is refused."""
    kept = to_dict(run(yes(0.9, 50)))
    assert from_dict(FRESH, kept) == run(yes(0.9, 50))
    for other in (DayBand(HedgedBand(risk=0.01)), DayBand(HedgedBand(max_weight=10.0))):
        assert from_dict(other, kept) == other
    with pytest.raises(ValueError, match="kind 'bernstein' instead of 'hedged'"):
        from_dict(FRESH, kept | {"band": kept["band"] | {"kind": "bernstein"}})
