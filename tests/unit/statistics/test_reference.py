"""Scores against a reference: recall by its claims, correctness, precision; undefined is None, never a number."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.kit import a_claim, an_evidence

from ragwatch.model.evidence import Evidence, ReferenceClaim
from ragwatch.model.quantities import ReferenceQuantity
from ragwatch.statistics.reference import (
    context_f1,
    context_precision_with_reference,
    context_recall,
    correctness,
    score_by_reference,
)

ROWS = st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), max_size=6)


def a_known(*cells: int, in_answer: bool | None = None) -> ReferenceClaim:
    """A claim of the reference."""
    return ReferenceClaim("Cats purr.", 0, 10, tuple(map(bool, cells)), in_answer)


def an_evidence_with(
    *known: ReferenceClaim, said: tuple[bool | None, ...] = (), address: str | None = "fully"
) -> Evidence:
    """Evidence of two contexts with these claims of the reference; `said`: is each claim of the answer in it?"""
    rows = [a_claim((0, 0), in_reference=flag) for flag in said]
    return replace(an_evidence(*rows, address=address), reference=known)


@pytest.mark.parametrize(
    ("said", "known", "expected"),
    [
        ((True, True), (True,), 1.0),
        ((True, False), (True, True), 2 / 3),
        ((True, False), (True, False, False, False), 1 / 3),
        ((False,), (False,), 0.0),
        ((True,), (False,), 0.0),
    ],
)
def test_correctness_is_the_harmonic_mean(said: tuple[bool, ...], known: tuple[bool, ...], expected: float) -> None:
    """F1 of the two shares; both zero give zero."""
    evidence = an_evidence_with(*(a_known(0, 0, in_answer=flag) for flag in known), said=said)
    assert correctness(evidence) == pytest.approx(expected)


@pytest.mark.parametrize(
    "evidence",
    [
        an_evidence((1, 0)),
        an_evidence_with(said=(True,)),
        an_evidence_with(a_known(1, 0, in_answer=True)),
        an_evidence_with(a_known(1, 0), said=(True,)),
        an_evidence_with(a_known(1, 0, in_answer=True), said=(True, None)),
        an_evidence_with(a_known(1, 0, in_answer=True), said=(True,), address="abstained"),
    ],
)
def test_undefined_correctness_is_none(evidence: Evidence) -> None:
    """No reference, no claim on a side, one unread, or an abstention."""
    assert correctness(evidence) is None


def test_without_a_reference_nothing_is_known() -> None:
    """Neither None nor an empty reference has any score; without contexts there is recall, but no precision or F1."""
    nothing = dict.fromkeys(ReferenceQuantity)
    assert score_by_reference(an_evidence((1, 0))) == nothing
    assert score_by_reference(an_evidence_with()) == nothing
    bare = Evidence((), (), reference=(a_known(),))
    assert (context_recall(bare), context_precision_with_reference(bare), context_f1(bare)) == (0.0, None, None)


@pytest.mark.parametrize(
    ("rows", "recall", "precision", "f1"),
    [
        (((1, 0), (0, 0)), 0.5, 1.0, 2 / 3),
        (((0, 0),), 0.0, 0.0, 0.0),
        (((0, 1), (0, 1)), 1.0, 0.5, 2 / 3),
        (((1, 0), (0, 1), (1, 1), (0, 0)), 0.75, 1.0, 6 / 7),
    ],
)
def test_contexts_by_a_reference(rows: tuple[tuple[int, int], ...], recall: float, precision: float, f1: float) -> None:
    """Recall is the share that any context supports, precision weighs ranks; F1 is 0 where both are 0."""
    evidence = an_evidence_with(*(a_known(*row) for row in rows))
    assert (context_recall(evidence), context_precision_with_reference(evidence)) == (recall, precision)
    assert context_f1(evidence) == pytest.approx(f1)


@given(ROWS, st.lists(st.booleans(), max_size=6))
def test_every_score_is_a_ratio_or_none(rows: list[tuple[bool, bool, bool]], said: list[bool]) -> None:
    """In [0, 1] whatever was read; all right gives 1, and one more right claim never lowers recall."""
    known = tuple(a_known(first, second, in_answer=third) for first, second, third in rows)
    evidence = an_evidence_with(*known, said=tuple(said))
    scores = score_by_reference(evidence)
    assert all(score is None or 0.0 <= score <= 1.0 for score in scores.values())
    if rows:
        more = replace(evidence, reference=(*known, a_known(1, 0, in_answer=True)))
        assert (context_recall(more) or 0.0) >= (context_recall(evidence) or 0.0)
        assert (correctness(evidence) is None) == (not said)


def test_claims_of_several_facts_count_for_these() -> None:
    """As if they stood there one by one."""
    known = replace(a_known(1, 0, in_answer=True), facts=3), a_known(0, 0, in_answer=False)
    assert context_recall(an_evidence_with(*known)) == 0.75
    evidence = an_evidence(a_claim((0, 0), in_reference=True, facts=2), a_claim((0, 0), in_reference=False))
    assert correctness(replace(evidence, reference=known)) == pytest.approx(2 * (2 / 3) * 0.75 / (2 / 3 + 0.75))
