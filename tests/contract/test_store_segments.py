"""The contract of `ports.Store` about segments: they come back with the score rows, and their sums add up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from support.kit import AT, JUDGE, a_claim, a_draw, a_reading, a_verdict, an_admission, an_evidence, an_unjudged

from ragwatch.core.estimate import Addends
from ragwatch.core.sample import Context
from ragwatch.core.segments import NO_STEP, STEP
from ragwatch.core.tally import Tally
from ragwatch.ports import Query, Retention, SegmentQuery, Store

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


BAD = an_evidence(a_claim((0, 0)))
ASKED = SegmentQuery("release", "faithfulness", "search", JUDGE, a_reading().version, AT - 800, AT, steps=4, limit=100)


def fill(store: Store) -> None:
    """Settle answers of two releases in different steps of time; what `ASKED` leaves out is bad, and of v1."""
    kinds = (
        ("a", "v1", -800.0, 0.5, None, "search"),
        ("b", "v1", -601.0, 0.25, BAD, "search"),
        ("c", "v1", -200.0, 1.0, None, "search"),
        ("d", "v2", -1.0, 1.0, BAD, "search"),
        ("e", None, -1.0, 1.0, None, "search"),
        ("late", "v1", 0.0, 1.0, BAD, "search"),
        ("early", "v1", -801.0, 1.0, BAD, "search"),
        ("route", "v1", -1.0, 1.0, BAD, "faq"),
    )
    draws = [
        replace(a_draw(name, at=AT + at, probability=share, route=route), segments=(("release", value),))
        for name, value, at, share, _, route in kinds
    ]
    unread, other = (replace(a_draw(name, at=AT - 1), segments=(("release", "v1"),)) for name in ("u", "o"))
    store.admit(an_admission(*draws, unread, other))
    store.settle([a_verdict(draw, kind[4]) for draw, kind in zip(draws, kinds, strict=True)])
    store.settle([an_unjudged(unread), a_verdict(other, BAD, replace(a_reading(), version="0"))])


def test_sums_of_segments_by_step_of_time(store: Store) -> None:
    """Scores, answers before sampling, and stages at fault: of one route, judge, version and time, by value."""
    fill(store)
    rows = {(row.value, row.step): row for row in store.segments(ASKED)}
    assert set(rows) == {("v1", 0), ("v1", 3), ("v2", 3), (None, 3)}
    first = rows["v1", 0]
    assert first.scores == Addends.of([(0.0, 0.25), (1.0, 0.5)])
    assert (first.answers, first.weight, first.staged, first.failing) == (2, 6.0, 6.0, 4.0)
    assert sum(first.faults.values()) == 1
    assert (rows["v2", 3].failing, rows[None, 3].failing) == (1.0, 0.0)
    assert store.segments(replace(ASKED, key="tier", limit=1))[0].value is None
    assert sum(row.answers for row in store.segments(replace(ASKED, limit=3))) == 3
    unscored = store.segments(replace(ASKED, quantity="polite_tone"))
    assert {(row.scores, row.value is None or row.answers > 0) for row in unscored} == {(Addends(), True)}
    store.prune(Retention(days=1, failing_days=1, bytes=1 << 30), now=AT + 9 * 86400.0)
    assert store.segments(ASKED) == []


@pytest.mark.parametrize(
    ("measure", "expected"),
    [("used", {"bm25": [1.0], "dense": [0.0], NO_STEP: []}), ("ignored", {"bm25": [0.0], "dense": [1.0], NO_STEP: []})],
)
def test_sums_of_retrieval_steps(store: Store, measure: str, expected: dict[str, list[float]]) -> None:
    """Which step returned what was used: answers without steps, and those of which nothing is known, are left out."""
    contexts = (Context("Cats purr.", "d1", None, "bm25"), Context("Dogs bark.", "d2", None, "dense"))
    known = replace(a_draw("a", at=AT - 1, contexts=contexts), segments=())
    plain, abstained = a_draw("b", at=AT - 1), a_draw("c", at=AT - 1, contexts=contexts)
    mixed = a_draw("d", at=AT - 500, contexts=(contexts[0], Context("Dogs bark.", "d2")))
    store.admit(an_admission(known, plain, abstained, mixed))
    store.settle([a_verdict(known), a_verdict(plain), a_verdict(abstained, an_evidence()), a_verdict(mixed)])
    rows = store.segments(replace(ASKED, key=STEP, quantity=measure))
    last = {row.value: row.scores for row in rows if row.step == 3}
    assert last == {step: Addends.of((x, 1.0) for x in expected[step]) for step in ("bm25", "dense")}
    assert {row.value: row.answers for row in rows if row.step < 3} == {"bm25": 1, NO_STEP: 1}
    assert all(row.failing == 0.0 for row in rows)
