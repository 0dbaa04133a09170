"""E-values of slices: whatever the data do, and whenever somebody looks, a slice that fails no more pays at most 1."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragwatch.core.causes.evalues import Counts, log_blocks, log_mean, log_totals, selected

ANSWERS = 9


def blocks(inside: Sequence[bool], failing: Sequence[int]) -> float:
    """The e-value by blocks of the first answers."""
    places = [place for place, within in enumerate(inside[: len(failing)]) if within]
    return log_blocks(places, [failing[place] for place in places], list(accumulate(failing, initial=0)))


def totals(inside: Sequence[bool], failing: Sequence[int]) -> float:
    """The e-value by totals of the first answers."""
    marks = [fails for fails, within in zip(failing, inside, strict=False) if within]
    if not 0 < len(marks) < len(failing):
        return 0.0
    return log_totals(Counts(len(marks), sum(marks), len(failing) - len(marks), sum(failing) - sum(marks)))


def best_stop(
    log_e: Callable[[Sequence[bool], Sequence[int]], float], inside: Sequence[bool], shares: tuple[float, float]
) -> float:
    """The greatest mean that any rule of when to stop looking can reach, over all outcomes: exact."""

    @lru_cache(None)
    def value(failing: tuple[int, ...]) -> float:
        now = math.exp(log_e(inside, failing))
        if len(failing) == len(inside):
            return now
        share = shares[0] if inside[len(failing)] else shares[1]
        return max(now, share * value((*failing, 1)) + (1.0 - share) * value((*failing, 0)))

    return value(())


@pytest.mark.parametrize("log_e", [blocks, totals])
@settings(max_examples=12, deadline=None)
@given(
    inside=st.lists(st.booleans(), min_size=2, max_size=ANSWERS),
    outside_share=st.floats(0.01, 0.99),
    ratio=st.sampled_from([1.0, 1.0, 0.5]),
)
def test_no_rule_of_stopping_gains(
    log_e: Callable[[Sequence[bool], Sequence[int]], float], inside: list[bool], outside_share: float, ratio: float
) -> None:
    """A slice that fails no more than the rest: the best rule of when to look gains nothing from its bets."""
    assert best_stop(log_e, inside, (ratio * outside_share, outside_share)) <= 1.0 + 1e-9


def test_blocks_allow_a_failing_share_that_changes_in_time() -> None:
    """Bets within blocks gain nothing from an incident that hits slice and others alike."""
    inside = [place % 20 == 0 for place in range(2000)]
    failing = [int(place > 1000 and place % 3 == 0) for place in range(2000)]
    assert blocks(inside, failing) < math.log(20.0)


def test_a_release_that_replaces_another_is_seen_in_totals() -> None:
    """Where no block holds both, the likelihood of the totals tells them apart."""
    inside = [place >= 500 for place in range(600)]
    failing = [int(place % (3 if within else 20) == 0) for place, within in enumerate(inside)]
    assert totals(inside, failing) > 10.0 > 3.0 > abs(blocks(inside, failing))


def test_evidence_grows_with_a_failing_slice_and_not_with_a_good_one() -> None:
    """More failing answers inside are more evidence; a slice that never fails is none."""
    inside = [place % 10 == 0 for place in range(400)]
    gains = []
    for every in (20, 4, 2):
        failing = [
            int(place // 10 % every == 0) if within else int(place % 20 == 7) for place, within in enumerate(inside)
        ]
        gains.append((blocks(inside, failing), totals(inside, failing)))
    assert gains == sorted(gains)
    assert max(blocks(inside, [int(not within) for within in inside]), totals(inside, [0] * 400)) <= 0.0


@given(st.floats(-50.0, 50.0), st.floats(-50.0, 50.0))
def test_the_mean_of_two_e_values(first: float, second: float) -> None:
    """The logarithm of the mean, without overflow."""
    assert log_mean(first, second) == pytest.approx(math.log((math.exp(first) + math.exp(second)) / 2.0), abs=1e-9)
    assert log_mean(2000.0, 1000.0) == pytest.approx(2000.0 - math.log(2.0))


@given(st.lists(st.floats(-5.0, 30.0), max_size=20), st.integers(20, 5000), st.floats(0.001, 0.5))
def test_every_selected_slice_has_enough_evidence_for_their_number(
    logs: list[float], looked_at: int, rate: float
) -> None:
    """What e-BH selects is self-consistent, and one more would not be."""
    logs.sort(reverse=True)
    count = selected(logs, looked_at, rate)
    assert all(log >= math.log(looked_at / (rate * count)) for log in logs[:count])
    assert all(logs[more - 1] < math.log(looked_at / (rate * more)) for more in range(count + 1, len(logs) + 1))
