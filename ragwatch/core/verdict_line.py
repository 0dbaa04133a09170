"""Verdict line: one verdict as a JSON object, as `ragwatch judge` prints it."""

from __future__ import annotations

from typing import Any

from ragwatch.core.evidence import Claim, Evidence
from ragwatch.core.reference import score_by_reference
from ragwatch.core.scores import Quantity
from ragwatch.core.verdict import Judged, Reading, Verdict

_DIGITS = 6


def verdict_line(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as the object that `ragwatch judge` prints on one line."""
    line: dict[str, Any] = {
        "id": verdict.draw.sample.id,
        "outcome": "judged",
        "reason": None,
        "scores": dict.fromkeys(map(str, Quantity)),
        "stage": None,
        "fault": None,
        "claims": [],
        "contexts": [],
        "missing": [],
        "address": None,
        "reference": None,
        "judge": _judge(verdict.reading),
    }
    if isinstance(verdict, Judged):
        line |= _judged(verdict)
    else:
        line |= {"outcome": "unjudged", "reason": str(verdict.reason)}
    return line


def _judged(verdict: Judged) -> dict[str, Any]:
    evidence = verdict.evidence
    return {
        "scores": {str(quantity): _rounded(score) for quantity, score in verdict.scores.items()},
        "stage": None if verdict.stage is None else str(verdict.stage),
        "fault": None if verdict.fault is None else str(verdict.fault),
        "claims": [_claim(claim) for claim in evidence.claims],
        "contexts": _contexts(verdict, evidence),
        "missing": [need.text for need in evidence.needs or () if not need.answerable],
        "address": None if evidence.address is None else str(evidence.address),
        "reference": _reference(evidence),
    }


def _reference(evidence: Evidence) -> dict[str, Any] | None:
    """Return the scores by the reference, and the claims of the reference that no context supports."""
    if evidence.reference is None:
        return None
    scores = {str(quantity): _rounded(score) for quantity, score in score_by_reference(evidence).items()}
    return {**scores, "missing": [claim.text for claim in evidence.reference if not any(claim.cells)]}


def _claim(claim: Claim) -> dict[str, Any]:
    return {
        "text": claim.text,
        "start": claim.start,
        "end": claim.end,
        "verdict": str(claim.verdict),
        "support": _rounded(claim.support),
        "contexts": list(claim.contexts),
        "evidence": claim.evidence,
    }


def _contexts(verdict: Judged, evidence: Evidence) -> list[dict[str, Any]]:
    rows = zip(verdict.draw.sample.contexts, evidence.contexts, evidence.used, strict=True)
    return [
        {"id": context.id, "relevant": reading.relevant, "used": used, "relevance": _rounded(reading.relevance)}
        for context, reading, used in rows
    ]


def _judge(reading: Reading) -> dict[str, Any]:
    return {
        "kind": reading.kind,
        "version": reading.version,
        "seconds": round(reading.seconds, _DIGITS),
        "input_tokens": reading.usage.input_tokens,
        "output_tokens": reading.usage.output_tokens,
        "cost_usd": reading.usage.cost_usd,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)
