"""E-values of slices: whatever the data do, and whenever somebody looks, a slice that fails no more pays at most 1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import dropwhile

from hypothesis import given, settings
from hypothesis import strategies as st
from support.draws import draws

from ragwatch.core.causes.search import Counts, log_e_value, selected

ANSWERS = 10
Cells = Sequence[tuple[int, bool]]
"""Of each answer in turn, its cell and whether it is in the slice."""


def log_e(cells: Cells, failing: Sequence[int]) -> float:
    """Logarithm of the e-value after the first answers, over two cells."""
    total = 0.0
    for cell in (0, 1):
        marks: tuple[list[int], list[int]] = ([], [])
        for (own, within), fails in zip(cells, failing, strict=False):
            if own == cell:
                marks[within].append(fails)
        total += log_e_value(Counts(len(marks[1]), sum(marks[1]), len(marks[0]), sum(marks[0])))
    return total


def best_stop(cells: Cells, shares: Sequence[tuple[float, float]]) -> float:
    """The greatest mean that any rule of when to stop looking can reach, over all outcomes: exact.

    Args:
        cells: Of all answers.
        shares: Failing shares outside and inside, by cell.
    """

    @lru_cache(None)
    def value(failing: tuple[int, ...]) -> float:
        now = math.exp(log_e(cells, failing))
        if len(failing) == len(cells):
            return now
        cell, within = cells[len(failing)]
        share = shares[cell][within]
        return max(now, share * value((*failing, 1)) + (1.0 - share) * value((*failing, 0)))

    return value(())


@settings(max_examples=draws(10), deadline=None)
@given(
    cells=st.lists(st.tuples(st.integers(0, 1), st.booleans()), min_size=2, max_size=ANSWERS),
    outside=st.lists(st.floats(0.01, 0.99), min_size=2, max_size=2),
    ratio=st.sampled_from([1.0, 1.0, 0.5]),
)
def test_no_rule_of_stopping_gains(cells: list[tuple[int, bool]], outside: list[float], ratio: float) -> None:
    """A slice that fails no more than the rest: the best rule of when to look gains nothing from its bets."""
    assert best_stop(cells, [(share, ratio * share) for share in outside]) <= 1.0 + 1e-9


def test_bets_on_a_failing_slice_pay() -> None:
    """The bound above is not one that any bet keeps: where the slice fails more, the mean is above 1."""
    assert best_stop([(0, place % 2 == 0) for place in range(ANSWERS)], [(0.05, 0.95)] * 2) > 2.0


def test_a_release_that_replaces_another_is_seen() -> None:
    """No answer of the one is beside one of the other: the totals tell them apart."""
    assert log_e_value(Counts(100, 40, 500, 25)) > 10.0


@given(st.integers(1, 200), st.integers(1, 2000), st.data())
def test_evidence_grows_with_what_fails_inside(inside: int, outside: int, data: st.DataObject) -> None:
    """Beyond the share outside, one more failing answer inside is never less evidence, once there is any."""
    outside_failing = data.draw(st.integers(0, outside))
    least = min(inside, inside * outside_failing // outside + 1)
    logs = [log_e_value(Counts(inside, failing, outside, outside_failing)) for failing in range(least, inside + 1)]
    evidence = list(dropwhile(lambda log: log <= 0.0, logs))
    assert evidence == sorted(evidence)


@given(st.integers(0, 300), st.integers(0, 300), st.data())
def test_a_cell_never_costs_more_than_half_of_the_stake(inside: int, outside: int, data: st.DataObject) -> None:
    """Cells without the slice, or in which it fails less, cost at most the half that is bet."""
    failing = data.draw(st.integers(0, inside)), data.draw(st.integers(0, outside))
    assert log_e_value(Counts(inside, failing[0], outside, failing[1])) >= -math.log(2.0) - 1e-9


@given(st.lists(st.floats(-5.0, 30.0), max_size=20), st.integers(20, 5000), st.floats(0.001, 0.5))
def test_every_selected_slice_has_enough_evidence_for_their_number(
    logs: list[float], looked_at: int, rate: float
) -> None:
    """What e-BH selects is self-consistent, and one more would not be."""
    logs.sort(reverse=True)
    count = selected(logs, looked_at, rate)
    assert all(log >= math.log(looked_at / (rate * count)) for log in logs[:count])
    assert all(logs[more - 1] < math.log(looked_at / (rate * more)) for more in range(count + 1, len(logs) + 1))
