"""Scores by hand: every formula on evidence small enough to count on fingers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.kit import a_claim, an_evidence

from ragwatch.core import scores
from ragwatch.core.evidence import Cell, ContextReading, Evidence, ShapeError, UnreadReason
from ragwatch.core.scores import score_all, top_ranked_fault, why_unknown
from ragwatch.model.quantities import Quantity
from ragwatch.model.reasons import UnknownReason

CONTRADICTED = a_claim((0, 0), "contradicted")
TOGETHER = replace(a_claim((1, 1)), cells=(Cell.JOINTLY, Cell.JOINTLY))
MISQUOTED = replace(CONTRADICTED, cells=(Cell.INFORMED, None))


def sentences(*counted: tuple[int, int] | None) -> Evidence:
    """Contexts of which sentences were counted."""
    return Evidence(
        (), tuple(ContextReading(None) if each is None else ContextReading(None, None, *each) for each in counted)
    )


def test_order_of_the_contract() -> None:
    """All quantities are scored, in the order in which the contract names them."""
    assert list(score_all(an_evidence())) == list(Quantity)


@pytest.mark.parametrize(
    ("evidence", "faithful", "contradicted"),
    [
        (an_evidence((1, 0), (0, 0)), 0.5, 0.0),
        (an_evidence((1, 0), (0, 1), (0, 0), CONTRADICTED), 0.5, 0.25),
        (an_evidence(TOGETHER), 1.0, 0.0),
        (an_evidence((0, 0)), 0.0, 0.0),
        (an_evidence(), None, None),
        (an_evidence((0, 0), reads_contradiction=False), 0.0, None),
    ],
)
def test_shares_of_claims(evidence: Evidence, faithful: float | None, contradicted: float | None) -> None:
    """Contradicted and invented claims are both unsupported; a blind judge leaves contradiction unknown."""
    assert (scores.faithfulness(evidence), scores.contradiction(evidence)) == (faithful, contradicted)


@pytest.mark.parametrize(
    ("relevant", "expected"),
    [
        ((True,), 1.0),
        ((False,), 0.0),
        ((False, True), 0.5),
        ((True, False, True), (1 + 2 / 3) / 2),
        ((False, False, False, True), 0.25),
        ((True, None), None),
        ((), None),
    ],
)
def test_context_precision(relevant: tuple[bool | None, ...], expected: float | None) -> None:
    """Average precision over the ranks of relevant contexts; one unread context leaves it unknown."""
    assert scores.context_precision(an_evidence(relevant=relevant)) == expected


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        (sentences((4, 2), (1, 0)), 0.4),
        (sentences((3, 3)), 1.0),
        (sentences((3, 3), None), None),
        (sentences((0, 0)), None),
        (sentences(), None),
    ],
)
def test_context_sentence_precision(evidence: Evidence, expected: float | None) -> None:
    """Sentences count alike wherever they stand; a context that was not counted leaves it unknown."""
    assert scores.context_sentence_precision(evidence) == expected


@pytest.mark.parametrize(
    ("address", "expected"),
    [("fully", 1.0), ("partially", 0.5), ("not_at_all", 0.0), ("abstained", None), (None, None)],
)
def test_answer_relevancy(address: str | None, expected: float | None) -> None:
    """An abstention is a class of its own, not a bad answer."""
    assert scores.answer_relevancy(an_evidence(address=address)) == expected


@pytest.mark.parametrize(
    ("needs", "expected"), [((True, False, False, True), 0.5), ((False,), 0.0), ((), None), (None, None)]
)
def test_need_recall(needs: tuple[bool, ...] | None, expected: float | None) -> None:
    """Sub-questions that the contexts answer; no sub-question is no score."""
    assert scores.need_recall(an_evidence(needs=needs)) == expected


@pytest.mark.parametrize(
    ("evidence", "ignored", "fault", "use"),
    [
        (an_evidence((1, 0)), 0.0, None, 0.5),
        (an_evidence((1, 1)), 0.0, None, 0.5),
        (an_evidence(TOGETHER), 0.0, None, 1.0),
        (an_evidence(MISQUOTED), 0.0, None, 0.5),
        (an_evidence(replace(MISQUOTED, cells=(None, Cell.INFORMED))), 1.0, "generator", 0.5),
        (an_evidence((0, 1), relevant=(False, True)), 1.0, "retriever", 0.5),
        (an_evidence((0, 1)), 1.0, "redundant", 0.5),
        (an_evidence((0, 1), (0, 0)), 1.0, "generator", 0.5),
        (an_evidence((0, 0)), 1.0, "generator", 0.0),
        (an_evidence((0, 1), relevant=(None, True)), 1.0, None, 0.5),
        (an_evidence(), None, None, None),
        (an_evidence((), relevant=()), None, None, None),
        (an_evidence((0, 1), address="abstained"), None, None, None),
    ],
)
def test_top_context(evidence: Evidence, ignored: float | None, fault: str | None, use: float | None) -> None:
    """The first context is ignored when no claim uses it, and the fault says whose doing that was."""
    result = (scores.top_ranked_ignored(evidence), scores.top_ranked_fault(evidence), scores.context_use(evidence))
    assert result == (ignored, fault, use)


@pytest.mark.parametrize(
    ("evidence", "quantity", "expected"),
    [
        (an_evidence((0, 0), reads_contradiction=False), "contradiction", UnknownReason.NOT_READ),
        (an_evidence(reads_claims=False), "faithfulness", UnknownReason.NOT_READ),
        (an_evidence(address="abstained"), "faithfulness", UnknownReason.ABSTAINED),
        (an_evidence(), "faithfulness", UnknownReason.NO_CLAIMS),
        (an_evidence((), relevant=()), "context_use", UnknownReason.NO_CONTEXTS),
        (an_evidence(relevant=()), "context_precision", UnknownReason.NO_CONTEXTS),
        (an_evidence(relevant=(None,)), "context_precision", UnknownReason.NOT_READ),
        (an_evidence(address=None), "answer_relevancy", UnknownReason.NOT_READ),
        (an_evidence(), "need_recall", UnknownReason.NOT_READ),
        (an_evidence(unread=UnreadReason.LANGUAGE), "faithfulness", UnknownReason.LANGUAGE),
        (an_evidence(unread=UnreadReason.LANGUAGE, relevant=(None,)), "context_precision", UnknownReason.LANGUAGE),
        (an_evidence(unread=UnreadReason.LANGUAGE), "need_recall", UnknownReason.NOT_READ),
        (an_evidence(unread=UnreadReason.LANGUAGE, address="abstained"), "faithfulness", UnknownReason.ABSTAINED),
        (an_evidence(unread=UnreadReason.SHORT_ANSWER), "context_use", UnknownReason.SHORT_ANSWER),
        (an_evidence((1, 0)), "faithfulness", None),
    ],
)
def test_why_unknown(evidence: Evidence, quantity: str, expected: UnknownReason | None) -> None:
    """The reason that is counted names the nearest cause."""
    assert why_unknown(evidence, Quantity(quantity)) == expected


def test_what_the_user_stated_is_not_counted() -> None:
    """A claim that only repeats the user neither lowers nor raises a score; with no other claim, there is none."""
    repeated = a_claim((0, 0), said_by_user=True)
    for rows in ([(1, 0)], [(1, 0), (0, 0)], [(0, 1)], [a_claim((0, 0), "contradicted")]):
        plain, more = an_evidence(*rows), an_evidence(*rows, repeated)
        assert score_all(plain) == score_all(more)
        assert top_ranked_fault(plain) == top_ranked_fault(more)
    alone = an_evidence(repeated)
    for quantity in (Quantity.FAITHFULNESS, Quantity.TOP_RANKED_IGNORED, Quantity.CONTEXT_USE):
        assert score_all(alone)[quantity] is None
        assert why_unknown(alone, quantity) is UnknownReason.NO_CLAIMS


def test_a_claim_counts_for_its_facts() -> None:
    """A sentence of three facts that is supported as a whole weighs as three that are supported one by one."""
    whole = an_evidence(a_claim((1, 0), facts=3), (0, 0))
    split = an_evidence((1, 0), (1, 0), (1, 0), (0, 0))
    assert scores.faithfulness(whole) == scores.faithfulness(split) == 0.75
    assert scores.contradiction(an_evidence(a_claim((0, 0), "contradicted"), a_claim((1, 0), facts=3))) == 0.25
    with pytest.raises(ShapeError):
        a_claim((1, 0), facts=0)
