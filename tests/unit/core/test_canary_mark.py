"""Marks of canaries: only the holder of the secret writes them, and each is good for its day."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ragwatch.core.canary.definition import CanaryMarks

DAY = 86400.0
NOON = 20_000.5 * DAY
MARKS = CanaryMarks(b"secret")


@given(st.text(max_size=40).map(lambda name: name.strip() or "docs"), st.floats(0.0, 4e9))
def test_our_marks_are_valid(suite: str, now: float) -> None:
    """Whatever the suite is called, and whenever it is asked; blanks around it do not matter."""
    mark = MARKS.mark(suite, now)
    assert MARKS.is_valid(mark, now)
    assert MARKS.is_valid(f" {mark} ", None)
    assert not CanaryMarks(b"other").is_valid(mark, now)
    assert not CanaryMarks().is_valid(mark, now)


@given(st.one_of(st.text(), st.booleans(), st.integers(), st.none(), st.lists(st.text()), st.just("docs.20000.")))
def test_nothing_else_is(value: object) -> None:
    """No text, number or flag that was not made with the secret."""
    assert not MARKS.is_valid(value, None)


def test_a_mark_that_was_seen_hides_the_answers_of_its_day_alone() -> None:
    """One day before and after are allowed for clocks; the day cannot be rewritten."""
    mark = MARKS.mark("docs", NOON)
    assert [MARKS.is_valid(mark, NOON + days * DAY) for days in (-2, -1, 0, 1, 2)] == [False, True, True, True, False]
    suite, day, digest = mark.split(".")
    assert not MARKS.is_valid(f"{suite}.{int(day) + 2}.{digest}", NOON + 2 * DAY)
    assert not MARKS.is_valid(f"other.{day}.{digest}", NOON)
    assert not MARKS.is_valid(f"{'d' * 400}{mark}", NOON)


def test_without_a_secret_the_name_is_sent() -> None:
    """A run beside a state that cannot be read is named, and its answers count as traffic."""
    assert CanaryMarks().mark("docs", NOON) == "docs"
