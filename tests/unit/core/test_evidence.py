"""Evidence checks its own shape, so that no arithmetic meets a torn matrix."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.kit import a_claim, an_evidence

from ragwatch.core.evidence import ContextReading, Evidence, ShapeError


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: a_claim(support=1.5), "support must be in"),
        (lambda: a_claim(support=float("nan")), "support must be in"),
        (lambda: a_claim(start=3), "both offsets or none"),
        (lambda: a_claim(end=3), "both offsets or none"),
        (lambda: a_claim(start=3, end=3), "do not enclose text"),
        (lambda: a_claim(start=-1, end=3), "do not enclose text"),
        (lambda: a_claim((1, 0), "contradicted"), "a context supports the claim"),
        (lambda: a_claim((0, 1), "not_in_context"), "a context supports the claim"),
        (lambda: a_claim((1, 0), said_by_user=True), "a claim that only repeats the user cannot be supported"),
        (lambda: ContextReading(None, relevance=-0.1), "relevance must be in"),
        (lambda: ContextReading(None, sentences=3), "both counted or neither"),
        (lambda: ContextReading(None, relevant_sentences=3), "both counted or neither"),
        (lambda: ContextReading(None, sentences=2, relevant_sentences=3), "3 relevant of 2"),
        (lambda: ContextReading(None, sentences=2, relevant_sentences=-1), "-1 relevant of 2"),
        (lambda: an_evidence((1, 0), (1,)), "claim 1 has 1 cells for 2 contexts"),
    ],
)
def test_torn_evidence_is_refused(make: Callable[[], object], message: str) -> None:
    """What contradicts itself is an error of the judge, found where it is made."""
    with pytest.raises(ShapeError, match=message):
        make()


def test_whole_evidence() -> None:
    """Offsets, probabilities and counts at their limits are legal."""
    claim = a_claim((0, 1), start=0, end=1, support=1.0)
    column = ContextReading(None, 0.0, 2, 2)
    result = Evidence((claim,), (column, column))
    assert (claim.contexts, result.used, result.abstained) == ((1,), (False, True), False)


def test_supported_without_a_cell_is_legal() -> None:
    """Contexts may support a claim together though none does alone."""
    assert a_claim((0, 0), "supported").contexts == ()


def test_abstention() -> None:
    """Only the address says that an answer abstains."""
    assert [an_evidence(address=each).abstained for each in ("abstained", "not_at_all", None)] == [True, False, False]
