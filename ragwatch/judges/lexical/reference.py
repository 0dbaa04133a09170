"""Compares contexts and answer with a reference answer, by words."""

from __future__ import annotations

from dataclasses import replace

from ragwatch.judges.claims.atomic_facts import facts_of
from ragwatch.judges.claims.claims import AnswerClaims
from ragwatch.judges.claims.limits import Check, check_claims, unlimited
from ragwatch.judges.claims.steps import actions, names_action
from ragwatch.judges.claims.words import terms
from ragwatch.judges.lexical.rows import Thresholds
from ragwatch.judges.lexical.statements import StatementReading, statements
from ragwatch.judges.lexical.tables import FittedTables
from ragwatch.model.evidence import Evidence, ReferenceClaim, UnreadReason
from ragwatch.model.sample import Context, Sample
from ragwatch.statistics.text.alphabet import visible_text

READING_VERSION = 14
"""Part of the judge's version. Increment it with every change of the results of this module, `reader`, `steps`,
`words` or `other_languages`, because a gate must not compare figures of different versions."""


def with_reference(
    evidence: Evidence,
    sample: Sample,
    answer: AnswerClaims,
    tables: FittedTables,
    thresholds: Thresholds,
    *,
    max_claims: int | None = None,
    check: Check = unlimited,
) -> Evidence:
    """Add the comparison with the reference to the evidence; without a reference, return it as it is.

    Each fact of the reference is compared with each context and with the answer, each claim of the answer with the
    reference. A fact of the reference that no context supports was missed by retrieval. An instruction must match in
    its action too, not only in its objects (see `steps`), and a number must be stated on the other side.

    Raises:
        JudgeError: The reference has more than `max_claims` claims, or `check` stops the reading.
    """
    if not sample.reference or evidence.unread is UnreadReason.LANGUAGE:
        return evidence
    reference = facts_of(sample.reference, sample.question, max_claims=max_claims, check=check)
    check_claims(len(reference.claims), max_claims)
    expected = sample._replace(answer=sample.reference)
    rows = _statements(expected, reference, tables, thresholds, check)
    given = _statements(expected._replace(contexts=(Context(sample.answer),)), reference, tables, thresholds, check)
    confirmed = _statements(sample._replace(contexts=(Context(sample.reference),)), answer, tables, thresholds, check)
    return replace(
        evidence,
        claims=tuple(
            replace(claim, in_reference=one.cells[0]) for claim, one in zip(evidence.claims, confirmed, strict=True)
        ),
        reference=tuple(
            ReferenceClaim(
                sample.reference[start:end],
                start,
                end,
                row.cells,
                in_answer=said.cells[0],
                quotes=tuple(quote if cell else None for quote, cell in zip(row.sentences, row.cells, strict=True)),
                missing=row.missing,
            )
            for (start, end, *_), row, said in zip(reference.claims, rows, given, strict=True)
        ),
    )


def _statements(
    sample: Sample, answer: AnswerClaims, tables: FittedTables, thresholds: Thresholds, check: Check
) -> list[StatementReading]:
    """For each claim, whether each context supports it, and for an instruction also names its action."""
    read = statements(sample, answer, tables, thresholds, check)
    texts: dict[int, frozenset[str]] = {}
    rows = []
    for claim_text, one in zip(answer.claims, read, strict=True):
        check()
        cells = one.cells
        claim_actions = actions(claim_text.words) if claim_text.sentence is None else ()
        if claim_actions:
            texts = texts or {
                rank: frozenset(terms(visible_text(context.text))) for rank, context in enumerate(sample.contexts)
            }
            cells = tuple(
                cell and any(names_action(texts[rank], verbs) for verbs in claim_actions)
                for rank, cell in enumerate(one.cells)
            )
        rows.append(one._replace(cells=cells))
    return rows
