"""Reads a sample to Evidence. Pure: the same sample and tables give the same Evidence.

The rulings on claims come from the comparison of words, or from a cross-encoder (`CrossEncoder`). The rest of the
Evidence follows from them in the same way.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from ragwatch.judges.claims.claims import AnswerClaims
from ragwatch.judges.claims.conversation import Statement, repeats, statements_of
from ragwatch.judges.claims.limits import Check, checked, unlimited
from ragwatch.judges.claims.words import identifiers
from ragwatch.judges.lexical import relevance
from ragwatch.judges.lexical.address import address
from ragwatch.judges.lexical.facts import UNSUPPORTED
from ragwatch.judges.lexical.features import CARRIES, claim_words, weigh
from ragwatch.judges.lexical.passages import PreparedPassage
from ragwatch.judges.lexical.rows import ClaimRow, ClaimRuling, Comparison, Thresholds, comparison, lexical_ruling
from ragwatch.judges.lexical.statements import denied, loses_condition, misplaced, nearest_sentences
from ragwatch.judges.lexical.tables import FittedTables
from ragwatch.model.evidence import Address, Claim, ClaimVerdict, ContextReading, Evidence, UnreadReason
from ragwatch.model.sample import Sample

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

    The claims are from `facts_of`, or whole sentences from `claims_of`. Tables of another language leave the rules of
    English out. Without a cross-encoder the rulings are by words. `unread` says why the answer cannot be read, if it
    cannot (see `readable`). `check` is called between the short steps of the reading, and raises to stop it.
    """
    if unread is UnreadReason.LANGUAGE:
        contexts = (ContextReading(relevant=None),) * len(sample.contexts)
        abstained = Address.ABSTAINED if answer.abstained else None
        return Evidence((), contexts, abstained, reads_contradiction=False, unread=unread)
    compared = comparison(sample, tables, thresholds, check)
    passages, in_english = compared.passages, tables.split is None
    rows = compared.rows(answer)
    if cross_encoder:
        ruled = cross_encoder(rows, passages, compared.texts)
    else:
        ruled = [lexical_ruling(row, thresholds) for row in rows]
    if in_english:
        ruled = [_with_condition(row, one, compared) for row, one in zip(rows, ruled, strict=True)]
    stated = statements_of(sample.user_turns, check) if in_english else []
    claims = tuple(_claim(row, ruling, sample, passages, stated) for row, ruling in zip(rows, ruled, strict=True))
    used_ranks = {rank for claim in claims for rank in claim.contexts}
    used = [rank in used_ranks for rank in range(len(passages))]
    any_supported = any(claim.verdict is ClaimVerdict.SUPPORTED for claim in claims)
    values = _relevance(rows, used, compared, any_supported=any_supported)
    carriers = _carriers(claims, rows, compared) if any_supported else _covering(compared)
    return Evidence(
        claims=claims,
        contexts=tuple(_context(*one, thresholds) for one in zip(values, carriers, passages, strict=True)),
        address=None if unread else address(answer, used, carriers, compared),
        unread=unread,
        reads_contradiction=cross_encoder is not None and all(one.against for one in ruled),
    )


def _with_condition(row: ClaimRow, ruling: ClaimRuling, compared: Comparison) -> ClaimRuling:
    """The ruling, without support where the contexts state a claim under a condition, deny it, or of another thing."""
    if ruling.verdict is not ClaimVerdict.SUPPORTED:
        return ruling
    near = nearest_sentences(row, compared.texts, compared.passages)
    sentences = [sentence for sentence, cell in zip(near, ruling.cells, strict=True) if cell and sentence]
    if not (loses_condition(row.claim.words, sentences) or denied(row, sentences) or misplaced(row, compared.passages)):
        return ruling
    support = min(ruling.support, UNSUPPORTED)
    return replace(ruling, verdict=ClaimVerdict.NOT_IN_CONTEXT, support=support, cells=row.informed_cells())


def _claim(
    row: ClaimRow, ruling: ClaimRuling, sample: Sample, passages: Sequence[PreparedPassage], stated: Sequence[Statement]
) -> Claim:
    return Claim(
        text=sample.answer[row.claim.start : row.claim.end],
        start=row.claim.start,
        end=row.claim.end,
        verdict=ruling.verdict,
        cells=ruling.cells,
        support=ruling.support,
        evidence=_best_sentence(row, sample, passages),
        said_by_user=ruling.verdict is ClaimVerdict.NOT_IN_CONTEXT and repeats(row.claim.words, stated),
        sentence=(row.whole.claim.start, row.whole.claim.end) if row.sentence else None,
    )


def _best_sentence(row: ClaimRow, sample: Sample, passages: Sequence[PreparedPassage]) -> str | None:
    """The sentence with the highest recall of the claim; the earliest context among equals."""
    ranks = [rank for rank, passage in enumerate(row.matches) if passage.sentence is not None]
    if not ranks:
        return None
    rank = max(ranks, key=lambda index: row.matches[index].sentence_recall)
    start, end = passages[rank].offsets[row.matches[rank].sentence or 0]
    return sample.contexts[rank].text[start:end]


def _is_short(rows: Sequence[ClaimRow], tables: FittedTables) -> bool:
    return len({name for row in rows for name in tables.terms(row.claim.words)}) < relevance.SHORT


def relevance_of(sample: Sample, answer: AnswerClaims, tables: FittedTables) -> list[tuple[float, ...]]:
    """Features of the relevance of each context of a sample, for `training/lexical.py`."""
    compared = comparison(sample, tables, with_sources=False)
    return _relevance_features(compared.rows(answer), compared)


def _relevance(
    rows: Sequence[ClaimRow], used: Sequence[bool], compared: Comparison, *, any_supported: bool
) -> list[float | None]:
    question, passages, tables = compared.question, compared.passages, compared.tables
    by_answer = None
    if any_supported:
        by_answer = [tables.relevance.probability(features) for features in _relevance_features(rows, compared)]
        by_answer = relevance.lift_used(by_answer, used, short=_is_short(rows, tables))
    missing = relevance.identifiers_missing(identifiers(question.text), passages)
    return relevance.apply_rules(by_answer, question.covers, used, len(question.weights), identifiers_missing=missing)


def _relevance_features(rows: Sequence[ClaimRow], compared: Comparison) -> list[tuple[float, ...]]:
    """Features of each context, from whole sentences. The question is added to a short answer."""
    question, tables = compared.question, compared.tables
    rows = list({id(row.whole): row.whole for row in rows}.values())
    answer = " ".join(row.claim.words for row in rows)
    supports: list[tuple[float, ...]] = [row.alone for row in rows]
    if question.whole_weights and _is_short(rows, tables):
        answer = f"{question.text if question.weights else question.whole} {answer}"
        words = claim_words(answer, tables.rarity, tables.split)
        supports = [compared.alone(words, compared.matches(words))]
    weights = weigh(tables.terms(answer), tables.rarity)
    return relevance.rows(weights, question.weights.keys(), compared.passages, supports, compared.check)


def _carriers(claims: Sequence[Claim], rows: Sequence[ClaimRow], compared: Comparison) -> list[set[int]]:
    """Sentences of each context that carry a supported sentence, or are the best of a context that supports a claim."""
    lines: list[set[int]] = [set() for _ in compared.passages]
    refuted = {
        id(row.whole) for claim, row in zip(claims, rows, strict=True) if claim.verdict is not ClaimVerdict.SUPPORTED
    }
    for claim, row in zip(claims, rows, strict=True):
        compared.check()
        for context_lines, passage, whole, cell in zip(lines, row.matches, row.whole.matches, claim.cells, strict=True):
            if id(row.whole) not in refuted:
                context_lines.update(whole.carriers)
            if cell and claim.verdict is ClaimVerdict.SUPPORTED and passage.sentence is not None:
                context_lines.add(passage.sentence)
    return lines


def _covering(compared: Comparison) -> list[set[int]]:
    """Sentences of each context that carry the question, for answers without a supported claim."""
    return [
        {
            index
            for index, terms in checked(enumerate(passage.sentences), compared.check)
            if compared.question.coverage(terms) >= CARRIES
        }
        for passage in compared.passages
    ]


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
