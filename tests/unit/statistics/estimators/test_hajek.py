"""Hajek estimator: properties, and figures computed by hand."""

import math
from dataclasses import astuple

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ragwatch.model.estimate import Addends
from ragwatch.statistics.estimators.hajek import estimate

Pairs = list[tuple[float, float]]
scores = st.floats(0, 1)
pairs = st.lists(st.tuples(scores, st.floats(0.01, 1)), min_size=1, max_size=40)
lists_of_pairs = st.lists(st.tuples(scores, st.floats(0.01, 1)), max_size=20)


@given(st.lists(scores, min_size=1, max_size=60))
def test_equal_weights_give_the_plain_mean(values: list[float]) -> None:
    """With every probability 1 the value is the mean and n_eff is n."""
    result = estimate(Addends.of([(value, 1.0) for value in values]))
    mean = math.fsum(values) / len(values)
    assert (result.value, result.n_eff, result.n) == (pytest.approx(mean), pytest.approx(len(values)), len(values))


@given(pairs, st.floats(0, 1e4), st.floats(0.5, 0.999))
def test_figures_stand_in_order(some: list[tuple[float, float]], missed: float, confidence: float) -> None:
    """0 <= low <= value <= high <= 1, bounds enclose the value's share, and n_eff is at most n."""
    result = estimate(Addends.of(some), unjudged_weight=missed, confidence=confidence)
    assert 0.0 <= result.low <= result.value <= result.high <= 1.0
    assert 0.0 <= result.bound_low <= result.value + 1e-12
    assert result.value - 1e-12 <= result.bound_high <= 1.0
    assert result.bound_high - result.bound_low == pytest.approx(1.0 - result.coverage, abs=1e-9)
    assert 1.0 - 1e-9 <= result.n_eff <= result.n * (1.0 + 1e-9)


@given(pairs, pairs)
def test_bounds_hold_whatever_the_unjudged_would_have_scored(judged: Pairs, unjudged: Pairs) -> None:
    """The mean over all draws lies within the bounds, for every score of those that nobody could read."""
    missed = math.fsum(1.0 / probability for _, probability in unjudged)
    result = estimate(Addends.of(judged), unjudged_weight=missed)
    whole = estimate(Addends.of([*judged, *unjudged]))
    assert result.bound_low - 1e-9 <= whole.value <= result.bound_high + 1e-9


@given(pairs, st.floats(0.05, 1.0))
def test_only_relative_weights_count(some: list[tuple[float, float]], factor: float) -> None:
    """All probabilities scaled alike leave value and interval as they are."""
    one = estimate(Addends.of(some))
    other = estimate(Addends.of([(score, probability * factor) for score, probability in some]))
    assert (other.value, other.low, other.high) == pytest.approx((one.value, one.low, one.high), abs=1e-6)


@given(st.lists(st.tuples(st.integers(0, 1000), st.floats(0.01, 1)), min_size=1, max_size=40))
def test_mirror(counted: list[tuple[int, float]]) -> None:
    """Scores turned round (1 - x) turn the interval round: neither end is favoured.

    Scores of three digits: differences of a millionth drown in the rounding of sums near 1.
    """
    some = [(count / 1000, probability) for count, probability in counted]
    one, other = estimate(Addends.of(some)), estimate(Addends.of([(1.0 - score, p) for score, p in some]))
    assume(abs(one.value - 0.5) > 1e-6)  # at the middle, rounding decides which end is nearer
    assert (1.0 - other.high, 1.0 - other.low) == pytest.approx((one.low, one.high), abs=1e-6)


@pytest.mark.parametrize("confidence", [0.8, 0.9, 0.95, 0.99])
def test_more_confidence_is_wider(confidence: float) -> None:
    """An interval of a higher level encloses one of a lower level."""
    some = Addends.of([(1.0, 0.5), (0.0, 1.0), (1.0, 1.0), (0.5, 0.25)])
    wide, narrow = estimate(some, confidence=0.995), estimate(some, confidence=confidence)
    assert wide.low <= narrow.low <= narrow.high <= wide.high


@pytest.mark.parametrize("score", [0.0, 1.0, 0.3])
def test_equal_scores_keep_an_honest_width(score: float) -> None:
    """Ten equal scores do not prove a rate: the interval keeps width where the variance is zero."""
    result = estimate(Addends.of([(score, 0.7)] * 10))
    assert result.high - result.low > 0.2
    assert result.low <= score <= result.high


def test_one_score() -> None:
    """One score is an estimate with an interval that says how little it is; none is none, whatever stayed unjudged."""
    assert estimate(Addends(), unjudged_weight=7.0) is None
    result = estimate(Addends.of([(1.0, 0.1)]))
    assert (result.value, result.n, result.n_eff, result.high) == (1.0, 1, 1.0, 1.0)
    assert result.low < 0.3


def test_unequal_weights_widen_where_failures_are_few() -> None:
    """One light failure among heavy successes: the next failure may be a heavy one, and the interval allows for it."""
    some = [(1.0, 0.1)] * 50 + [(1.0, 1.0)] * 49 + [(0.0, 1.0)]
    result = estimate(Addends.of(some))
    assert result.value == pytest.approx(1 - 1 / 550)
    assert result.low < 0.95


@pytest.mark.parametrize("score", [1.0 - 2**-52, 2**-52, 1e-12, 1.0 - 1e-12])
def test_rounding_is_no_spread(score: float) -> None:
    """Scores that differ from their end by rounding alone are equal scores: no crash, no false certainty."""
    end = float(round(score))
    result, equal = (estimate(Addends.of([(end, 0.01), (each, 0.0117)])) for each in (score, end))
    assert (result.low, result.high) == pytest.approx((equal.low, equal.high))


def test_by_hand() -> None:
    """Score 0.5 at p = 0.25 and score 1 at p = 1: w = 4 and 1."""
    expected = Addends(n=2, w=5.0, wx=3.0, w2=17.0, w2x=9.0, w2x2=5.0, w3=65.0, w4=257.0)
    assert Addends.of([(0.5, 0.25), (1.0, 1.0)]) == expected


def test_sums_that_were_not_kept_stay_unknown() -> None:
    """Five sums of a counter and all of a score together: cubes and fourth powers are unknown, not those of the one."""
    kept, others = Addends.one(1.0, 0.5), Addends(1, 2.0, 2.0, 4.0, 4.0, 4.0)
    for result in (kept + others, others + kept):
        assert (result.n, result.w, result.w3, result.w4) == (2, 4.0, None, None)


@given(lists_of_pairs, lists_of_pairs, lists_of_pairs)
def test_sums_of_parts(one: Pairs, two: Pairs, three: Pairs) -> None:
    """Parts may be added in any order and grouping, and give the sums of the whole; nothing adds nothing.

    Many added up at once are what they are one by one, unknown sums among them.
    """
    a, b, c = map(Addends.of, (one, two, three))
    whole = pytest.approx(astuple(Addends.of([*one, *two, *three])))
    for added in ((a + b) + c, a + (b + c), c + (b + a)):
        assert astuple(added) == whole
    assert a + Addends() == a == Addends() + a
    unknown = Addends(1, 2.0, 2.0, 4.0, 4.0, 4.0)
    assert Addends.total([a, b, c]) == a + b + c
    assert Addends.total([a, unknown, c]) == a + unknown + c
