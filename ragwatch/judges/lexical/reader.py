"""Reads a sample to Evidence. Pure: the same sample and tables give the same Evidence.

The rulings on claims come from the comparison of words, or from a cross-encoder (`CrossEncoder`). The rest of the
Evidence follows from them in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from ragwatch.core.alphabet import unicode14
from ragwatch.core.evidence import Address, Claim, ClaimVerdict, ContextReading, Evidence
from ragwatch.core.sample import Sample
from ragwatch.judges.lexical import relevance
from ragwatch.judges.lexical.address import address, better_context_unused, kind_missing, question_coverage
from ragwatch.judges.lexical.claims import AnswerClaims, ClaimText
from ragwatch.judges.lexical.facts import combine
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
    """One claim, compared with every context: probability of support by all together, and by each alone.

    For a fact these are combined with those of its sentence (see `facts.combine`), which is `sentence`.
    """

    claim: ClaimText
    words: ClaimWords
    matches: tuple[PassageMatch, ...]
    support: float
    alone: tuple[float, ...]
    sentence: ClaimRow | None = None

    @property
    def whole(self) -> ClaimRow:
        """The row of its sentence; itself if it is a whole one."""
        return self.sentence or self


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
    check: Check = unlimited,
) -> Evidence:
    """Read the contexts and the answer of a sample.

    Args:
        sample: The sample.
        answer: The claims of its answer: `facts_of(sample.answer, sample.question)`, or whole sentences
            (`claims_of`).
        tables: Fitted tables.
        thresholds: Probabilities at which readings become verdicts.
        cross_encoder: Rules on the claims; None for rulings by words.
        check: Called between the steps of the reading, each of which is short; raises to stop it.
    """
    passages = passages_of((context.text for context in sample.contexts), check)
    question = _prepared_question(sample.question or "", passages, tables)
    rows = _rows(answer, passages, question, tables, thresholds=thresholds, check=check)
    texts = [unicode14(context.text) for context in sample.contexts]
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
        address=_address(answer, question, used, passages, sample.question),
        reads_contradiction=cross_encoder is not None and all(ruling.against for ruling in rulings),
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
    *,
    thresholds: Thresholds,
    check: Check,
) -> list[ClaimRow]:
    """A row for each claim. Claims with equal words, which models may repeat, are compared once."""
    by_words: dict[str, ClaimRow] = {}

    def row_of(claim: ClaimText) -> ClaimRow:
        row = by_words.get(claim.words)
        row = replace(row, claim=claim) if row else _row(claim, passages, question, tables, check)
        by_words[claim.words] = row
        return row

    rows: list[ClaimRow] = []
    for sentence, group in groupby(answer.claims, key=lambda claim: claim.sentence or claim):
        facts = list(group)
        whole = row_of(sentence)
        if facts[0] is sentence:
            rows.append(whole)
        else:
            own = [row_of(fact._replace(words=fact.own)) for fact in facts]
            parts = [_lesser(row_of(fact), part) for fact, part in zip(facts, own, strict=True)]
            rows += _facts(whole, parts, thresholds)
    return rows


def _lesser(row: ClaimRow, own: ClaimRow) -> ClaimRow:
    """A fact with its subject, supported no more than without it: naming the subject alone supports nothing."""
    return replace(row, support=min(row.support, own.support), alone=tuple(map(min, row.alone, own.alone)))


def _facts(whole: ClaimRow, parts: Sequence[ClaimRow], thresholds: Thresholds) -> Iterator[ClaimRow]:
    """The rows of the facts of a sentence, combined with its own.

    Single contexts are read by the whole sentence if one of them supports it, because a few words may stand anywhere.
    """
    supports = combine(whole.support, [part.support for part in parts])
    columns = [combine(value, [part.alone[rank] for part in parts]) for rank, value in enumerate(whole.alone)]
    has_source = any(value >= thresholds.support for value in whole.alone)
    for index, (part, support) in enumerate(zip(parts, supports, strict=True)):
        alone = whole.alone if has_source else tuple(min(column[index], support) for column in columns)
        yield replace(part, support=support, alone=alone, sentence=whole)


def _row(
    claim: ClaimText,
    passages: Sequence[PreparedPassage],
    question: PreparedQuestion,
    tables: FittedTables,
    check: Check,
) -> ClaimRow:
    words = claim_words(claim.words, tables.rarity)
    matches = _matches(words, passages, check)
    alone = _alone(words, matches, question, tables, check)
    together = tables.support.probability(features(words, matches, question.weights.keys()))
    return ClaimRow(claim, words, matches, max(together, *alone) if alone else together, alone)


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
        cells=tuple(probability >= thresholds.support for probability in row.alone),
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
    rows = _rows(answer, passages, question, tables, thresholds=Thresholds(), check=unlimited)
    return _relevance_features(question, passages, rows, tables, unlimited)


def _relevance_features(
    question: PreparedQuestion,
    passages: Sequence[PreparedPassage],
    rows: Sequence[ClaimRow],
    tables: FittedTables,
    check: Check,
) -> list[tuple[float, ...]]:
    """Features of each context, from whole sentences. The question is added to a short answer."""
    rows = list({id(row.whole): row.whole for row in rows}.values())
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
    """Sentences of each context that carry a supported sentence, or are the best of a context that supports a claim."""
    lines: list[set[int]] = [set() for _ in passages]
    refuted = {
        id(row.whole) for claim, row in zip(claims, rows, strict=True) if claim.verdict is not ClaimVerdict.SUPPORTED
    }
    for claim, row in zip(claims, rows, strict=True):
        check()
        for context_lines, passage, whole, cell in zip(lines, row.matches, row.whole.matches, claim.cells, strict=True):
            if id(row.whole) not in refuted:
                context_lines.update(whole.carriers)
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
    text = " ".join(claim.words for claim in answer.sentences)
    own = frozenset(terms(text)) | identifiers(text)
    sources = [passage.terms for passage, is_used in zip(passages, used, strict=True) if is_used]
    return address(
        question_coverage(prepared.weights, own, sources) if prepared.weights else None,
        kind_is_missing=kind_missing(prepared.text, text),
        answer_terms=len(own),
        better_unused=better_context_unused(prepared.covers or (), used),
    )
