"""The end of an alarm: a mend ends it, a break that is mended in part does not, whatever the direction."""

from __future__ import annotations

from random import Random

import pytest

from ragwatch.statistics.drift.detect import Direction, Score
from ragwatch.statistics.drift.recovery import MAX_BREAK, EndTest, Mend, Recovery, Sums, limit_time

BASELINE, STEP = 0.9, 60.0


def followed(test: EndTest, state: Recovery, mean: float, count: int, start: int = 0) -> tuple[Recovery, Mend | None]:
    """The state after answers of a mean, or the mend as soon as there is one."""
    chance, baseline = Random(start), BASELINE if test.direction is Direction.FALL else 1.0 - BASELINE
    for index in range(start, start + count):
        good = chance.random() < mean
        value = float(good == (test.direction is Direction.FALL))
        state = test.step(state, Score(value), STEP * index, STEP, baseline)
        mend = test.mend(state, baseline)
        if mend is not None:
            return state, mend
    return state, None


@pytest.mark.parametrize("direction", list(Direction))
def test_a_mend_ends_the_alarm(direction: Direction) -> None:
    """With the time of the first good answer, near that of the mend, and their mean in terms of the quantity."""
    test = EndTest(30.0, direction)
    state, mend = followed(test, Recovery(), 0.3, 200)
    assert mend is None
    assert Recovery.from_record(state._asdict()) == state
    _, mend = followed(test, state, 0.95, 300, start=200)
    assert STEP * 190 <= mend.since <= STEP * 230
    assert (mend.mean > 0.8) == (direction is Direction.FALL)


def test_a_break_that_is_mended_in_part_goes_on() -> None:
    """Clearly better than before and clearly worse than the baseline: the test starts again from these answers."""
    test = EndTest(1.0)
    state, _ = followed(test, Recovery(), 0.05, 400)
    state, mend = followed(test, state, 0.6, 1500, start=400)
    assert mend is None
    assert 0.5 < state.worse.mean < 0.7


def test_answers_before_the_alarm_count_as_the_break_while_evidence_rises() -> None:
    """And are forgotten where it falls back to nothing."""
    test = EndTest(30.0)
    state = test.watch(Recovery(), Score(0.0), rising=True)
    assert (state.worse.n, state.worse.mean) == (1.0, 0.0)
    assert test.watch(state, Score(1.0), rising=False) == Recovery()


def test_a_long_break_forgets_and_times_are_capped() -> None:
    """The oldest answers lose weight; a clock that ran ahead leaves no begin in the future."""
    state = Recovery(worse=Sums(MAX_BREAK, MAX_BREAK, 0.0, MAX_BREAK))
    assert EndTest(30.0).watch(state, Score(1.0), rising=True).worse.n == pytest.approx(MAX_BREAK, abs=1.0)
    ahead = Recovery(began=100.0)
    assert limit_time(ahead, 50.0).began == 50.0
    assert limit_time(ahead, 200.0) == ahead
