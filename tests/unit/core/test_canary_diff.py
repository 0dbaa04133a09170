"""What changed since the last good run."""

from __future__ import annotations

import pytest
from support.canaries import a_canary, a_failure, a_reply, a_report, a_text

from ragwatch.core.canary.definition import Category, Hit, Retrieved
from ragwatch.core.canary.history import CanaryDiff, RankChange, diff
from ragwatch.core.canary.report import CanaryReport

CANARY = a_canary("a", "b", min_recall=0.5)
GOOD = a_report(CANARY, a_reply("a", "x", "b"))


def changed(before: CanaryReport, after: CanaryReport) -> CanaryDiff:
    """A diff that there must be."""
    change = diff(before, after)
    assert change is not None
    return change


def test_nothing_changed() -> None:
    """A run equals itself."""
    change = changed(GOOD, GOOD)
    assert (change.vanished, change.moved, change.newcomers, change.shift) == ((), (), (), 0.0)


def test_which_vanished_and_what_came_instead() -> None:
    """`a` led; now `y`, which was not there before, stands at its rank."""
    change = changed(GOOD, a_report(CANARY, a_reply("y", "x", "b")))
    new = Hit("y", "Text of y.", 0.9)
    assert (change.canary, change.vanished) == ("refunds", (RankChange("a", 1, None, new),))
    assert (change.moved, change.newcomers) == ((), ((1, new),))


def test_the_last_rank_has_a_successor_too() -> None:
    """`b` was third of three; another passage is."""
    (move,) = changed(GOOD, a_report(CANARY, a_reply("a", "x", "z"))).vanished
    assert move.instead is not None
    assert (move.label, move.instead.id) == ("b", "z")


def test_a_shorter_reply_puts_nothing_in_its_place() -> None:
    """There is no third passage any more."""
    change = changed(GOOD, a_report(CANARY, a_reply("a", "x")))
    assert change.vanished == (RankChange("b", 3, None, None),)


def test_moves_up_and_back_in() -> None:
    """Ranks then and now; one that was missing and is found moved from nowhere."""
    before = a_report(CANARY, a_reply("x", "y", "a"))
    change = changed(before, a_report(CANARY, a_reply("a", "b", "x")))
    assert [(move.label, move.before, move.after) for move in change.moved] == [("a", 3, 1), ("b", None, 2)]
    assert [rank for rank, _ in change.newcomers] == [2]


def test_scores_shift() -> None:
    """The spread of the top k on both sides, and the change of its median."""
    change = changed(GOOD, a_report(CANARY, a_reply("a", "x", "b", scores=[0.5, 0.4, 0.0])))
    assert change.scores_after is not None
    assert (change.scores_after.low, change.scores_after.median, change.scores_after.high) == (
        0.0,
        0.4,
        0.5,
    )
    assert change.shift == pytest.approx(0.4 - 0.8)


@pytest.mark.parametrize("scores", [[0.9, None, 0.1], [None, None, None]])
def test_a_missing_score_leaves_the_shift_unknown(scores: list[float | None]) -> None:
    """A spread of half the passages would be another quantity."""
    odd = a_report(CANARY, a_reply("a", "x", "b", scores=scores))
    assert (changed(GOOD, odd).shift, changed(odd, GOOD).shift) == (None, None)
    assert changed(odd, GOOD).scores_after is not None


def test_an_empty_reply_has_no_spread() -> None:
    """No passages, no scores."""
    assert changed(GOOD, a_report(CANARY, a_reply())).scores_after is None


@pytest.mark.parametrize("pair", [(GOOD, a_report(CANARY, a_failure())), (a_report(CANARY, a_failure()), GOOD)])
def test_a_failed_run_is_compared_with_nothing(pair: tuple[CanaryReport, CanaryReport]) -> None:
    """A dead endpoint has not lost its contexts."""
    assert diff(*pair) is None


def test_an_edited_canary_is_compared_in_what_it_still_expects() -> None:
    """`b` is no longer expected, `c` was not asked for before: neither has moved."""
    edited = a_report(a_canary("a", "c", min_recall=0.5), a_reply("x", "a", "c"))
    change = changed(GOOD, edited)
    assert [(move.label, move.before, move.after) for move in (*change.vanished, *change.moved)] == [("a", 1, 2)]


def test_negative_canaries_have_newcomers_only() -> None:
    """They expect nothing that could vanish; what was found is new."""
    negative = a_canary(category=Category.NEGATIVE)
    change = changed(a_report(negative, a_reply()), a_report(negative, a_reply("x")))
    assert (change.vanished, change.moved, [hit.id for _, hit in change.newcomers]) == ((), (), ["x"])


def test_passages_without_ids_are_told_apart_by_text() -> None:
    """The same text is no newcomer."""
    texts = [Hit(None, "One."), Hit(None, "Two.")]
    negative = a_canary(category=Category.NEGATIVE)
    before, after = Retrieved((texts[0],)), Retrieved(tuple(texts))
    change = changed(a_report(negative, before), a_report(negative, after))
    assert change.newcomers == ((2, texts[1]),)


def test_texts_that_begin_alike_are_told_apart() -> None:
    """Passages of one document share their heading: which of two is gone is told all the same."""
    heading = "Terms and conditions, chapter three, as of the first of January: "
    texts = [f"{heading}refunds.", f"{heading}returns."]
    canary = a_canary(*map(a_text, texts))
    same = {"similar": lambda one, other: float(one == other)}
    both = Retrieved(tuple(Hit(text=passage) for passage in texts))
    before, after = (a_report(canary, reply, **same) for reply in (both, Retrieved(both.hits[1:])))
    change = diff(before, after)
    assert change is not None
    assert [(move.before, move.after) for move in change.vanished] == [(1, None)]
    assert [(move.before, move.after) for move in change.moved] == [(2, 1)]
