"""Evidence checks its own shape, so that no arithmetic meets a torn matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from support.kit import a_claim, an_evidence

from ragwatch.core.evidence import Cell, Claim, ClaimVerdict, ContextReading, Evidence, ReferenceClaim


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ReferenceClaim("so", 0, 2, (True,), quotes=("so", "so")), "2 quotes for 1 contexts"),
        (lambda: a_claim(support=1.5), "support must be in"),
        (lambda: a_claim(support=float("nan")), "support must be in"),
        (lambda: a_claim(start=3), "both offsets or none"),
        (lambda: a_claim(end=3), "both offsets or none"),
        (lambda: a_claim(start=3, end=3), "do not enclose text"),
        (lambda: a_claim(start=-1, end=3), "do not enclose text"),
        (lambda: a_claim((1, 0), "contradicted"), "a context supports the claim"),
        (lambda: a_claim((0, 1), "not_in_context"), "a context supports the claim"),
        (lambda: a_claim((1, 0), said_by_user=True), "a claim that only repeats the user cannot be supported"),
        (lambda: a_claim((0, 0), "supported"), "no support set"),
        (lambda: replace(a_claim(), cells=(Cell.INFORMED, None)), "only informed"),
        (lambda: replace(a_claim(), cells=(Cell.JOINTLY, None)), "only if there are several"),
        (lambda: replace(a_claim(), cells=(Cell.JOINTLY, Cell.ALONE)), "only if there are several"),
        (lambda: replace(a_claim(), cells=("elsewhere", None)), "is not a valid Cell"),
        (lambda: ContextReading(None, relevance=-0.1), "relevance must be in"),
        (lambda: ContextReading(None, sentences=3), "both counted or neither"),
        (lambda: ContextReading(None, relevant_sentences=3), "both counted or neither"),
        (lambda: ContextReading(None, sentences=2, relevant_sentences=3), "3 relevant of 2"),
        (lambda: ContextReading(None, sentences=2, relevant_sentences=-1), "-1 relevant of 2"),
        (lambda: an_evidence((1, 0), (1,)), "claim 1 has 1 cells for 2 contexts"),
        (lambda: ReferenceClaim("c", -1, 3, ()), "do not enclose text"),
        (lambda: ReferenceClaim("c", 3, 3, ()), "do not enclose text"),
        (
            lambda: an_evidence(
                reference=(ReferenceClaim("c", 0, 1, (True, False)), ReferenceClaim("c", 0, 1, (True,)))
            ),
            "reference claim 1 has 1 cells for 2 contexts",
        ),
    ],
)
def test_torn_evidence_is_refused(make: Callable[[], object], message: str) -> None:
    """What contradicts itself is an error of the judge, found where it is made."""
    with pytest.raises(ValueError, match=message):
        make()


def test_whole_evidence() -> None:
    """Offsets, probabilities and counts at their limits are legal."""
    claim = a_claim((0, 1), start=0, end=1, support=1.0)
    column = ContextReading(None, 0.0, 2, 2)
    result = Evidence((claim,), (column, column))
    assert (claim.contexts, result.used, result.abstained) == ((1,), (False, True), False)


@pytest.mark.parametrize(
    ("cells", "supporting", "support_set", "uses"),
    [
        (("alone", None, "alone"), (0, 2), (0,), (0,)),
        ((None, "jointly", "jointly"), (1, 2), (1, 2), (1, 2)),
        (("informed", None, "informed"), (), (), (0, 2)),
        ((None, None, None), (), (), ()),
        ((False, True, True), (1, 2), (1,), (1,)),
    ],
)
def test_cells_say_what_is_used(
    cells: tuple[Any, ...], supporting: tuple[int, ...], support_set: tuple[int, ...], uses: tuple[int, ...]
) -> None:
    """The best of several that support alone, all that support jointly, or what informed a claim without support."""
    claim = Claim("c", None, None, ClaimVerdict.SUPPORTED if supporting else ClaimVerdict.CONTRADICTED, cells)
    assert (claim.contexts, claim.support_set, claim.uses) == (supporting, support_set, uses)
    used = Evidence((claim,), (ContextReading(None),) * 3).used
    assert used == tuple(rank in uses for rank in range(3))


def test_abstention() -> None:
    """Only the address says that an answer abstains."""
    assert [an_evidence(address=each).abstained for each in ("abstained", "not_at_all", None)] == [True, False, False]
