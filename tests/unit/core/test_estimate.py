"""Addends: sums that add up over time and replicas."""

from __future__ import annotations

from dataclasses import astuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwatch.core.estimate import Addends

pairs = st.lists(st.tuples(st.floats(0, 1), st.floats(0.01, 1)), max_size=20)


def test_by_hand() -> None:
    """Score 0.5 at p = 0.25 and score 1 at p = 1: w = 4 and 1."""
    expected = Addends(n=2, w=5.0, wx=3.0, w2=17.0, w2x=9.0, w2x2=5.0, w3=65.0, w4=257.0)
    assert Addends.of([(0.5, 0.25), (1.0, 1.0)]) == expected


def test_sums_that_were_not_kept_stay_unknown() -> None:
    """Five sums of a counter and all of a score together: cubes and fourth powers are unknown, not those of the one."""
    kept, others = Addends.one(1.0, 0.5), Addends(1, 2.0, 2.0, 4.0, 4.0, 4.0)
    for result in (kept + others, others + kept):
        assert (result.n, result.w, result.w3, result.w4) == (2, 4.0, None, None)


@given(pairs)
def test_nothing_is_neutral(some: list[tuple[float, float]]) -> None:
    """Adding nothing changes nothing."""
    result = Addends.of(some)
    assert result + Addends() == result == Addends() + result


@given(pairs, pairs, pairs)
def test_sums_of_parts(
    one: list[tuple[float, float]], two: list[tuple[float, float]], three: list[tuple[float, float]]
) -> None:
    """Parts may be added in any order and grouping, and give the sums of the whole."""
    a, b, c = map(Addends.of, (one, two, three))
    whole = pytest.approx(astuple(Addends.of([*one, *two, *three])))
    assert astuple((a + b) + c) == whole
    assert astuple(a + (b + c)) == whole
    assert astuple(c + (b + a)) == whole


@given(pairs, pairs, pairs)
def test_totals_are_sums(
    one: list[tuple[float, float]], two: list[tuple[float, float]], three: list[tuple[float, float]]
) -> None:
    """Many parts added up at once are what they are one by one, unknown sums among them."""
    a, b, c = map(Addends.of, (one, two, three))
    assert Addends.total([a, b, c]) == a + b + c
    assert Addends.total([a, Addends(1, 2.0, 2.0, 4.0, 4.0, 4.0), c]) == a + Addends(1, 2.0, 2.0, 4.0, 4.0, 4.0) + c
