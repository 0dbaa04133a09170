"""The contract of `ports.Store` about retention: what is left of a time from which something was taken is no sample."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.kit import AT, a_draw, a_verdict, an_admission, an_evidence, an_unjudged

from ragwatch.ports import Query, Retention, Store

DAY = 86400.0
AGES = Retention(days=30, failing_days=90, bytes=1 << 40)
GOOD, BAD = an_evidence((1, 0)), an_evidence((0, 0))


def settle(store: Store, name: str, evidence: object = GOOD, *, at: float = AT) -> None:
    """Admit and settle one draw; evidence None leaves it unjudged."""
    draw = a_draw(name, at=at)
    store.admit(an_admission(draw))
    store.settle([an_unjudged(draw) if evidence is None else a_verdict(draw, evidence)])  # type: ignore[arg-type]


def test_what_retention_leaves_of_a_time_is_in_no_window(opened: Callable[[], Store]) -> None:
    """Failures outlive successes: their mean is nobody's. Younger answers count, and older ones that are settled since.

    So it is after a restart, too.
    """
    store = opened()
    for age in (31, 40):
        for name, evidence in (("good", GOOD), ("bad", BAD), ("missed", None)):
            settle(store, f"{name}{age}", evidence, at=AT - age * DAY)
    settle(store, "young", at=AT - 20 * DAY)
    assert store.pruned_until() < 0.0
    assert store.prune(AGES, now=AT) == 2
    assert (len(store.find(Query())), store.pruned_until()) == (5, AT - 31 * DAY)
    settle(store, "late", BAD, at=AT - 35 * DAY)
    assert [row.at for row in store.window(0, 0.0, 10)] == [AT - 20 * DAY, AT - 35 * DAY]
    store = opened()
    assert [row.at for row in store.window(0, 0.0, 10)] == [AT - 20 * DAY, AT - 35 * DAY]
    assert store.pruned_until() == AT - 31 * DAY


def test_size_takes_the_rest_of_a_time_out_of_windows(opened: Callable[[], Store]) -> None:
    """Where there is room for failures only, what is kept says nothing of how often they are; what comes next does.

    A clock that was ahead when it was taken hides nothing for longer than until it is right.
    """
    store = opened()
    settle(store, "good", at=AT - 60.0)
    settle(store, "of tomorrow", at=AT + DAY)
    store.prune(Retention(1e6, 1e6, 1), now=AT)
    assert (store.window(0, 0.0, 10), store.pruned_until()) == ([], AT)
    settle(store, "next", at=AT + 1.0)
    assert [row.at for row in opened().window(0, 0.0, 10)] == [AT + 1.0]


@pytest.mark.parametrize("part", [0.1234567, 0.7654321, 0.5000004, 0.9999996])
def test_no_moment_of_what_was_taken_comes_back(opened: Callable[[], Store], part: float) -> None:
    """Whatever the digits of a time: answers of the very moment of the last one that was taken are left out too."""
    store = opened()
    settle(store, "good", at=AT - 31 * DAY + part)
    settle(store, "bad", BAD, at=AT - 31 * DAY + part)
    assert store.prune(AGES, now=AT + 5.0) == 1
    assert store.pruned_until() >= AT - 31 * DAY + part
    assert store.window(0, 0.0, 10) == []
