"""Reference: what the contexts and the answer say of a known good answer, and it of the answer, read by words."""

from __future__ import annotations

from dataclasses import replace

from ragwatch.core.evidence import Evidence, ReferenceClaim
from ragwatch.core.sample import Context, Sample
from ragwatch.judges.reading.claims import Answer, claims_of
from ragwatch.judges.reading.reader import Thresholds, read
from ragwatch.judges.reading.tables import Tables


def with_reference(
    evidence: Evidence, sample: Sample, answer: Answer, tables: Tables, thresholds: Thresholds
) -> Evidence:
    """The evidence with what the sample's reference adds to it; the same where there is none.

    Each claim of the reference is looked for in each context, and in the answer; each claim of the answer in the
    reference. What no context says of the reference is what retrieval has missed.
    """
    if not sample.reference:
        return evidence
    said = claims_of(sample.reference, sample.question)
    columns = sample._replace(answer=sample.reference, contexts=(*sample.contexts, Context(sample.answer)))
    rows = read(columns, said, tables, thresholds).claims
    confirmed = read(sample._replace(contexts=(Context(sample.reference),)), answer, tables, thresholds).claims
    return replace(
        evidence,
        claims=tuple(
            replace(claim, in_reference=other.cells[0]) for claim, other in zip(evidence.claims, confirmed, strict=True)
        ),
        reference=tuple(
            ReferenceClaim(sample.reference[start:end], start, end, row.cells[:-1], in_answer=row.cells[-1])
            for (start, end, _), row in zip(said.claims, rows, strict=True)
        ),
    )
