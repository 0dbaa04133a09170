"""Canary reports: every way in which a reply succeeds, degrades or says nothing."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Any

import pytest
from support.canaries import a_canary, a_failure, a_reply, a_report, a_text

from ragwatch.core.canary.definition import Category, Expected, Failure, Hit, Retrieved
from ragwatch.core.canary.report import CanaryOutcome

NEGATIVE = a_canary(category=Category.NEGATIVE, name="cooking")


def alike(one: str, other: str) -> float:
    """A similarity of the standard library."""
    return SequenceMatcher(None, one, other).ratio()


@pytest.mark.parametrize(
    ("canary", "retrieved", "reason"),
    [
        (a_canary("a"), a_reply("a"), None),
        (a_canary("a", "b"), a_reply("x", "b", "a"), None),
        (a_canary("a"), a_reply("x", "y"), "missing_from_top_k"),
        (a_canary("a"), a_reply(), "missing_from_top_k"),
        (a_canary("a", "b"), a_reply("a", "x"), "missing_from_top_k"),
        (a_canary("a", "b", min_recall=0.5), a_reply("a", "x"), None),
        (a_canary("a", "b", min_recall=0.5), a_reply("x"), "missing_from_top_k"),
        (a_canary("a"), a_reply("x", "x", "x", "x", "x", "a"), "missing_from_top_k"),
        (a_canary("a", min_relevance_score=0.9), a_reply("a"), None),
        (a_canary("a", min_relevance_score=0.91), a_reply("a"), "below_min_score"),
        (a_canary("a", min_relevance_score=0.85), a_reply("x", "a"), "below_min_score"),
        (a_canary("a", "b", min_relevance_score=0.85), a_reply("a", "b"), None),
        (a_canary("a", min_relevance_score=0.3), a_reply("a", scores=[0.3], direction="distance"), None),
        (
            a_canary("a", min_relevance_score=0.3),
            a_reply("a", scores=[0.31], direction="distance"),
            "below_min_score",
        ),
        (a_canary("a", min_relevance_score=0.3), a_reply("a", direction=None), "failed:no_scores"),
        (a_canary("a", min_relevance_score=0.3), a_reply("a", scores=[None]), "failed:no_scores"),
        (a_canary("a"), a_reply("a", scores=[None], direction=None), None),
        (NEGATIVE, a_reply(), None),
        (NEGATIVE, a_reply("x"), "found_for_negative"),
        (a_canary("a"), a_failure("timeout"), "failed:timeout"),
        (NEGATIVE, a_failure("status"), "failed:status"),
    ],
)
def test_outcomes(canary: Any, retrieved: Retrieved, reason: str | None) -> None:
    """Success exactly where there is no reason; degraded only where the retriever answered."""
    report = a_report(canary, retrieved)
    assert report.reason == reason
    assert report.success is (reason is None)
    assert report.degraded is (reason is not None and not reason.startswith("failed:"))


@pytest.mark.parametrize(
    ("retrieved", "reason"),
    [
        (a_reply("x", scores=[0.79]), None),
        (a_reply("x", "y", scores=[0.79, 0.8]), "found_for_negative"),
        (a_reply("x", scores=[0.8], direction="distance"), "found_for_negative"),
        (a_reply("x", scores=[0.81], direction="distance"), None),
        (a_reply("x", "y", scores=[None, 0.9]), "found_for_negative"),
        (a_reply("x", "y", scores=[None, 0.1]), "failed:no_scores"),
        (a_reply("x", direction=None), "failed:no_scores"),
    ],
)
def test_negative_canaries_with_a_score(retrieved: Retrieved, reason: str | None) -> None:
    """A vector store always returns something: only what reaches the score is a find."""
    negative = a_canary(category=Category.NEGATIVE, min_relevance_score=0.8)
    assert a_report(negative, retrieved).reason == reason


def test_ranks_and_scores_are_those_of_expected_contexts() -> None:
    """In the order in which they are expected."""
    report = a_report(a_canary("a", "b", "c", min_recall=0.5), a_reply("x", "b", "a"))
    assert (report.ranks, report.scores) == ((3, 2, None), (pytest.approx(0.7), pytest.approx(0.8), None))


def test_what_is_behind_the_cutoff_does_not_count() -> None:
    """Nor is it kept."""
    report = a_report(a_canary("a"), a_reply("x", "a"), 1)
    assert (report.reason, len(report.retrieved.hits), report.ranks) == ("missing_from_top_k", 1, (None,))


def test_a_failure_invents_no_ranking() -> None:
    """No ranks, no scores, and the call's seconds and detail are kept."""
    report = a_report(a_canary("a"), a_failure())
    assert (report.ranking, report.ranks, report.scores) == (None, (), ())
    assert (report.retrieved.seconds, report.retrieved.detail) == (10.0, "no reply")


def test_texts_are_matched_by_similarity() -> None:
    """The expected text came back with another ending."""
    retrieved = Retrieved((Hit("x", "Prices rose."), Hit("y", "Cats sleep all day!")))
    report = a_report(a_canary(a_text("Cats sleep all day.")), retrieved, similar=alike, tau=0.9)
    assert (report.success, report.ranks) == (True, (2,))


def test_texts_may_match_across() -> None:
    """One passage covers two expected texts, two passages one."""
    canary = a_canary(a_text("a"), a_text("b", 2))
    retrieved = Retrieved((Hit("x", "ab"), Hit("y", "b")))
    report = a_report(canary, retrieved, similar=lambda one, other: float(other in one))
    assert report.ranking is not None
    assert (report.ranking.hits, report.ranks) == (((0, 1), (1,)), (1, 1))


def test_tau_itself_is_enough() -> None:
    """In a canary as in `core.ranking`."""
    canary, retrieved = a_canary(a_text("Cats.")), Retrieved((Hit("x", "Cats!"),))
    assert [a_report(canary, retrieved, similar=lambda *_: 0.5, tau=tau).success for tau in (0.5, 0.51)] == [
        True,
        False,
    ]


def test_an_id_wins_over_its_text() -> None:
    """The text beside an id is for oracle runs; it is compared with nothing."""
    report = a_report(a_canary(Expected("a", "Text of x.")), a_reply("x"))
    assert report.outcome is CanaryOutcome.MISSING_FROM_TOP_K


def test_a_repeated_id_is_found_once_and_a_repeated_text_twice() -> None:
    """A retriever that repeats itself gains nothing by ids; passages that overlap may both hold a text."""
    retrieved = Retrieved((Hit("a", "Cats sleep."), Hit("a", "Cats sleep.")))
    by_id = a_report(a_canary("a"), retrieved)
    by_text = a_report(a_canary(a_text("Cats sleep.")), retrieved, similar=alike)
    assert by_id.ranking is not None
    assert by_text.ranking is not None
    assert (by_id.ranking.relevant, by_text.ranking.relevant) == ((True, False), (True, True))


@pytest.mark.parametrize(
    ("canary", "hit", "failure"),
    [
        (a_canary("a"), Hit(None, "Cats sleep."), Failure.NO_IDS),
        (a_canary(a_text("Cats sleep.")), Hit("a", None), Failure.NO_TEXTS),
        (a_canary("a", a_text("Dogs bark.")), Hit("a", None), Failure.NO_TEXTS),
    ],
)
def test_a_reply_that_cannot_be_compared_is_no_miss(canary: Any, hit: Hit, failure: Failure) -> None:
    """The expected context may be there unseen: that is counted as such, and no recall is invented."""
    report = a_report(canary, Retrieved((hit,)), similar=alike)
    assert (report.failure, report.degraded, report.ranking) == (failure, False, None)


@pytest.mark.parametrize(
    ("canary", "hits", "detail"),
    [
        (a_canary("a"), [("b", "x"), (None, "y"), ("a", "z")], "contexts[1].id: is missing, and the canary expects"),
        (a_canary(a_text("z")), [("b", None), ("a", "z")], "contexts[0].text: is missing, and the canary expects"),
    ],
)
def test_what_cannot_be_compared_is_named(canary: Any, hits: list[tuple[str | None, str | None]], detail: str) -> None:
    """The first passage that lacks the field, by its place in the reply."""
    retrieved = Retrieved(tuple(Hit(*hit) for hit in hits), seconds=2.0)
    report = a_report(canary, retrieved, similar=alike)
    assert report.retrieved.detail.startswith(detail)
    assert (report.retrieved.hits, report.retrieved.seconds) == (retrieved.hits, 2.0)


def test_an_empty_reply_can_be_compared() -> None:
    """Nothing came, so nothing is there unseen."""
    assert a_report(a_canary(a_text("Cats.")), Retrieved(), similar=alike).reason == "missing_from_top_k"


def test_texts_need_a_way_to_compare_them() -> None:
    """A wiring mistake is told, not counted as a miss."""
    with pytest.raises(ValueError, match="needs a way to compare"):
        a_report(a_canary(a_text("Cats.")), Retrieved((Hit("a", "Cats."),)))


def test_the_cutoff_begins_at_one() -> None:
    """Top 0 is nothing."""
    with pytest.raises(ValueError, match="cutoff must be 1 or more"):
        a_report(a_canary("a"), a_reply("a"), 0)
