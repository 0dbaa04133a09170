"""The score interval: its ends by other people's tails, what is shrunk, and limits."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ragwatch.core.estimate import Addends
from ragwatch.core.estimators.interval import clopper_pearson
from ragwatch.core.estimators.score import SampleMoments, interval

pairs = st.lists(st.tuples(st.floats(0, 1), st.floats(0.01, 1)), min_size=1, max_size=30)


def yes_no(ones: int, n: int) -> Addends:
    """So many ones, all drawn alike."""
    return Addends.of([(1.0, 1.0)] * ones + [(0.0, 1.0)] * (n - ones))


@pytest.mark.parametrize(("ones", "n"), [(10, 60), (90, 100), (7, 240), (300, 500)])
def test_ends_by_scipy(ones: int, n: int) -> None:
    """Of yes/no scores drawn alike, at either end Pearson III tails weigh 5 %: two thirds by distance, one by tails."""
    for p in interval(SampleMoments.of(yes_no(ones, n))):
        error = math.sqrt(p * (1 - p) / n)
        lump = 0.5 / n / (1 + n * min(p, 1 - p)) ** 2
        off = math.copysign(abs(ones / n - p) - lump, ones / n - p) / error
        curve = stats.pearson3((1 - 2 * p) / math.sqrt(n * p * (1 - p)))
        above, below = curve.sf(abs(off)), curve.cdf(-abs(off))
        assert 2 / 3 * (above + below) + 2 / 3 * (above if off > 0 else below) == pytest.approx(0.05, abs=2e-3)


def test_like_jeffreys_in_the_middle() -> None:
    """Where nothing is rare it is what everybody's interval is."""
    result = interval(SampleMoments.of(yes_no(600, 1000)))
    assert result == pytest.approx(stats.beta(600.5, 400.5).ppf([0.025, 0.975]), abs=5e-4)


@given(st.integers(1, 40), st.data())
def test_no_wider_than_exact_where_failures_are_few(n: int, data: st.DataObject) -> None:
    """With fewer than five effective failures both ends lie within Clopper and Pearson's."""
    ones = data.draw(st.integers(max(0, n - 4), n))
    low, high = interval(SampleMoments.of(yes_no(ones, n)))
    exact = clopper_pearson(ones / n, n)
    assert exact[0] - 1e-9 <= low <= ones / n <= high <= exact[1] + 1e-9


def test_finer_scores_are_known_better() -> None:
    """Scores that scatter less than yes/no of the same mean have a narrower interval, at Student's t."""
    fine = Addends.of([(0.85, 1.0), (0.95, 1.0)] * 30)
    low, high = interval(SampleMoments.of(fine))
    error = math.sqrt(0.0025 / 60)
    assert (high - low) / 2 == pytest.approx(float(stats.t.ppf(0.975, 59)) * error, rel=0.1)
    assert high - low < 0.5 * (0.9568 - 0.7956)  # Clopper and Pearson's of 54 in 60


def test_a_heavy_part_that_is_worse_widens() -> None:
    """As many failures leave a wider interval where the rarely drawn rows have them than where all have their share."""
    apart = [(0.0, 0.1)] * 12 + [(1.0, 0.1)] * 8 + [(1.0, 1.0)] * 200
    alike = [(0.0, 0.1)] * 6 + [(1.0, 0.1)] * 14 + [(0.0, 1.0)] * 60 + [(1.0, 1.0)] * 140
    widths = []
    for some in (apart, alike):
        addends = Addends.of(some)
        assert addends.wx / addends.w == pytest.approx(0.7)
        low, high = interval(SampleMoments.of(addends))
        widths.append(high - low)
    assert widths[0] > 1.1 * widths[1]


def test_a_heavy_part_that_is_better_narrows_so_far_only() -> None:
    """Where only light rows failed the variance is not believed to be nothing."""
    some = Addends.of([(1.0, 0.1)] * 20 + [(0.0, 1.0)] * 60 + [(1.0, 1.0)] * 140)
    moments = SampleMoments.of(some)
    assert moments.heavy > 0.95
    p = moments.mean
    assert moments.at(p).variance >= 0.25 * p * (1 - p) / moments.n_eff * (1 - 1e-9)


def test_sums_that_were_not_kept() -> None:
    """Without cubes and fourth powers they are guessed: exactly for the field's half at .1 and half at 1."""
    some = Addends.of([(1.0, 0.1)] * 20 + [(1.0, 1.0)] * 150 + [(0.0, 1.0)] * 50)
    known, guessed = (SampleMoments.of(each) for each in (some, replace(some, w3=None, w4=None)))
    assert guessed.pull == pytest.approx(known.pull, rel=0.01)
    assert guessed.cubes == pytest.approx(known.cubes, rel=0.01)
    ends = [interval(each) for each in (known, guessed)]
    assert ends[0] == pytest.approx(ends[1], abs=0.02)


@given(pairs)
def test_ends_enclose_the_mean(scores: list[tuple[float, float]]) -> None:
    """The interval contains the estimate and lies in [0, 1]."""
    moments = SampleMoments.of(Addends.of(scores))
    low, high = interval(moments)
    assert 0.0 <= low <= moments.mean <= high <= 1.0


@pytest.mark.parametrize("scores", [[(0.3, 0.01), (0.31, 1.0)], [(0.8, 1.0)] * 4, [(0.7, 1.0), (0.9, 0.2), (0.8, 1.0)]])
def test_below_five_effective_answers_no_scatter_is_believed(scores: list[tuple[float, float]]) -> None:
    """Two scores that happen to be near each other do not tell that all are: the interval is that of yes and no."""
    moments = SampleMoments.of(Addends.of(scores))
    assert interval(moments) == clopper_pearson(moments.mean, moments.n_eff)
