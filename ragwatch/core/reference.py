"""Scores against a reference: a known good answer, as canaries and offline sets have it. Live traffic has none.

Each in [0, 1] or None. None means undefined or unread: no reference, a reference that claims nothing, a judge that did
not compare. Sources: RAGAS (arXiv 2309.15217 and its documentation) for context recall by claims and context precision
with a reference; RAGChecker (arXiv 2408.08067) for correctness as the F1 of claims that answer and reference share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType

from ragwatch.core.evidence import Evidence
from ragwatch.core.scores import average_precision


class ReferenceQuantity(StrEnum):
    """Everything that an answer and its contexts are scored on where a reference is known."""

    CONTEXT_RECALL = "context_recall"
    CORRECTNESS = "correctness"
    CONTEXT_PRECISION_WITH_REFERENCE = "context_precision_with_reference"


def context_recall(evidence: Evidence) -> float | None:
    """Claims of the reference that a context supports / claims of the reference. With no context at all: 0.0.

    >>> from ragwatch.core.evidence import ContextReading, ReferenceClaim
    >>> known = [ReferenceClaim("c", 0, 1, (cell,)) for cell in (True, True, True, False)]
    >>> context_recall(Evidence((), (ContextReading(True),), reference=tuple(known)))
    0.75
    """
    if not evidence.reference:
        return None
    return sum(any(claim.cells) for claim in evidence.reference) / len(evidence.reference)


def correctness(evidence: Evidence) -> float | None:
    """F1 of precision (claims of the answer that the reference says too) and recall (the other way round).

    2pr / (p + r), and 0.0 when both are 0. None when either side is empty or unread: an answer that claims nothing has
    no precision. An abstention is a class of its own and has no correctness either.

    >>> from ragwatch.core.evidence import Claim, ClaimVerdict, ReferenceClaim
    >>> said = [Claim("c", None, None, ClaimVerdict.NOT_IN_CONTEXT, (), in_reference=each) for each in (True, False)]
    >>> known = (ReferenceClaim("c", 0, 1, (), in_answer=True),)
    >>> round(correctness(Evidence(tuple(said), (), reference=known)), 4)    # p = 1/2, r = 1
    0.6667
    """
    if evidence.abstained:
        return None
    precision = _share([claim.in_reference for claim in evidence.claims])
    recall = _share([claim.in_answer for claim in evidence.reference or ()])
    if precision is None or recall is None:
        return None
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _share(said: list[bool | None]) -> float | None:
    """Share of yes; None when there is nothing to ask about, or one is unread."""
    if not said or None in said:
        return None
    return sum(each is True for each in said) / len(said)


def context_precision_with_reference(evidence: Evidence) -> float | None:
    """Average precision of the contexts that support a claim of the reference. None with no context.

    >>> from ragwatch.core.evidence import ContextReading, ReferenceClaim
    >>> columns = (ContextReading(None), ContextReading(None))
    >>> context_precision_with_reference(Evidence((), columns, reference=(ReferenceClaim("c", 0, 1, (False, True)),)))
    0.5
    """
    if not evidence.reference:
        return None
    ranks = range(len(evidence.contexts))
    return average_precision([any(claim.cells[rank] for claim in evidence.reference) for rank in ranks])


REFERENCE_SCORES: Mapping[ReferenceQuantity, Callable[[Evidence], float | None]] = MappingProxyType(
    {
        ReferenceQuantity.CONTEXT_RECALL: context_recall,
        ReferenceQuantity.CORRECTNESS: correctness,
        ReferenceQuantity.CONTEXT_PRECISION_WITH_REFERENCE: context_precision_with_reference,
    }
)


def score_by_reference(evidence: Evidence) -> dict[ReferenceQuantity, float | None]:
    """Every such quantity of one sample."""
    return {quantity: score(evidence) for quantity, score in REFERENCE_SCORES.items()}
