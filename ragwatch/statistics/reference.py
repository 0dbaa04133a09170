"""Scores answers and contexts against a reference: a known good answer, which canaries and offline data sets have.

Each score is in [0, 1] or None. None means undefined or unread: no reference, a reference without claims, or a judge
that does not compare. Sources: RAGAS (arXiv 2309.15217 and its documentation) for context recall by claims and context
precision with a reference; RAGChecker (arXiv 2408.08067) for correctness as the F1 of claims that answer and reference
share.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from ragwatch.model.evidence import Evidence, ReferenceClaim
from ragwatch.model.quantities import ReferenceQuantity
from ragwatch.statistics.ranking import f1
from ragwatch.statistics.scores import average_precision


class StatementLine(TypedDict):
    """A claim of the reference as JSON values: `contexts` and `quotes` are those that support it, in one order."""

    text: str
    start: int
    end: int
    supported: bool
    contexts: list[int]
    quotes: list[str | None]
    missing: list[str]
    in_answer: bool | None


_DIGITS = 6


def context_recall(evidence: Evidence) -> float | None:
    """Claims of the reference that a context supports / claims of the reference; 0.0 without contexts."""
    if not evidence.reference:
        return None
    total = sum(claim.facts for claim in evidence.reference)
    return sum(claim.facts for claim in evidence.reference if any(claim.cells)) / total


def correctness(evidence: Evidence) -> float | None:
    """Correctness: F1 of the claims that answer and reference share.

    Precision is the share of the answer's claims that the reference makes too, recall the share of the reference's
    claims that the answer makes too: 2pr / (p + r), and 0.0 if both are 0. None if either side has no claims or is
    unread, and for an abstention.
    """
    if evidence.abstained:
        return None
    precision = _share([(claim.in_reference, claim.facts) for claim in evidence.counted])
    recall = _share([(claim.in_answer, claim.facts) for claim in evidence.reference or ()])
    return f1(precision, recall)


def _share(flags: Sequence[tuple[bool | None, int]]) -> float | None:
    """Weighted share of True; None if there is no flag, or one is None."""
    if not flags or any(flag is None for flag, _ in flags):
        return None
    return sum(weight for flag, weight in flags if flag) / sum(weight for _, weight in flags)


def context_precision_with_reference(evidence: Evidence) -> float | None:
    """Average precision of the contexts that support a claim of the reference; None without contexts."""
    if not evidence.reference:
        return None
    ranks = range(len(evidence.contexts))
    return average_precision([any(claim.cells[rank] for claim in evidence.reference) for rank in ranks])


def context_f1(evidence: Evidence) -> float | None:
    """F1 of the contexts: 2pr / (p + r) of context precision with reference (p) and context recall (r), as in `f1`."""
    return f1(context_precision_with_reference(evidence), context_recall(evidence))


def score_by_reference(evidence: Evidence) -> dict[ReferenceQuantity, float | None]:
    """Computes all scores of one sample that need a reference."""
    return {
        ReferenceQuantity.CONTEXT_RECALL: context_recall(evidence),
        ReferenceQuantity.CORRECTNESS: correctness(evidence),
        ReferenceQuantity.CONTEXT_PRECISION_WITH_REFERENCE: context_precision_with_reference(evidence),
        ReferenceQuantity.CONTEXT_F1: context_f1(evidence),
    }


def reference_line(evidence: Evidence) -> dict[str, float | list[str] | list[StatementLine] | None] | None:
    """Returns what was read with the reference as JSON values; None if nothing was."""
    if evidence.reference is None:
        return None
    scores = {
        str(quantity): None if score is None else round(score, _DIGITS)
        for quantity, score in score_by_reference(evidence).items()
    }
    missing = [claim.text for claim in evidence.reference if not claim.supported]
    return {**scores, "missing": missing, "statements": [statement_line(claim) for claim in evidence.reference]}


def statement_line(claim: ReferenceClaim) -> StatementLine:
    """Returns a claim of the reference as JSON values: which contexts support it, with which words, what is missing."""
    ranks = [rank for rank, cell in enumerate(claim.cells) if cell]
    return {
        "text": claim.text,
        "start": claim.start,
        "end": claim.end,
        "supported": claim.supported,
        "contexts": ranks,
        "quotes": [claim.quotes[rank] if claim.quotes else None for rank in ranks],
        "missing": list(claim.missing),
        "in_answer": claim.in_answer,
    }


def read_statement(line: Mapping[str, Any]) -> StatementLine:
    """Reads back a claim from a verdict line; KeyError, TypeError and ValueError tell that it is none."""
    return {
        "text": str(line["text"]),
        "start": int(line["start"]),
        "end": int(line["end"]),
        "supported": line["supported"] is True,
        "contexts": [int(rank) for rank in line["contexts"]],
        "quotes": [None if quote is None else str(quote) for quote in line["quotes"]],
        "missing": [str(part) for part in line["missing"]],
        "in_answer": line.get("in_answer"),
    }
