"""The offset between two judges: its sign, its ends, and how often its interval holds."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwatch.core.compare import JudgeOffset, offset

RATIOS = st.sampled_from([0.0, 0.25, 0.5, 1.0])
PAIRS = st.lists(st.tuples(RATIOS, RATIOS), min_size=1, max_size=60)


@given(PAIRS)
def test_turned_around_it_changes_its_sign(pairs: list[tuple[float, float]]) -> None:
    """After minus before is the opposite of before minus after; the value is the mean, inside its interval."""
    change, turned = offset(pairs), offset([(after, before) for before, after in pairs])
    assert change is not None
    assert turned == JudgeOffset(-change.value, -change.high, -change.low, change.n)
    assert abs(change.value - sum(after - before for before, after in pairs) / len(pairs)) < 1e-9
    assert -1.0 <= change.low <= change.value <= change.high <= 1.0


@pytest.mark.costly
def test_the_interval_holds_where_few_answers_differ() -> None:
    """Five in a hundred answers lose half their score, one gains all: the interval misses in at most 5 % of runs."""
    rng, missed = random.Random(4), 0
    for _ in range(400):
        draws = [rng.random() for _ in range(100)]
        change = offset([(0.5, 0.0) if each < 0.05 else (0.0, 1.0) if each < 0.06 else (1.0, 1.0) for each in draws])
        assert change is not None
        missed += not change.low <= -0.015 <= change.high
    assert missed <= 20


def test_no_difference_leaves_little_doubt() -> None:
    """Two hundred answers alike: the offset is within three hundredths of nothing."""
    change = offset([(0.7, 0.7)] * 200)
    assert change is not None
    assert (change.value, change.to_record()["n"]) == (0.0, 200)
    assert -0.03 < change.low < 0.0 < change.high < 0.03
