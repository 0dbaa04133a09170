"""Compares contexts and answer with a reference answer, by words."""

from __future__ import annotations

from dataclasses import replace

from ragwatch.core.alphabet import visible_text
from ragwatch.core.evidence import Evidence, ReferenceClaim, UnreadReason
from ragwatch.core.sample import Context, Sample
from ragwatch.judges.lexical.atomic_facts import facts_of
from ragwatch.judges.lexical.claims import AnswerClaims
from ragwatch.judges.lexical.limits import Check, check_claims, unlimited
from ragwatch.judges.lexical.reader import supported_alone
from ragwatch.judges.lexical.rows import Thresholds
from ragwatch.judges.lexical.steps import actions, names_action
from ragwatch.judges.lexical.tables import FittedTables
from ragwatch.judges.lexical.words import terms

READING_VERSION = 11
"""Part of the judge's version. Increment it with every change of the results of this module, `reader`, `steps` or
`words`, because a gate must not compare figures of different versions."""


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
    rows = _cells(expected, reference, tables, thresholds, check)
    given = _cells(expected._replace(contexts=(Context(sample.answer),)), reference, tables, thresholds, check)
    confirmed = _cells(sample._replace(contexts=(Context(sample.reference),)), answer, tables, thresholds, check)
    return replace(
        evidence,
        claims=tuple(
            replace(claim, in_reference=cells[0]) for claim, cells in zip(evidence.claims, confirmed, strict=True)
        ),
        reference=tuple(
            ReferenceClaim(sample.reference[start:end], start, end, cells, in_answer=in_answer)
            for (start, end, *_), cells, (in_answer,) in zip(reference.claims, rows, given, strict=True)
        ),
    )


def _cells(
    sample: Sample, answer: AnswerClaims, tables: FittedTables, thresholds: Thresholds, check: Check
) -> list[tuple[bool, ...]]:
    """For each claim, whether each context supports it, and for an instruction also names its action."""
    supported = supported_alone(sample, answer, tables, thresholds, check)
    texts: dict[int, frozenset[str]] = {}
    rows = []
    for claim_text, alone in zip(answer.claims, supported, strict=True):
        check()
        cells = alone
        claim_actions = actions(claim_text.words) if claim_text.sentence is None else ()
        if claim_actions:
            texts = texts or {
                rank: frozenset(terms(visible_text(context.text))) for rank, context in enumerate(sample.contexts)
            }
            cells = tuple(
                cell and any(names_action(texts[rank], verbs) for verbs in claim_actions)
                for rank, cell in enumerate(alone)
            )
        rows.append(cells)
    return rows
