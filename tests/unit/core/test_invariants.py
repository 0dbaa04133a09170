"""Invariants of the counters: a violated one is reported with its figures, no other is."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from ragwatch.core.tally import Invariant, Tallies, Tally, violations

counts = st.integers(0, 50)


def counters(seen: int, drawn: int, assigned: int, judged: int, unjudged: int) -> Tallies:
    """Tallies of one source, two routes and one judge."""
    return Counter(
        {
            (Tally.SEEN, ("app",)): seen,
            (Tally.DRAWN, ("search",)): drawn,
            (Tally.ASSIGNED, ("embedded",)): assigned,
            (Tally.JUDGED, ("search", "embedded")): judged,
            (Tally.UNJUDGED, ("other", "embedded", "timeout")): unjudged,
        }
    )


@given(counts, counts, counts, counts)
def test_balanced_counters_violate_nothing(judged: int, unjudged: int, pending: int, passed_over: int) -> None:
    """Judged, unjudged and pending draws add up to the assigned ones."""
    drawn = judged + unjudged + pending
    assert violations(counters(drawn + passed_over, drawn, drawn, judged, unjudged), {"embedded": pending}) == {}


@given(counts, counts, counts, st.integers(1, 5))
def test_one_lost_or_doubled_is_named(judged: int, unjudged: int, pending: int, off: int) -> None:
    """A draw too many or too few in any column is a violation."""
    drawn = judged + unjudged + pending + off
    violated = violations(counters(drawn, drawn, drawn, judged, unjudged), {"embedded": pending})
    assert list(violated) == [Invariant.ASSIGNED_ARE_SETTLED_OR_PENDING]
    assert f"{drawn} assigned" in violated[Invariant.ASSIGNED_ARE_SETTLED_OR_PENDING]


def test_more_drawn_than_seen_is_named() -> None:
    """Nothing is drawn that was not seen."""
    assert violations(counters(2, 3, 3, 3, 0), {}) == {Invariant.DRAWN_WERE_SEEN: "3 drawn of 2 seen"}


def test_a_judge_with_work_and_no_assignment_is_named() -> None:
    """Work that nobody assigned is as wrong as work that is gone."""
    assert list(violations(Counter(), {"ghost": 1})) == [Invariant.ASSIGNED_ARE_SETTLED_OR_PENDING]
