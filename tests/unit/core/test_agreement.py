"""Agreement: figures by hand, beside other people's code, and refusals that say how many labels are missing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwatch.core.estimators.interval import wilson
from ragwatch.core.labels.agreement import (
    Agreement,
    TooFewLabels,
    calibration_error,
    compare,
    flips,
    kappa,
    labels_needed,
    mcnemar,
    reliability,
    share,
)

MATRIX = [[50, 5, 2], [4, 30, 6], [1, 3, 19]]


def test_kappa_is_that_of_statsmodels() -> None:
    """Value and 95 % interval over three classes."""
    inter_rater = pytest.importorskip("statsmodels.stats.inter_rater", reason="needs statsmodels")
    expected = inter_rater.cohens_kappa(MATRIX)
    result = kappa(MATRIX)
    assert result is not None
    assert (result.value, result.low, result.high) == pytest.approx(
        (expected.kappa, expected.kappa_low, expected.kappa_upp), abs=1e-6
    )


@pytest.mark.parametrize("matrix", [[[0, 0], [0, 0]], [[20, 0], [0, 0]]])
def test_no_kappa(matrix: list[list[int]]) -> None:
    """Without labels, or with one class on both sides, chance explains all: no kappa."""
    assert kappa(matrix) is None


def test_figures_by_class() -> None:
    """Sensitivity and specificity of each class against the rest, with counts behind them; an empty class has none."""
    result = compare([[*row, 0] for row in MATRIX] + [[0, 0, 0, 0]])
    assert isinstance(result, Agreement)
    assert result.agreement.value == pytest.approx(99 / 120)
    assert [estimate and estimate.n for estimate in result.sensitivity] == [57, 40, 23, None]
    assert result.sensitivity[1] is not None
    assert result.sensitivity[1].value == pytest.approx(30 / 40)
    assert result.specificity[1] is not None
    assert result.specificity[1].value == pytest.approx(72 / 80)


@pytest.mark.parametrize("matrix", [[[0, 0], [0, 0]], [[5, 1], [1, 3]], [[29, 0], [0, 0]], [[30, 10], [10, 10]]])
def test_too_few_labels(matrix: list[list[int]]) -> None:
    """Below what the width needs nothing is said but how many more; with those added something is."""
    result = compare(matrix)
    assert isinstance(result, TooFewLabels)
    assert result.labels == sum(map(sum, matrix))
    assert result.missing > 0
    scale = (result.labels + result.missing) / result.labels if result.labels else 0.0
    if scale:
        more = [[round(cell * scale + 0.5) for cell in row] for row in matrix]
        assert isinstance(compare(more), Agreement)


@given(st.floats(0.02, 0.3), st.floats(0, 1))
def test_labels_needed_is_the_least_number(half_width: float, value: float) -> None:
    """With so many labels the interval is narrow enough, with one less it is not."""

    def half(n: int) -> float:
        low, high = wilson(value, n, 1.959963984540054)
        return (high - low) / 2

    n = labels_needed(half_width, value)
    assert half(n) <= half_width
    assert n == 1 or half(n - 1) > half_width


def test_share_of_none() -> None:
    """None of none is no share."""
    assert share(0, 0) is None


def test_reliability() -> None:
    """Bins in order, the score 1 in the last, empty ones left out; the error is the distance, by rows."""
    curve = reliability([(1.0, True)] * 3 + [(0.95, False)] + [(0.05, False)] * 4)
    assert [point.said.n for point in curve] == [4, 4]
    assert curve[1].mean_score == pytest.approx(0.9875)
    assert calibration_error(curve) == pytest.approx((0.05 * 4 + 0.2375 * 4) / 8)
    assert reliability([]) == ()
    assert calibration_error(()) is None


@pytest.mark.parametrize(("one", "other"), [(0, 0), (3, 8), (40, 20), (700, 640)])
def test_mcnemar_is_the_binomial_test(one: int, other: int) -> None:
    """The p-value is scipy's exact one."""
    stats = pytest.importorskip("scipy.stats")
    expected = stats.binomtest(one, one + other, 0.5).pvalue if one + other else 1.0
    assert mcnemar(one, other) == mcnemar(other, one) == pytest.approx(expected)


def test_flips() -> None:
    """A judge that became harsher: flips, their balance and their p; of no rows nothing."""
    result = flips({(True, True): 50, (True, False): 12, (False, False): 30})
    assert result is not None
    assert (result.rate.value, result.net) == pytest.approx((12 / 92, -12 / 92))
    assert result.p < 0.001
    assert flips({}) is None
