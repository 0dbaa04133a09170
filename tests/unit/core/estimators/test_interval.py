"""Intervals from a mean and a number of trials: beside scipy's, and at their ends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ragwatch.core.estimators.interval import beta_cdf, clopper_pearson, quantile, wilson


@pytest.mark.parametrize(
    ("confidence", "degrees", "expected"), [(0.95, 10, 2.2281), (0.99, 30, 2.7500), (0.95, 1e9, 1.95996)]
)
def test_quantile(confidence: float, degrees: float, expected: float) -> None:
    """Student's t of the tables, to 1e-3 from ten degrees on."""
    assert quantile(confidence, degrees) == pytest.approx(expected, abs=1e-3)


@pytest.mark.costly
@given(st.floats(0, 1), st.floats(0.01, 1e5), st.floats(0.01, 1e5))
def test_incomplete_beta(x: float, a: float, b: float) -> None:
    """The regularised incomplete beta function is scipy's."""
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
