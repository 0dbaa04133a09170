"""The band of a day restarts at midnight and when the mean has moved, and survives a restart of the daemon."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.draws import draws

from ragwatch.core.drift.bands import DAY, DayBand, HedgedBand, day_from_dict, day_to_dict

FRESH = DayBand(HedgedBand())


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
@settings(max_examples=draws(20))
@given(st.integers(0, 400))
def test_a_restart_changes_nothing(cut: int) -> None:
    """Kept as JSON after any score, it goes on as it would have."""
    scores = [*yes(0.9, 200), *yes(0.2, 200, 2)]
    kept = json.loads(json.dumps(day_to_dict(run(scores[:cut]))))
    assert run(scores[cut:], day_from_dict(FRESH, kept), 10.0 * cut) == run(scores)


def test_another_design_begins_anew() -> None:
    """Another confidence or another largest weight: nothing is taken over."""
    kept = day_to_dict(run(yes(0.9, 50)))
    for other in (DayBand(HedgedBand(risk=0.01)), DayBand(HedgedBand(max_weight=10.0))):
        assert day_from_dict(other, kept) == other
