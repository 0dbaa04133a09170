"""Reads a sample to Evidence. Pure: the same sample and tables give the same Evidence.

The rulings on claims come from the comparison of words, or from a cross-encoder (`CrossEncoder`). The rest of the
Evidence follows from them in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ragwatch.core.alphabet import unicode14
from ragwatch.core.evidence import Address, Claim, ClaimVerdict, ContextReading, Evidence, UnreadReason
from ragwatch.core.sample import Sample
from ragwatch.judges.lexical import relevance
from ragwatch.judges.lexical.address import address, better_context_unused, kind_missing, question_coverage
from ragwatch.judges.lexical.claims import AnswerClaims, ClaimText
from ragwatch.judges.lexical.facts import NOTHING_MISSING, MissingFacts, Sources, lowered, sources_of
from ragwatch.judges.lexical.features import CARRIES, ClaimWords, PassageMatch, claim_words, features, match
from ragwatch.judges.lexical.limits import Check, unlimited
from ragwatch.judges.lexical.passages import PreparedPassage, passages_of
from ragwatch.judges.lexical.tables import FittedTables
from ragwatch.judges.lexical.words import identifiers, terms


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Probabilities at which readings become verdicts.

    Attributes:
        support: Minimum probability at which all contexts together (or one alone, in a cell) support a claim.
        relevance: Minimum probability at which a context is relevant.
    """

    support: float = 0.5
    relevance: float = 0.5


@dataclass(frozen=True, slots=True)
class PreparedQuestion:
    """The question: its terms with their rarity, and how much of it each context covers.

    Attributes:
        text: The question; empty when unknown.
        weights: Terms and whole identifiers, with their rarity.
        covers: Share of that weight in each context; None when the question has no terms.
    """

    text: str
    weights: Mapping[str, float]
    covers: Sequence[float] | None


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """One claim, compared with every context.

    Attributes:
        claim: The claim.
        words: Its words.
        matches: What it shares with each context.
        support: Probability that all contexts together support it, lowered by the facts that none of them holds.
        alone: For each context, the probability that it does alone, by the words.
        missing: Numbers and names of the claim that no context holds.
        by_words: `support` before it was lowered.
    """

    claim: ClaimText
    words: ClaimWords
    matches: tuple[PassageMatch, ...]
    support: float
    alone: tuple[float, ...]
    missing: MissingFacts = NOTHING_MISSING
    by_words: float = 0.0


@dataclass(frozen=True, slots=True)
class ClaimRuling:
    """Ruling on one claim.

    Attributes:
        verdict: Verdict of all contexts together.
        support: Probability that they support the claim.
        cells: For each context, whether it alone supports the claim; only for supported claims.
        alone: For each context, the best known probability of that.
        against: Whether contradiction was read too.
    """

    verdict: ClaimVerdict
    support: float
    cells: tuple[bool, ...]
    alone: tuple[float, ...]
    against: bool = False


CrossEncoder = Callable[[Sequence[ClaimRow], Sequence[PreparedPassage], Sequence[str]], Sequence[ClaimRuling]]
"""Rules on claims with a model: a ruling for each row, given the prepared contexts and their texts."""


def read(
    sample: Sample,
    answer: AnswerClaims,
    tables: FittedTables,
    thresholds: Thresholds,
    cross_encoder: CrossEncoder | None = None,
    *,
    unread: UnreadReason | None = None,
    check: Check = unlimited,
) -> Evidence:
    """Read the contexts and the answer of a sample.

    Args:
        sample: The sample.
        answer: The claims of its answer: `claims_of(sample.answer, sample.question)`.
        tables: Fitted tables.
        thresholds: Probabilities at which readings become verdicts.
        cross_encoder: Rules on the claims; None for rulings by words.
        unread: Why the answer cannot be read, if it cannot: see `readable`.
        check: Called between the steps of the reading, each of which is short; raises to stop it.
    """
    if unread is UnreadReason.LANGUAGE:
        return _unread(sample, answer, unread)
    passages = passages_of((context.text for context in sample.contexts), check)
    question = _prepared_question(sample.question or "", passages, tables)
    texts = [unicode14(context.text) for context in sample.contexts]
    sources = sources_of(texts, question.text, [passage.terms for passage in passages], tables)
    rows = _rows(answer, passages, question, tables, check, sources=sources)
    rulings = (
        cross_encoder(rows, passages, texts) if cross_encoder else [lexical_ruling(row, thresholds) for row in rows]
    )
    claims = tuple(_claim(row, ruling, sample, passages) for row, ruling in zip(rows, rulings, strict=True))
    used = [any(claim.cells[rank] for claim in claims) for rank in range(len(passages))]
    any_supported = any(claim.verdict is ClaimVerdict.SUPPORTED for claim in claims)
    feature_rows = _relevance_features(question, passages, rows, tables, check) if any_supported else None
    by_answer = None if feature_rows is None else _by_answer(feature_rows, rows, used, tables)
    missing = relevance.identifiers_missing(identifiers(question.text), passages)
    values = relevance.apply_rules(by_answer, question.covers, used, len(question.weights), identifiers_missing=missing)
    carriers = _carriers(claims, rows, passages, check) if any_supported else _covering(question, passages, check)
    return Evidence(
        claims=claims,
        contexts=tuple(
            _context(value, lines, passage, thresholds)
            for value, passage, lines in zip(values, passages, carriers, strict=True)
        ),
        address=None if unread else _address(answer, question, used, passages, sample.question),
        unread=unread,
        reads_contradiction=cross_encoder is not None and all(ruling.against for ruling in rulings),
    )


def _unread(sample: Sample, answer: AnswerClaims, reason: UnreadReason) -> Evidence:
    """Evidence of an answer of which nothing can be read but that it abstains."""
    return Evidence(
        claims=(),
        contexts=tuple(ContextReading(relevant=None) for _ in sample.contexts),
        address=Address.ABSTAINED if answer.abstained else None,
        reads_contradiction=False,
        unread=reason,
    )


def _prepared_question(question: str, passages: Sequence[PreparedPassage], tables: FittedTables) -> PreparedQuestion:
    question = unicode14(question)
    weights = relevance.weigh([*terms(question), *sorted(identifiers(question))], tables.rarity)
    covers = [relevance.coverage(weights, passage.terms) for passage in passages] if weights else None
    return PreparedQuestion(question, weights, covers)


def _rows(
    answer: AnswerClaims,
    passages: Sequence[PreparedPassage],
    question: PreparedQuestion,
    tables: FittedTables,
    check: Check,
    *,
    sources: Sources | None = None,
) -> list[ClaimRow]:
    """A row for each claim. Claims with equal words, which models may repeat, are compared once."""
    by_words: dict[str, ClaimRow] = {}
    rows = []
    for claim in answer.claims:
        row = by_words.get(claim.words)
        row = replace(row, claim=claim) if row else _row(claim, passages, question, tables, check, sources=sources)
        by_words[claim.words] = row
        rows.append(row)
    return rows


def _row(
    claim: ClaimText,
    passages: Sequence[PreparedPassage],
    question: PreparedQuestion,
    tables: FittedTables,
    check: Check,
    *,
    sources: Sources | None,
) -> ClaimRow:
    text = claim.words if sources is None else sources.rewritten(claim.words)
    words = claim_words(text, tables.rarity)
    matches = _matches(words, passages, check)
    alone = _alone(words, matches, question, tables, check)
    together = tables.support.probability(features(words, matches, question.weights.keys()))
    support = max(together, *alone) if alone else together
    missing = NOTHING_MISSING if sources is None else sources.missing(claim.words)
    return ClaimRow(
        claim, words, matches, support=lowered(support, missing), alone=alone, missing=missing, by_words=support
    )


def _matches(words: ClaimWords, passages: Sequence[PreparedPassage], check: Check) -> tuple[PassageMatch, ...]:
    matches = []
    for passage in passages:
        check()
        matches.append(match(words, passage))
    return tuple(matches)


def _alone(
    words: ClaimWords, matches: Sequence[PassageMatch], question: PreparedQuestion, tables: FittedTables, check: Check
) -> tuple[float, ...]:
    probabilities = []
    for passage in matches:
        check()
        probabilities.append(tables.support.probability(features(words, (passage,), question.weights.keys())))
    return tuple(probabilities)


def lexical_ruling(row: ClaimRow, thresholds: Thresholds) -> ClaimRuling:
    """Rule on a claim by words. They cannot tell a contradiction from an unsupported claim."""
    supported = row.support >= thresholds.support
    return ClaimRuling(
        verdict=ClaimVerdict.SUPPORTED if supported else ClaimVerdict.NOT_IN_CONTEXT,
        support=row.support,
        cells=tuple(supported and probability >= thresholds.support for probability in row.alone),
        alone=row.alone,
    )


def _claim(row: ClaimRow, ruling: ClaimRuling, sample: Sample, passages: Sequence[PreparedPassage]) -> Claim:
    return Claim(
        text=sample.answer[row.claim.start : row.claim.end],
        start=row.claim.start,
        end=row.claim.end,
        verdict=ruling.verdict,
        cells=ruling.cells,
        support=ruling.support,
        evidence=_best_sentence(row, sample, passages),
    )


def _best_sentence(row: ClaimRow, sample: Sample, passages: Sequence[PreparedPassage]) -> str | None:
    """The sentence with the highest recall of the claim; the earliest context among equals."""
    ranks = [rank for rank, passage in enumerate(row.matches) if passage.sentence is not None]
    if not ranks:
        return None
    rank = max(ranks, key=lambda index: row.matches[index].sentence_recall)
    start, end = passages[rank].offsets[row.matches[rank].sentence or 0]
    return sample.contexts[rank].text[start:end]


def _by_answer(
    feature_rows: Sequence[tuple[float, ...]], rows: Sequence[ClaimRow], used: Sequence[bool], tables: FittedTables
) -> list[float]:
    """Relevance of each context by the answer, before the rules."""
    return relevance.lift_used([tables.relevance.probability(row) for row in feature_rows], used, short=_is_short(rows))


def _is_short(rows: Sequence[ClaimRow]) -> bool:
    return len({name for row in rows for name in terms(row.claim.words)}) < relevance.SHORT


def relevance_of(sample: Sample, answer: AnswerClaims, tables: FittedTables) -> list[tuple[float, ...]]:
    """Features of the relevance of each context of a sample, for `training/lexical.py`."""
    passages = passages_of(context.text for context in sample.contexts)
    question = _prepared_question(sample.question or "", passages, tables)
    rows = _rows(answer, passages, question, tables, unlimited)
    return _relevance_features(question, passages, rows, tables, unlimited)


def _relevance_features(
    question: PreparedQuestion,
    passages: Sequence[PreparedPassage],
    rows: Sequence[ClaimRow],
    tables: FittedTables,
    check: Check,
) -> list[tuple[float, ...]]:
    """Features of each context. The question is added to a short answer."""
    answer = " ".join(row.claim.words for row in rows)
    supports: list[tuple[float, ...]] = [row.alone for row in rows]
    if question.weights and _is_short(rows):
        answer = f"{question.text} {answer}"
        words = claim_words(answer, tables.rarity)
        supports = [_alone(words, _matches(words, passages, check), question, tables, check)]
    weights = relevance.weigh(terms(answer), tables.rarity)
    return relevance.rows(weights, question.weights.keys(), passages, supports, check)


def _carriers(
    claims: Sequence[Claim], rows: Sequence[ClaimRow], passages: Sequence[PreparedPassage], check: Check
) -> list[set[int]]:
    """Sentences of each context that carry a supported claim, or are the best of a context that supports one."""
    lines: list[set[int]] = [set() for _ in passages]
    for claim, row in zip(claims, rows, strict=True):
        check()
        for context_lines, passage, cell in zip(lines, row.matches, claim.cells, strict=True):
            if claim.verdict is ClaimVerdict.SUPPORTED:
                context_lines.update(passage.carriers)
            if cell and passage.sentence is not None:
                context_lines.add(passage.sentence)
    return lines


def _covering(question: PreparedQuestion, passages: Sequence[PreparedPassage], check: Check) -> list[set[int]]:
    """Sentences of each context that carry the question, for answers without a supported claim."""
    lines: list[set[int]] = [set() for _ in passages]
    for context_lines, passage in zip(lines, passages, strict=True):
        for index, sentence in enumerate(passage.sentences):
            check()
            if relevance.coverage(question.weights, sentence) >= CARRIES:
                context_lines.add(index)
    return lines


def _context(value: float | None, lines: set[int], passage: PreparedPassage, thresholds: Thresholds) -> ContextReading:
    """Reading of one context. An irrelevant one has no relevant sentences; with unknown relevance there is no count."""
    if value is None:
        return ContextReading(relevant=None)
    relevant = value >= thresholds.relevance
    return ContextReading(
        relevant=relevant,
        relevance=value,
        sentences=len(passage.sentences),
        relevant_sentences=len(lines) if relevant else 0,
    )


def _address(
    answer: AnswerClaims,
    prepared: PreparedQuestion,
    used: Sequence[bool],
    passages: Sequence[PreparedPassage],
    question: str | None,
) -> Address | None:
    if answer.abstained:
        return Address.ABSTAINED
    if question is None or not question.strip():
        return None
    if not answer.claims:
        return Address.NOT_AT_ALL
    text = " ".join(claim.words for claim in answer.claims)
    own = frozenset(terms(text)) | identifiers(text)
    sources = [passage.terms for passage, is_used in zip(passages, used, strict=True) if is_used]
    return address(
        question_coverage(prepared.weights, own, sources) if prepared.weights else None,
        kind_is_missing=kind_missing(prepared.text, text),
        answer_terms=len(own),
        better_unused=better_context_unused(prepared.covers or (), used),
    )
