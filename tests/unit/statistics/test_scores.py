"""Scores by hand: every formula on evidence small enough to count on fingers."""

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.kit import a_claim, an_evidence

from ragwatch.model.evidence import (
    Address,
    Cell,
    Claim,
    ClaimVerdict,
    ContextReading,
    Evidence,
    Need,
    ShapeError,
    UnreadReason,
)
from ragwatch.model.quantities import Quantity
from ragwatch.model.quantity_row import UnknownReason
from ragwatch.statistics import scores
from ragwatch.statistics.scores import faithfulness, score_all, top_ranked_fault, why_unknown
from ragwatch.statistics.stage import stage

CONTRADICTED = a_claim((0, 0), "contradicted")
TOGETHER = replace(a_claim((1, 1)), cells=(Cell.JOINTLY, Cell.JOINTLY))
MISQUOTED = replace(CONTRADICTED, cells=(Cell.INFORMED, None))
ORDERLESS = frozenset(
    map(Quantity, ("faithfulness", "contradiction", "context_sentence_precision", "answer_relevancy", "need_recall"))
)


def sentences(*counted: tuple[int, int] | None) -> Evidence:
    """Contexts of which sentences were counted."""
    return Evidence(
        (), tuple(ContextReading(None) if each is None else ContextReading(None, None, *each) for each in counted)
    )


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
    ("score", "evidence", "expected"),
    [
        *(
            (scores.context_precision, an_evidence(relevant=relevant), expected)
            for relevant, expected in (
                ((True,), 1.0),
                ((False,), 0.0),
                ((False, True), 0.5),
                ((True, False, True), (1 + 2 / 3) / 2),
                ((False, False, False, True), 0.25),
                ((True, None), None),  # one that is unread leaves it unknown
                ((), None),
            )
        ),
        (scores.context_sentence_precision, sentences((4, 2), (1, 0)), 0.4),
        (scores.context_sentence_precision, sentences((3, 3)), 1.0),
        (scores.context_sentence_precision, sentences((3, 3), None), None),
        (scores.context_sentence_precision, sentences((0, 0)), None),
        (scores.context_sentence_precision, sentences(), None),
        (scores.answer_relevancy, an_evidence(address="fully"), 1.0),
        (scores.answer_relevancy, an_evidence(address="partially"), 0.5),
        (scores.answer_relevancy, an_evidence(address="not_at_all"), 0.0),
        (scores.answer_relevancy, an_evidence(address="abstained"), None),  # a class of its own, not a bad answer
        (scores.answer_relevancy, an_evidence(address=None), None),
        (scores.need_recall, an_evidence(needs=(True, False, False, True)), 0.5),
        (scores.need_recall, an_evidence(needs=(False,)), 0.0),
        (scores.need_recall, an_evidence(needs=()), None),
        (scores.need_recall, an_evidence(needs=None), None),
    ],
)
def test_one_score_by_hand(score: scores.Score, evidence: Evidence, expected: float | None) -> None:
    """Average precision over ranks, shares of sentences and of sub-questions, and how the question is addressed."""
    assert score(evidence) == expected


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


@st.composite
def claims(draw: st.DrawFn, columns: int) -> Claim:
    """A claim; one that is supported has a support set."""
    word = draw(st.sampled_from(ClaimVerdict))
    mark = Cell.INFORMED
    if word is ClaimVerdict.SUPPORTED:
        mark = draw(st.sampled_from([Cell.ALONE, Cell.JOINTLY] if columns > 1 else [Cell.ALONE]))
    least = 0 if mark is Cell.INFORMED else min(columns, 1 + (mark is Cell.JOINTLY))
    ranks = draw(st.sets(st.integers(0, columns - 1), min_size=least)) if columns else set()
    cells = tuple(mark if rank in ranks else None for rank in range(columns))
    return Claim("c", None, None, word, cells, draw(st.none() | st.floats(0, 1)))


@st.composite
def columns(draw: st.DrawFn) -> ContextReading:
    """A context, counted or not."""
    total = draw(st.none() | st.integers(0, 9))
    counted = (None, None) if total is None else (total, draw(st.integers(0, total)))
    return ContextReading(draw(st.none() | st.booleans()), draw(st.none() | st.floats(0, 1)), *counted)


@st.composite
def evidences(draw: st.DrawFn) -> Evidence:
    """Any evidence that is whole."""
    contexts = tuple(draw(st.lists(columns(), max_size=5)))
    needs = draw(st.none() | st.lists(st.builds(Need, st.just("n?"), st.booleans()), max_size=4))
    return Evidence(
        tuple(draw(st.lists(claims(len(contexts)), max_size=6))),
        contexts,
        draw(st.none() | st.sampled_from(Address)),
        None if needs is None else tuple(needs),
        draw(st.booleans()),
    )


@given(evidences())
def test_scores_are_ratios_or_unknown_with_a_reason(evidence: Evidence) -> None:
    """Every score is in [0, 1] or None, and None exactly when a reason is given."""
    for quantity, score in score_all(evidence).items():
        assert score is None or 0.0 <= score <= 1.0
        assert (score is None) == (why_unknown(evidence, quantity) is not None)


@given(evidences(), st.data())
def test_more_support_never_lowers_faithfulness(evidence: Evidence, data: st.DataObject) -> None:
    """Setting one more cell to `supports` never lowers faithfulness."""
    assume(evidence.claims and evidence.contexts)
    row = data.draw(st.integers(0, len(evidence.claims) - 1))
    rank = data.draw(st.integers(0, len(evidence.contexts) - 1))
    claim = evidence.claims[row]
    better = replace(
        claim,
        verdict=ClaimVerdict.SUPPORTED,
        cells=tuple(
            Cell.ALONE if index == rank or cell is Cell.ALONE else None for index, cell in enumerate(claim.cells)
        ),
    )
    changed = replace(evidence, claims=(*evidence.claims[:row], better, *evidence.claims[row + 1 :]))
    assert (faithfulness(changed) or 0.0) >= (faithfulness(evidence) or 0.0)


@given(evidences(), st.randoms(use_true_random=False))
def test_order_of_claims_means_nothing(evidence: Evidence, rng: object) -> None:
    """Claims in another order leave all scores, stage and fault as they are."""
    rows = list(evidence.claims)
    rng.shuffle(rows)  # type: ignore[attr-defined]
    other = replace(evidence, claims=tuple(rows))
    result = [(score_all(each), stage(each), top_ranked_fault(each)) for each in (evidence, other)]
    assert result[0] == result[1]


@given(evidences(), st.data())
def test_order_of_contexts_moves_only_rank_scores(evidence: Evidence, data: st.DataObject) -> None:
    """Reordering contexts changes only the scores that depend on ranks."""
    order = data.draw(st.permutations(range(len(evidence.contexts))))
    rows = tuple(replace(claim, cells=tuple(claim.cells[rank] for rank in order)) for claim in evidence.claims)
    other = replace(evidence, claims=rows, contexts=tuple(evidence.contexts[rank] for rank in order))
    before, after = score_all(evidence), score_all(other)
    assert {each: after[each] for each in ORDERLESS} == {each: before[each] for each in ORDERLESS}
