"""Reader: a sample -> Evidence. Pure: the same sample and tables give the same Evidence.

What is said of a claim comes from its words, or from somebody who has looked at the words and reads on (`Second`).
Everything else of the Evidence follows from that in one way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ragwatch.core.alphabet import settled
from ragwatch.core.evidence import Address, Claim, ClaimVerdict, ContextReading, Evidence
from ragwatch.core.sample import Sample
from ragwatch.judges.lexical import relevance
from ragwatch.judges.lexical.address import address, better_left_aside, covered, kind_missing
from ragwatch.judges.lexical.claims import AnswerClaims, ClaimText
from ragwatch.judges.lexical.features import CARRIES, ClaimWords, PassageMatch, claim_words, features, match
from ragwatch.judges.lexical.limits import Check, unlimited
from ragwatch.judges.lexical.passages import PreparedPassage, passages_of
from ragwatch.judges.lexical.tables import FittedTables
from ragwatch.judges.lexical.words import identifiers, terms


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Where probabilities become verdicts.

    Attributes:
        support: At or above it, all contexts together (or one alone, in a cell) support the claim.
        relevance: At or above it, a context is relevant.
    """

    support: float = 0.5
    relevance: float = 0.5


@dataclass(frozen=True, slots=True)
class PreparedQuestion:
    """The question, read: its terms with their rarity, and how much of it each context covers.

    Attributes:
        text: The question; empty when unknown.
        weights: Terms and whole identifiers, with their rarity.
        covers: Share of that weight in each context; None when there is no term to look for.
    """

    text: str
    weights: Mapping[str, float]
    covers: Sequence[float] | None


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """One claim, looked up in every context: probability of support by all together, and by each alone."""

    said: ClaimText
    words: ClaimWords
    matches: tuple[PassageMatch, ...]
    support: float
    alone: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class ClaimRuling:
    """What is said of one claim.

    Attributes:
        verdict: What all contexts together say of it.
        support: Probability that they support it.
        cells: For each context, whether it supports the claim alone; never without the verdict.
        alone: For each context, the probability of that, as far as it was looked into.
        against: Whether it was also asked if they contradict it.
    """

    verdict: ClaimVerdict
    support: float
    cells: tuple[bool, ...]
    alone: tuple[float, ...]
    against: bool = False


Second = Callable[[Sequence[ClaimRow], Sequence[PreparedPassage], Sequence[str]], Sequence[ClaimRuling]]
"""Reads on where words end: a ruling for each row, given the contexts as they were read, and their text."""


def read(
    sample: Sample,
    answer: AnswerClaims,
    tables: FittedTables,
    thresholds: Thresholds,
    second: Second | None = None,
    *,
    check: Check = unlimited,
) -> Evidence:
    """What the contexts of a sample say of its answer.

    Args:
        sample: The sample.
        answer: What its answer says: `claims_of(sample.answer, sample.question)`.
        tables: Fitted numbers.
        thresholds: Where probabilities become verdicts.
        second: Who rules on the claims; None where words do.
        check: Called between the steps of the reading, each of which is short; raises when it has to stop.
    """
    passages = passages_of((context.text for context in sample.contexts), check)
    asked = _asked(sample.question or "", passages, tables)
    rows = _rows(answer, passages, asked, tables, check)
    texts = [settled(context.text) for context in sample.contexts]
    rulings = second(rows, passages, texts) if second else [lexical_ruling(row, thresholds) for row in rows]
    claims = tuple(_claim(row, one, sample, passages) for row, one in zip(rows, rulings, strict=True))
    used = [any(claim.cells[rank] for claim in claims) for rank in range(len(passages))]
    drawn = any(claim.verdict is ClaimVerdict.SUPPORTED for claim in claims)
    found = _relevance_features(asked, passages, rows, tables, check) if drawn else None
    by_answer = None if found is None else _by_answer(found, rows, used, tables)
    lost = relevance.names_lost(identifiers(asked.text), passages)
    values = relevance.ruled(by_answer, asked.covers, used, len(asked.weights), names_lost=lost)
    carriers = _carriers(claims, rows, passages, check) if drawn else _covering(asked, passages, check)
    return Evidence(
        claims=claims,
        contexts=tuple(
            _context(value, lines, one, thresholds)
            for value, one, lines in zip(values, passages, carriers, strict=True)
        ),
        address=_address(answer, asked, used, passages, sample.question),
        reads_contradiction=second is not None and all(one.against for one in rulings),
    )


def _asked(question: str, passages: Sequence[PreparedPassage], tables: FittedTables) -> PreparedQuestion:
    question = settled(question)
    weights = relevance.weigh([*terms(question), *sorted(identifiers(question))], tables.rarity)
    covers = [relevance.coverage(weights, found.terms) for found in passages] if weights else None
    return PreparedQuestion(question, weights, covers)


def _rows(
    answer: AnswerClaims,
    passages: Sequence[PreparedPassage],
    asked: PreparedQuestion,
    tables: FittedTables,
    check: Check,
) -> list[ClaimRow]:
    """A row for each claim; claims of the same words (a model that repeats itself) are looked up once."""
    known: dict[str, ClaimRow] = {}
    rows = []
    for said in answer.claims:
        row = known.get(said.words)
        known[said.words] = row = replace(row, said=said) if row else _row(said, passages, asked, tables, check)
        rows.append(row)
    return rows


def _row(
    said: ClaimText, passages: Sequence[PreparedPassage], asked: PreparedQuestion, tables: FittedTables, check: Check
) -> ClaimRow:
    words = claim_words(said.words, tables.rarity)
    matches = _matches(words, passages, check)
    alone = _alone(words, matches, asked, tables, check)
    together = tables.support.probability(features(words, matches, asked.weights.keys()))
    return ClaimRow(said, words, matches, max(together, *alone) if alone else together, alone)


def _matches(words: ClaimWords, passages: Sequence[PreparedPassage], check: Check) -> tuple[PassageMatch, ...]:
    found = []
    for each in passages:
        check()
        found.append(match(words, each))
    return tuple(found)


def _alone(
    words: ClaimWords, matches: Sequence[PassageMatch], asked: PreparedQuestion, tables: FittedTables, check: Check
) -> tuple[float, ...]:
    found = []
    for one in matches:
        check()
        found.append(tables.support.probability(features(words, (one,), asked.weights.keys())))
    return tuple(found)


def lexical_ruling(row: ClaimRow, thresholds: Thresholds) -> ClaimRuling:
    """What words alone say of a claim. They cannot tell a contradiction from an invention."""
    supported = row.support >= thresholds.support
    return ClaimRuling(
        verdict=ClaimVerdict.SUPPORTED if supported else ClaimVerdict.NOT_IN_CONTEXT,
        support=row.support,
        cells=tuple(probability >= thresholds.support for probability in row.alone),
        alone=row.alone,
    )


def _claim(row: ClaimRow, ruling: ClaimRuling, sample: Sample, passages: Sequence[PreparedPassage]) -> Claim:
    return Claim(
        text=sample.answer[row.said.start : row.said.end],
        start=row.said.start,
        end=row.said.end,
        verdict=ruling.verdict,
        cells=ruling.cells,
        support=ruling.support,
        evidence=_best_sentence(row, sample, passages),
    )


def _best_sentence(row: ClaimRow, sample: Sample, passages: Sequence[PreparedPassage]) -> str | None:
    """The sentence that holds most of the claim; the earliest context among equals."""
    ranks = [rank for rank, one in enumerate(row.matches) if one.sentence is not None]
    if not ranks:
        return None
    rank = max(ranks, key=lambda index: row.matches[index].sentence_recall)
    start, end = passages[rank].offsets[row.matches[rank].sentence or 0]
    return sample.contexts[rank].text[start:end]


def _by_answer(
    found: Sequence[tuple[float, ...]], rows: Sequence[ClaimRow], used: Sequence[bool], tables: FittedTables
) -> list[float]:
    """Relevance of each context as the answer tells it (its features), before the rules."""
    return relevance.lifted([tables.relevance.probability(one) for one in found], used, short=_is_short(rows))


def _is_short(rows: Sequence[ClaimRow]) -> bool:
    return len({name for row in rows for name in terms(row.said.words)}) < relevance.SHORT


def relevance_of(sample: Sample, answer: AnswerClaims, tables: FittedTables) -> list[tuple[float, ...]]:
    """Features of relevance of each context of a sample: what `training/lexical.py` fits on."""
    passages = passages_of(context.text for context in sample.contexts)
    asked = _asked(sample.question or "", passages, tables)
    rows = _rows(answer, passages, asked, tables, unlimited)
    return _relevance_features(asked, passages, rows, tables, unlimited)


def _relevance_features(
    asked: PreparedQuestion,
    passages: Sequence[PreparedPassage],
    rows: Sequence[ClaimRow],
    tables: FittedTables,
    check: Check,
) -> list[tuple[float, ...]]:
    """Features of each context; a short answer is read together with the question."""
    said = " ".join(row.said.words for row in rows)
    supports: list[tuple[float, ...]] = [row.alone for row in rows]
    if asked.weights and _is_short(rows):
        said = f"{asked.text} {said}"
        words = claim_words(said, tables.rarity)
        supports = [_alone(words, _matches(words, passages, check), asked, tables, check)]
    weights = relevance.weigh(terms(said), tables.rarity)
    return relevance.rows(weights, asked.weights.keys(), passages, supports, check)


def _carriers(
    claims: Sequence[Claim], rows: Sequence[ClaimRow], passages: Sequence[PreparedPassage], check: Check
) -> list[set[int]]:
    """Sentences of each context that carry a supported claim, or are the best of a context that supports one."""
    lines: list[set[int]] = [set() for _ in passages]
    for claim, row in zip(claims, rows, strict=True):
        check()
        for found, one, cell in zip(lines, row.matches, claim.cells, strict=True):
            if claim.verdict is ClaimVerdict.SUPPORTED:
                found.update(one.carriers)
            if cell and one.sentence is not None:
                found.add(one.sentence)
    return lines


def _covering(asked: PreparedQuestion, passages: Sequence[PreparedPassage], check: Check) -> list[set[int]]:
    """Sentences of each context that carry the question, for answers that took nothing from the contexts."""
    lines: list[set[int]] = [set() for _ in passages]
    for found, one in zip(lines, passages, strict=True):
        for index, sentence in enumerate(one.sentences):
            check()
            if relevance.coverage(asked.weights, sentence) >= CARRIES:
                found.add(index)
    return lines


def _context(value: float | None, lines: set[int], found: PreparedPassage, thresholds: Thresholds) -> ContextReading:
    """A column. Sentences of an irrelevant context are irrelevant; where relevance is unknown, so is their number."""
    if value is None:
        return ContextReading(relevant=None)
    relevant = value >= thresholds.relevance
    return ContextReading(
        relevant=relevant,
        relevance=value,
        sentences=len(found.sentences),
        relevant_sentences=len(lines) if relevant else 0,
    )


def _address(
    answer: AnswerClaims,
    asked: PreparedQuestion,
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
    said = " ".join(claim.words for claim in answer.claims)
    own = frozenset(terms(said)) | identifiers(said)
    sources = [found.terms for found, use in zip(passages, used, strict=True) if use]
    return address(
        covered(asked.weights, own, sources) if asked.weights else None,
        kind_is_missing=kind_missing(asked.text, said),
        answer_terms=len(own),
        left_aside=better_left_aside(asked.covers or (), used),
    )
