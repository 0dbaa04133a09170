"""Compares the claims of an answer with the contexts by words: a row for each claim, and the ruling by words on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import groupby

from ragwatch.judges.claims.atomic_facts import combine, weakest
from ragwatch.judges.claims.claims import AnswerClaims, ClaimText
from ragwatch.judges.claims.clauses import is_fragment
from ragwatch.judges.claims.conversation import EARLIER, ELLIPTIC, asks_for, completed
from ragwatch.judges.claims.limits import Check, checked, unlimited
from ragwatch.judges.claims.words import identifiers
from ragwatch.judges.lexical.facts import NOTHING_MISSING, MissingFacts, Sources, below, lowered
from ragwatch.judges.lexical.features import (
    ClaimWords,
    PassageMatch,
    claim_words,
    features,
    informed_by,
    joint_support,
    match,
    nearest,
    weigh,
)
from ragwatch.judges.lexical.passages import PreparedPassage, context_text, passages_of
from ragwatch.judges.lexical.relevance import BY_CONTEXT, question_share
from ragwatch.judges.lexical.tables import FittedTables, logistic, logit
from ragwatch.model.evidence import Cell, ClaimVerdict, informed_cells, support_cells
from ragwatch.model.sample import Sample
from ragwatch.statistics.text.alphabet import visible_text

_SLACK = 0.5


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Minimum probabilities at which contexts, together or alone, support a claim, and at which one is relevant."""

    support: float = 0.5
    relevance: float = 0.5


@dataclass(frozen=True, slots=True)
class PreparedQuestion:
    """The question: its terms with their rarity, and how much of it each context covers."""

    text: str  # the question; empty when unknown
    weights: Mapping[str, float]  # terms and whole identifiers, with their rarity
    covers: Sequence[float] | None  # share of that weight in each context; None when the question has no terms
    whole: str  # the question with what it leaves out, see `conversation`; the question itself without earlier turns
    whole_weights: Mapping[str, float]  # the weights of that
    kind: str  # the question that says which kind of thing is asked for

    @property
    def words(self) -> AbstractSet[str]:
        """Words that a claim need not take from the contexts: of the question, as completed if it has hardly any."""
        return (self.weights if len(self.weights) >= ELLIPTIC else self.whole_weights).keys()

    def coverage(self, words: AbstractSet[str]) -> float:
        """Share of the weight in a text, of the question as it is or as completed, whichever is more."""
        share = question_share(self.weights, words, BY_CONTEXT)
        if self.whole_weights is self.weights:
            return share
        return max(share, question_share(self.whole_weights, words, BY_CONTEXT))


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """One claim, compared with every context."""

    claim: ClaimText
    words: ClaimWords
    matches: tuple[PassageMatch, ...]
    # probability that all contexts together support it, lowered by the numbers and names that none of them holds; that
    # of a fact is combined with its sentence's (see `atomic_facts.combine`)
    support: float
    by_words: float  # the same before it was lowered
    alone: tuple[float, ...]  # probability that each alone does, by words, combined alike
    # numbers and names that no context holds; of a fact that is not the weakest of its sentence, numbers
    missing: MissingFacts
    # probability that some of them together do, from their matches
    probability: Callable[[Sequence[PassageMatch]], float]
    question: AbstractSet[str]
    sentence: ClaimRow | None = None  # the row of the sentence that a fact is a part of; None for a whole sentence

    @property
    def whole(self) -> ClaimRow:
        """The row of its sentence; itself if it is a whole one."""
        return self.sentence or self

    def informed_cells(self) -> tuple[Cell | None, ...]:
        """Cells of the claim if it is not supported: those of its sentence, because a fact has few words."""
        whole = self.whole
        informed = informed_by(whole.words, [passage.terms for passage in whole.matches], self.question)
        return informed_cells(len(self.matches), informed)

    def support_cells(self, alone: Sequence[int], least: float) -> tuple[Cell | None, ...]:
        """Cells of the claim if it is supported, by these contexts alone or, without any, by its support set.

        A fact that has no support set of its own, because its support is that of its sentence, has the sentence's.

        Args:
            alone: Ranks of the contexts that support it alone. Those with clearly less of its words are not marked.
            least: Minimum probability by words at which a set supports it; not above that of all contexts together.
        """
        if not alone and self.sentence:
            own = joint_support(self.matches, self.alone, self.probability, least)
            return support_cells(len(self.matches), (), own) if own else self.sentence.support_cells((), least)
        together = () if alone else joint_support(self.matches, self.alone, self.probability, least)
        if not alone and not together:  # its words are those of the question
            alone = range(len(self.matches))[:1]
        return support_cells(len(self.matches), nearest(self.matches, alone), together)


@dataclass(frozen=True, slots=True)
class ClaimRuling:
    """Ruling on one claim: what each context is to it (`cells`), and whether contradiction was read too (`against`)."""

    verdict: ClaimVerdict
    support: float
    cells: tuple[Cell | None, ...]
    against: bool = False


@dataclass(frozen=True, slots=True)
class ModelRules:
    """When the readings of a model become verdicts, and how much it reads."""

    lexical: Thresholds  # thresholds of the lexical ruling
    supported_from: float  # minimum probability at which a claim counts as supported
    contradicted_from: float  # minimum probability at which a claim that is not supported counts as contradicted
    max_pairs: int  # maximum number of inputs of a sample that the model reads; it bounds the time


def least_together(row: ClaimRow) -> float:
    """Minimum probability by words at which contexts together support a claim that a model calls supported.

    It lies `_SLACK` below that of all contexts, in logits: without slack every context with any word would be needed.
    """
    return logistic(logit(row.by_words) - _SLACK)


def _fragment(row: ClaimRow, thresholds: Thresholds) -> ClaimRow:
    """A bare fragment, which answers its question only if its words stand together in a sentence of a context."""
    if any(passage.sentence_recall == 1.0 for passage in row.matches):
        return row
    missing = row.missing._replace(apart=True)
    return replace(row, support=below(row.support, missing, thresholds.support), missing=missing)


def _lesser(row: ClaimRow, own: ClaimRow) -> ClaimRow:
    """A fact with its subject, supported no more than without it: naming the subject alone supports nothing."""
    return replace(
        row,
        support=min(row.support, own.support),
        by_words=min(row.by_words, own.by_words),
        alone=tuple(map(min, row.alone, own.alone)),
        missing=own.missing,
    )


def _facts(whole: ClaimRow, parts: Sequence[ClaimRow], thresholds: Thresholds) -> Iterator[ClaimRow]:
    """The rows of the facts of a sentence, combined with its own.

    Single contexts are read by the whole sentence if one of them supports it, because a few words may stand anywhere.
    A missing name lowers the sentence, and with it the weakest fact; a missing number lowers every fact that states it.
    """
    least = weakest([part.support for part in parts])
    by_words = combine(whole.by_words, [part.by_words for part in parts])
    columns = [combine(value, [part.alone[rank] for part in parts]) for rank, value in enumerate(whole.alone)]
    has_source = any(value >= thresholds.support for value in whole.alone)
    for index, (part, words_support) in enumerate(zip(parts, by_words, strict=True)):
        missing = whole.missing if index == least else part.missing._replace(names=0, subjects=0)
        support = whole.support if index == least else max(whole.support, lowered(part.by_words, missing))
        alone = whole.alone if has_source else tuple(min(column[index], words_support) for column in columns)
        yield replace(part, support=support, by_words=words_support, alone=alone, missing=missing, sentence=whole)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The contexts and the question of a sample, prepared so that claims can be compared with them."""

    texts: Sequence[str]  # the contexts as they are read
    passages: Sequence[PreparedPassage]
    question: PreparedQuestion
    tables: FittedTables
    thresholds: Thresholds
    # what contexts and question state; None where no probability is lowered by what they do not state
    sources: Sources | None
    check: Check  # called between short steps; raises to stop the reading

    def rows(self, answer: AnswerClaims) -> list[ClaimRow]:
        """A row for each claim. Claims with equal words, which models may repeat, are compared once."""
        by_words: dict[str, ClaimRow] = {}

        def row_of(claim: ClaimText) -> ClaimRow:
            row = by_words.get(claim.words)
            by_words[claim.words] = row = replace(row, claim=claim) if row else self._row(claim)
            return row

        if self.question.text and self.tables.split is None and len(answer.claims) == 1:
            only = answer.claims[0]
            if only.start == 0 and is_fragment(only.words):  # a list item is none
                return [_fragment(row_of(only), self.thresholds)]
        rows: list[ClaimRow] = []
        for sentence, group in groupby(answer.claims, key=lambda claim: claim.sentence or claim):
            facts = list(group)
            whole = row_of(sentence)
            if facts[0] is sentence:
                rows.append(whole)
            else:
                own = [row_of(fact._replace(words=fact.own)) for fact in facts]
                parts = [_lesser(row_of(fact), part) for fact, part in zip(facts, own, strict=True)]
                rows += _facts(whole, parts, self.thresholds)
        return rows

    def _row(self, claim: ClaimText) -> ClaimRow:
        sentence = claim.sentence.words if claim.sentence else ""
        said = claim.words if self.sources is None else self.sources.rewritten(claim.words, sentence)
        words = claim_words(said, self.tables.rarity, self.tables.split)
        matches = self.matches(words)
        alone = self.alone(words, matches)

        def probability(some: Sequence[PassageMatch]) -> float:
            self.check()
            return self.tables.support.probability(features(words, some, self.question.words))

        together = probability(matches)
        by_words = max(together, *alone) if alone else together
        missing = NOTHING_MISSING if self.sources is None else self.sources.missing(claim.words, sentence)
        return ClaimRow(
            claim,
            words,
            matches,
            support=lowered(by_words, missing),
            by_words=by_words,
            alone=alone,
            missing=missing,
            probability=probability,
            question=self.question.words,
        )

    def matches(self, words: ClaimWords) -> tuple[PassageMatch, ...]:
        """Compare words with each context."""
        return tuple(match(words, passage) for passage in checked(self.passages, self.check))

    def alone(self, words: ClaimWords, matches: Sequence[PassageMatch]) -> tuple[float, ...]:
        """Probabilities that each context alone supports words."""
        return tuple(
            self.tables.support.probability(features(words, (passage,), self.question.words))
            for passage in checked(matches, self.check)
        )


def comparison(
    sample: Sample,
    tables: FittedTables,
    thresholds: Thresholds = Thresholds(),
    check: Check = unlimited,
    *,
    with_sources: bool = True,
) -> Comparison:
    """Prepare the contexts and the question of a sample. Numbers and names are looked for in English only."""
    passages = passages_of((context.text for context in sample.contexts), check, tables.split)
    texts = [context_text(context.text) for context in sample.contexts]
    question = _prepared_question(sample, passages, tables)
    sources = None
    if with_sources and tables.split is None:
        sources = Sources(texts, question.text, (one.terms for one in passages), tables, check)
    return Comparison(texts, passages, question, tables=tables, thresholds=thresholds, sources=sources, check=check)


def _prepared_question(sample: Sample, passages: Sequence[PreparedPassage], tables: FittedTables) -> PreparedQuestion:
    """Weigh the words of a question and of what it leaves out, and compute how much of them each context covers."""
    question = visible_text(sample.question or "")
    turns = [visible_text(turn) for turn in sample.user_turns] if question and tables.split is None else []
    weights = whole_weights = _weights(question, tables)
    whole = completed(question, turns)
    if whole != question:
        earlier = _weights(whole, tables)
        whole_weights = {name: weight * (1.0 if name in weights else EARLIER) for name, weight in earlier.items()}
    prepared = PreparedQuestion(question, weights, None, whole, whole_weights, kind=asks_for(question, turns))
    covers = [prepared.coverage(passage.terms) for passage in passages] if whole_weights else None
    return replace(prepared, covers=covers)


def _weights(question: str, tables: FittedTables) -> dict[str, float]:
    return weigh([*tables.terms(question), *sorted(identifiers(question))], tables.rarity)


def combined(whole: ClaimRuling, facts: Sequence[ClaimRuling]) -> list[ClaimRuling]:
    """Rulings on the facts of a sentence; its own stands for that on its weakest fact (see `atomic_facts.combine`)."""
    least = weakest([fact.support for fact in facts])
    return [
        whole if index == least else replace(fact, support=max(whole.support, fact.support))
        for index, fact in enumerate(facts)
    ]


def ruling_by_words(row: ClaimRow, rules: ModelRules) -> ClaimRuling:
    """Rule by words on a claim that a model did not read: where no context has a word of it, none contradicts it."""
    no_words = all(passage.sentence is None for passage in row.matches)
    return replace(lexical_ruling(row, rules.lexical), against=no_words)


def lexical_ruling(row: ClaimRow, thresholds: Thresholds) -> ClaimRuling:
    """Rule on a claim by words. They cannot tell a contradiction from an unsupported claim."""
    if row.support < thresholds.support:
        return ClaimRuling(ClaimVerdict.NOT_IN_CONTEXT, row.support, row.informed_cells())
    alone = [rank for rank, probability in enumerate(row.alone) if probability >= thresholds.support]
    has_source = any(probability >= thresholds.support for probability in row.whole.alone)
    cells = (row.whole if has_source else row).support_cells(alone, thresholds.support)
    verbatim = [rank for rank, match in enumerate(row.matches) if row.sentence and match.sentence_recall >= 1.0]
    if not any(cells[rank] for rank in verbatim) and verbatim:  # where it stands, not where its sentence is nearest
        cells = row.support_cells(verbatim, thresholds.support)
    return ClaimRuling(ClaimVerdict.SUPPORTED, row.support, cells)
