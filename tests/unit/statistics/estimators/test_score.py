"""The score interval: its ends by other people's tails, what is shrunk, and limits."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ragwatch.model.estimate import Addends
from ragwatch.statistics.estimators.interval import beta_cdf, clopper_pearson, quantile, wilson
from ragwatch.statistics.estimators.score import WIDTH, SampleMoments, crossing, interval


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


@pytest.mark.parametrize("scores", [[(0.3, 0.01), (0.31, 1.0)], [(0.8, 1.0)] * 4, [(0.7, 1.0), (0.9, 0.2), (0.8, 1.0)]])
def test_below_five_effective_answers_no_scatter_is_believed(scores: list[tuple[float, float]]) -> None:
    """Two scores that happen to be near each other do not tell that all are: the interval is that of yes and no."""
    moments = SampleMoments.of(Addends.of(scores))
    assert interval(moments) == clopper_pearson(moments.mean, moments.n_eff)


@pytest.mark.parametrize(
    ("confidence", "degrees", "expected"), [(0.95, 10, 2.2281), (0.99, 30, 2.7500), (0.95, 1e9, 1.95996)]
)
def test_quantile(confidence: float, degrees: float, expected: float) -> None:
    """Student's t of the tables, to 1e-3 from ten degrees on."""
    assert quantile(confidence, degrees) == pytest.approx(expected, abs=1e-3)


@pytest.mark.costly
@given(st.floats(0, 1, allow_subnormal=False), st.floats(0.01, 1e5), st.floats(0.01, 1e5))
def test_incomplete_beta(x: float, a: float, b: float) -> None:
    """The regularised incomplete beta function is scipy's, which is wrong for subnormal numbers."""
    assert beta_cdf(x, a, b) == pytest.approx(float(stats.beta.cdf(x, a, b)), abs=1e-8)


def test_incomplete_beta_at_its_ends() -> None:
    """Nothing lies below 0, and nothing above 1."""
    assert (beta_cdf(0.0, 2.0, 5.0), beta_cdf(1.0, 2.0, 5.0)) == (0.0, 1.0)


@pytest.mark.parametrize(("ones", "trials"), [(0, 1), (1, 1), (0, 20), (3, 20), (20, 20), (1.7, 20.4), (15, 1000)])
def test_exact(ones: float, trials: float) -> None:
    """Quantiles of the two beta distributions of Clopper and Pearson; 0 and 1 where nothing was seen."""
    ends = clopper_pearson(ones / trials, trials)
    low = float(stats.beta.ppf(0.025, ones, trials - ones + 1)) if ones else 0.0
    high = float(stats.beta.ppf(0.975, ones + 1, trials - ones)) if ones < trials else 1.0
    assert ends == pytest.approx((low, high), abs=1e-8)


@given(st.floats(0, 1), st.floats(0.5, 1e4), st.floats(0.5, 3))
def test_wilson_inverts_the_score_test(mean: float, trials: float, z: float) -> None:
    """At either end the estimate is z standard errors away, by the variance of that end."""
    for end in wilson(mean, trials, z):
        assert 0.0 <= end <= 1.0
        assert (mean - end) ** 2 <= z * z * end * (1.0 - end) / trials * (1 + 1e-6) + 1e-12


CURVES: dict[str, Callable[[float], float]] = {
    "a line": lambda away: -away,
    "steep": lambda away: -math.expm1(30.0 * away),
    "flat at the crossing": lambda away: -(away**3),
    "a step": lambda away: 1.0 if away < 0.0 else -26.0,
    "a small step": lambda away: 1e-9 if away < 0.0 else -26.0,
    "a step, then a slope": lambda away: 3.0 if away < 0.0 else -1e-9 - away,
}


@pytest.mark.parametrize("curve", CURVES)
@given(st.floats(0.001, 0.999))
def test_the_crossing_is_behind_it(curve: str, place: float) -> None:
    """It is at most WIDTH behind what is found, and no place is looked at outside (0, 1)."""

    def height(x: float) -> float:
        assert 0.0 < x < 1.0
        return CURVES[curve](x - place)

    result = crossing(height, CURVES[curve](-place))
    assert result - 1e-15 <= place <= result + WIDTH + 1e-15


@pytest.mark.parametrize(("height", "end"), [(1.0, 1.0), (-1.0, 0.0)])
def test_no_crossing_inside(height: float, end: float) -> None:
    """A curve that stays on one side crosses at an end."""
    assert crossing(lambda _: height, 1.0) == pytest.approx(end, abs=2 * WIDTH)
