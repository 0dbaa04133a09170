"""Reference: what the contexts and the answer say of a known good answer, and it of the answer, read by words."""

from __future__ import annotations

from dataclasses import replace

from ragwatch.core.alphabet import settled
from ragwatch.core.evidence import Evidence, ReferenceClaim
from ragwatch.core.sample import Context, Sample
from ragwatch.judges.lexical.claims import AnswerClaims, claims_of
from ragwatch.judges.lexical.limits import Check, check_claims, unlimited
from ragwatch.judges.lexical.reader import Thresholds, read
from ragwatch.judges.lexical.steps import actions, named
from ragwatch.judges.lexical.tables import FittedTables
from ragwatch.judges.lexical.words import terms

READING = 4
"""Part of the judge's version. Raise it with every change of what this module or `steps` reads, or of the terms that
`words` makes: a gate must not compare figures of two readings."""


def with_reference(
    evidence: Evidence,
    sample: Sample,
    answer: AnswerClaims,
    tables: FittedTables,
    thresholds: Thresholds,
    *,
    most: int | None = None,
    check: Check = unlimited,
) -> Evidence:
    """The evidence with what the sample's reference adds to it; the same where there is none.

    Each claim of the reference is looked for in each context, and in the answer; each claim of the answer in the
    reference. What no context says of the reference is what retrieval has missed. A step must be met in its action
    too, not only in the things it handles (see `steps`).

    Raises:
        JudgeError: The reference has more than `most` claims, or `check` says that there is no time left.
    """
    if not sample.reference:
        return evidence
    said = claims_of(sample.reference, sample.question, most=most, check=check)
    check_claims(len(said.claims), most)
    columns = sample._replace(answer=sample.reference, contexts=(*sample.contexts, Context(sample.answer)))
    rows = _cells(columns, said, tables, thresholds, check)
    confirmed = _cells(sample._replace(contexts=(Context(sample.reference),)), answer, tables, thresholds, check)
    return replace(
        evidence,
        claims=tuple(
            replace(claim, in_reference=cells[0]) for claim, cells in zip(evidence.claims, confirmed, strict=True)
        ),
        reference=tuple(
            ReferenceClaim(sample.reference[start:end], start, end, cells[:-1], in_answer=cells[-1])
            for (start, end, _), cells in zip(said.claims, rows, strict=True)
        ),
    )


def _cells(
    sample: Sample, answer: AnswerClaims, tables: FittedTables, thresholds: Thresholds, check: Check
) -> list[tuple[bool, ...]]:
    """For each claim, whether each context supports it, and names its action where it is a step."""
    found = read(sample, answer, tables, thresholds, check=check).claims
    texts: dict[int, frozenset[str]] = {}
    rows = []
    for said, claim in zip(answer.claims, found, strict=True):
        check()
        wanted, cells = actions(said.words), claim.cells
        if wanted:
            texts = texts or {rank: frozenset(terms(settled(each.text))) for rank, each in enumerate(sample.contexts)}
            cells = tuple(
                cell and any(named(verbs, texts[rank]) for verbs in wanted) for rank, cell in enumerate(cells)
            )
        rows.append(cells)
    return rows
