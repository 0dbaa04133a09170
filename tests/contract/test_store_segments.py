"""The contract of `ports.Store` about segments: they come back with the score rows, and their sums add up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from support.kit import JUDGE, a_draw, a_verdict, an_admission, an_evidence, an_unjudged

from ragwatch.core.tally import Tally
from ragwatch.ports import Query, Store

PLACE = ("release", "v1", "search", JUDGE)


def test_segments_come_back_with_scores_and_are_counted(opened: Callable[[], Store]) -> None:
    """Values stay with the scores over restarts, sums add up, and a verdict that is settled twice counts once."""
    first, second, third = (replace(a_draw(name, probability=0.5), segments=segments) for name, segments in NAMED)
    store = opened()
    store.admit(an_admission(first, second, third))
    store.settle([a_verdict(first), a_verdict(second), an_unjudged(third)])
    store = opened()
    store.settle([a_verdict(first)])
    rows = {row.key: row for row in store.window(0, 0.0, 9)}
    assert rows[first.key].segments == {"release": "v1"}
    assert rows[second.key].segments == {"release": "v1", "tier": "other"}
    assert rows[third.key].segments == {}
    tallies = store.tallies()
    assert tallies[Tally.SEGMENT_W, ("faithfulness", *PLACE)] == 4.0
    assert tallies[Tally.SEGMENT_JUDGED, PLACE] == 2
    assert tallies[Tally.SEGMENT_UNJUDGED, PLACE] == 1
    assert tallies[Tally.SEGMENT_LEFT_OUT, ("tier", "search", JUDGE)] == 1


def test_scores_without_segments_are_stored_as_ever(store: Store) -> None:
    """Without segments nothing is stored for them, and stored verdicts show quantities only."""
    plain, split = a_draw("a"), replace(a_draw("b"), segments=(("release", "v1"),))
    store.admit(an_admission(plain, split))
    store.settle([a_verdict(plain), a_verdict(split)])
    a, b = (stored.verdict.scores for stored in store.find(Query()))
    assert a == b
    assert [row.segments for row in store.window(0, 0.0, 9)] == [{}, {"release": "v1"}]


def test_the_language_comes_back_with_scores(opened: Callable[[], Store]) -> None:
    """That of a verdict without a measured accuracy, with its row and its line; no other verdict has one."""
    plain, german = a_draw("a"), a_draw("b")
    store = opened()
    store.admit(an_admission(plain, german))
    store.settle([a_verdict(plain), a_verdict(german, an_evidence((1, 0), language="de"))])
    rows = {row.key: row.language for row in opened().window(0, 0.0, 9)}
    assert rows == {plain.key: None, german.key: "de"}
    assert {one.verdict.key: one.verdict.language for one in opened().find(Query())} == rows


NAMED = (
    ("a", (("release", "v1"), ("tier", None))),
    ("b", (("release", "v1"), ("tier", "other"))),
    ("c", (("release", "v1"),)),
)
