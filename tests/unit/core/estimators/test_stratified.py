"""Stratified means: shares count, not draws; nothing is guessed of a stratum without scores."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwatch.core.estimate import Addends
from ragwatch.core.estimators import hajek
from ragwatch.core.estimators.stratified import estimate

pairs = st.lists(st.tuples(st.floats(0, 1), st.floats(0.01, 1)), min_size=1, max_size=30)


@given(pairs)
def test_one_stratum_is_no_stratum(some: list[tuple[float, float]]) -> None:
    """Over a single stratum every figure is that of the plain estimator."""
    plain, found = hajek.estimate(Addends.of(some)), estimate({"a": Addends.of(some)}, {"a": 3.0})
    assert plain is not None
    assert found is not None
    assert found.interval == plain.interval
    for name in ("value", "low", "high", "n", "n_eff", "coverage", "bound_low", "bound_high"):
        assert getattr(found, name) == pytest.approx(getattr(plain, name), abs=1e-9), name


@given(pairs, pairs, st.floats(0.01, 0.99))
def test_figures_stand_in_order(one: list[tuple[float, float]], two: list[tuple[float, float]], share: float) -> None:
    """0 <= low <= value <= high <= 1, and the value lies between those of the strata."""
    strata = {"one": Addends.of(one), "two": Addends.of(two)}
    found = estimate(strata, {"one": share, "two": 1 - share}, unjudged_weight={"one": 5.0})
    assert found is not None
    assert 0.0 <= found.low <= found.value <= found.high <= 1.0
    assert found.bound_low <= found.value + 1e-12
    assert found.value <= found.bound_high + 1e-12
    means = [each.wx / each.w for each in strata.values()]
    assert min(means) - 1e-9 <= found.value <= max(means) + 1e-9


def test_post_stratification_takes_out_an_uneven_draw() -> None:
    """By chance or by plan more was drawn of the bad route: its share of the traffic decides."""
    strata = {"good": Addends.of([(1.0, 0.1)] * 20), "bad": Addends.of([(0.0, 1.0)] * 500)}
    found = estimate(strata, {"good": 900, "bad": 100})
    assert found is not None
    assert found.value == pytest.approx(0.9)
    assert found.low > 0.7


@pytest.mark.parametrize("strata", [{}, {"a": Addends()}, {"b": Addends.one(1.0, 1.0)}])
def test_a_stratum_without_scores_is_not_guessed(strata: dict[str, Addends]) -> None:
    """Traffic of which nothing was judged leaves no estimate of the whole."""
    assert estimate(strata, {"a": 1.0}) is None


def test_no_traffic() -> None:
    """Without traffic there is nothing to estimate; a stratum without any is left out."""
    assert estimate({"a": Addends.one(1.0, 1.0)}, {"a": 0.0}) is None
    assert estimate({"a": Addends.one(1.0, 1.0)}, {"a": 1.0, "b": 0.0}) is not None
