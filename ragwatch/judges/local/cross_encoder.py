"""Rules on claims with a cross-encoder, after the lexical judge.

The cross-encoder reads a claim with all contexts together, because a swapped name or a negation does not show in the
words. It reads a hundred words, a context has thousands: sentences are selected greedily by the IDF weight of the claim
that they add to the selection, so that a claim made of two facts gets both of their sentences (`window`, which training
uses too, because the model needs the same kind of text as in training).

Which contexts a supported claim uses is decided by words: the model, reading single contexts, was no better. The
lexical ruling stands for a claim without a word in any context, and for pairs that the model cannot read, or that
exceed `max_pairs` (counted, see `LexicalOnlyReason`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import groupby
from math import inf
from typing import TYPE_CHECKING

from ragwatch.judges.claims.limits import Deadline, checked
from ragwatch.judges.claims.words import STOP_WORDS, TOKEN
from ragwatch.judges.lexical.facts import below, capped, missing_weight
from ragwatch.judges.lexical.features import missing_run
from ragwatch.judges.lexical.passages import PreparedPassage
from ragwatch.judges.lexical.rows import ClaimRow, ClaimRuling, ModelRules, combined, least_together, ruling_by_words
from ragwatch.judges.lexical.tables import logit
from ragwatch.judges.local.artefact import BUDGET, MIN_PART_WORDS, ModelArtefact, ModelSignals, numbers
from ragwatch.model.evidence import Cell, ClaimVerdict

if TYPE_CHECKING:  # it imports the packages of an extra
    from ragwatch.judges.local.session import PairModel
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from heapq import heapify, heappop, heappush

from ragwatch.judges.claims.words import terms
from ragwatch.judges.lexical.features import ClaimWords, coverage

MAX_SENTENCES = 6  # maximum number of sentences of a window
MAX_SENTENCE_WORDS = 60  # a longer sentence is truncated, so that two of them fit
MIN_FREE_WORDS = 3  # a window with fewer free words than these is full
_WORD = re.compile(r"\S{1,24}")  # a run without spaces (a hash, a table's rule, base64) counts as several words


@dataclass(frozen=True, slots=True)
class _SentenceMatch:
    """A sentence with terms of the claim: its position, these terms, and their share of the weight."""

    place: tuple[int, int]
    terms: AbstractSet[str]
    recall: float


def window(
    words: ClaimWords, passages: Sequence[PreparedPassage], texts: Sequence[str], *, budget: int = BUDGET
) -> str:
    """Select the evidence for a claim: sentences in the order of the documents, joined by a space; "" without any.

    Sentences are selected by the weight that they add to the terms already covered (then by their own recall, then by
    position). When nothing is added any more, the remaining words go to the sentences with the highest recall.

    >>> from ragwatch.judges.lexical.features import claim_words
    >>> from ragwatch.judges.lexical.passages import passage
    >>> texts = ["Tea is green. It rains.", "Lions sleep. Coffee, unlike tea, is black."]
    >>> window(claim_words("Tea is green and coffee is black.", {}), list(map(passage, texts)), texts)
    'Tea is green. Coffee, unlike tea, is black.'
    """
    chosen: dict[tuple[int, int], str] = {}
    free = budget
    lines = [  # sentences with terms of the claim, in the order of the documents
        _SentenceMatch((rank, index), shared, coverage(words.rarity, shared))
        for rank, passage in enumerate(passages)
        if not words.rarity.keys().isdisjoint(passage.terms)
        for index, sentence in enumerate(passage.sentences)
        if (shared := words.rarity.keys() & sentence)
    ]
    for line, added in _by_gain(words, lines):
        rank, index = line.place
        start, end = passages[rank].offsets[index]
        part, count, is_whole = _truncated(
            texts[rank][start:end], words, added or line.terms, min(free, MAX_SENTENCE_WORDS)
        )
        if part in chosen.values() or not (is_whole or count >= min(MIN_PART_WORDS, budget)):  # duplicate passage
            continue
        chosen[line.place] = part
        free -= count
        if free < MIN_FREE_WORDS or len(chosen) == MAX_SENTENCES:
            break
    return " ".join(chosen[place] for place in sorted(chosen))


def _by_gain(words: ClaimWords, lines: Sequence[_SentenceMatch]) -> Iterator[tuple[_SentenceMatch, AbstractSet[str]]]:
    """Yield sentences by the weight that they add to the previous ones, each with the terms that it adds.

    The gain of a sentence never grows (lazy greedy selection), so the top of the heap is best once its gain is updated.
    """
    covered: set[str] = set()
    heap = [(-line.recall, -line.recall, order) for order, line in enumerate(lines)]
    heapify(heap)
    while heap:
        gain, recall, order = heappop(heap)
        added = lines[order].terms - covered
        updated = -coverage(words.rarity, added)
        if updated != gain:
            heappush(heap, (updated, recall, order))
            continue
        covered |= added
        yield lines[order], added


def _truncated(sentence: str, words: ClaimWords, targets: AbstractSet[str], free: int) -> tuple[str, int, bool]:
    """Truncate a sentence to `free` words around the target terms. Also returns its words, and whether it is whole."""
    tokens = list(_WORD.finditer(sentence))
    first, count = 0, min(free, len(tokens))
    if len(tokens) > free:
        held = [targets & frozenset(terms(token.group())) for token in tokens]
        first = _densest(held, words, free)
    part = sentence[tokens[first].start() : tokens[first + count - 1].end()]
    return " ".join(part.split()), count, count == len(tokens)


def _densest(held: Sequence[AbstractSet[str]], words: ClaimWords, free: int) -> int:
    """Index of the first of the `free` words with the highest weight of terms, which are centred in them."""
    inside: Counter[str] = Counter()
    best, span = 0.0, (0, 0)
    places = [place for place, names in enumerate(held) if names]
    left = 0
    for right in places:
        inside.update(held[right])
        while places[left] <= right - free:
            inside.subtract(held[places[left]])
            left += 1
        weight = coverage(words.rarity, {name for name, times in inside.items() if times})
        if weight > best:
            best, span = weight, (places[left], right)
    first, last = span
    slack = free - (last - first + 1)
    return max(0, min(first - slack // 2, len(held) - free))


MAX_UNKNOWN_SHARE = 0.15
"""The model does not read a text with a larger share of word pieces that are not in its vocabulary."""

CELL_FROM = 0.3
"""Minimum probability by words at which a context alone is a cell of a claim that the model calls supported: at .3 as
many cited passages are cells as when the model read each context."""

_JOINT = 1.0
_MIN_LANGUAGE_WORDS = 10  # a shorter text may have no function words
_MIN_FUNCTION_WORDS_SHARE = 0.17
_MAX_OTHER_LETTERS_SHARE = 0.3
_LETTER = re.compile(r"[^\W\d_]")
_OTHER_LETTER = re.compile("[^\\W\\d_\u0000-\u024f\u1e00-\u1eff\uff21-\uff5a]")  # full-width Latin is Latin

Pair = tuple[str, str]
"""A claim and its evidence."""


class LexicalOnlyReason(StrEnum):
    """Why the lexical ruling stands instead of the model's. The values are label values of a series."""

    LANGUAGE = "language"
    TOO_MANY = "too_many"


@dataclass(frozen=True, slots=True)
class CrossEncoderPass:
    """Rules on claims with the model and the comparison of words. It is a `reader.CrossEncoder`.

    `on_lexical_only` is called with the number of pairs of a sample that the model did not read, by reason.
    """

    artefact: ModelArtefact
    model: PairModel
    rules: ModelRules
    on_lexical_only: Callable[[Mapping[LexicalOnlyReason, int]], None]

    def __call__(
        self,
        rows: Sequence[ClaimRow],
        passages: Sequence[PreparedPassage],
        texts: Sequence[str],
        *,
        deadline: Deadline | None = None,
    ) -> list[ClaimRuling]:
        """Rule on each row. The deadline does not include the time of the model, which `max_pairs` bounds.

        The model reads whole sentences first, then the facts of those that it does not call supported. The facts of a
        supported sentence have its cells; if it needs several contexts, they have their own.
        """
        deadline = deadline or Deadline(inf)
        reader = _PairReader(self.model, self.rules.max_pairs, deadline)

        def read(some: Sequence[ClaimRow]) -> dict[int, ClaimRuling | None]:
            """Rule on claims, the supported ones without cells, by row; None where the model did not read."""
            pairs = [
                (" ".join(row.claim.words.split()), window(row.words, passages, texts, budget=self.artefact.budget))
                for row in checked(some, deadline)
            ]
            reader.read(pairs)
            return {id(row): self._together(row, reader.signals(pair)) for row, pair in zip(some, pairs, strict=True)}

        sentences = {id(row.whole): row.whole for row in rows}
        whole = {key: self._with_cells(sentences[key], one) for key, one in read(list(sentences.values())).items()}
        own = read([row for row in rows if row.sentence and _is_doubtful(whole[id(row.sentence)])])
        rulings = [
            ruling
            for _, group in groupby(rows, key=lambda row: id(row.whole))
            for ruling in self._combined(list(group), whole, own)
        ]
        self.on_lexical_only(+reader.lexical_only)
        return [
            self._with_cells(row, ruling) or ruling_by_words(row, self.rules)
            for row, ruling in zip(rows, rulings, strict=True)
        ]

    def _combined(
        self, facts: Sequence[ClaimRow], whole: Mapping[int, ClaimRuling | None], own: Mapping[int, ClaimRuling | None]
    ) -> list[ClaimRuling | None]:
        """Rule on the facts of a sentence as `atomic_facts.combine` does, or on the sentence if it is not split.

        The rulings on whole sentences, and on the `own` facts of doubtful ones, are by row.
        """
        ruling = whole[id(facts[0].whole)]
        if ruling is None or facts[0].sentence is None:
            return [ruling] * len(facts)
        if not _is_doubtful(ruling):
            is_joint = Cell.ALONE not in ruling.cells
            return [replace(ruling, cells=()) if is_joint else ruling for _ in facts]
        return list(combined(ruling, [own[id(row)] or ruling_by_words(row, self.rules) for row in facts]))

    def _together(self, row: ClaimRow, signals: ModelSignals | None) -> ClaimRuling | None:
        """Rule on a claim; a supported one gets its cells later. None if not read."""
        if signals is None:
            return None
        values = numbers(logit(row.by_words), signals, missing_run(row.words, row.matches))
        # Before the curve, as the weights were fitted: after it the same weight would count twice as much.
        support = capped(self.artefact.support.probability(values, missing_weight(row.missing)), row.missing)
        support = below(support, row.missing, self.rules.supported_from)
        against = self.artefact.contradiction.probability(values)
        verdict = ClaimVerdict.SUPPORTED
        if support < self.rules.supported_from:
            contradicted = against >= self.rules.contradicted_from
            verdict = ClaimVerdict.CONTRADICTED if contradicted else ClaimVerdict.NOT_IN_CONTEXT
        cells = () if verdict is ClaimVerdict.SUPPORTED else row.informed_cells()
        return ClaimRuling(verdict, support, cells, against=True)

    def _with_cells(self, row: ClaimRow, ruling: ClaimRuling | None) -> ClaimRuling | None:
        """Add the cells to a ruling that has none, by words."""
        if ruling is None or ruling.verdict is not ClaimVerdict.SUPPORTED or ruling.cells:
            return ruling
        # The model is lenient with a context that states only a part of a claim whose words are from several.
        is_joint = logit(row.by_words) - logit(max(row.alone)) > _JOINT
        alone = [] if is_joint else [rank for rank, value in enumerate(row.alone) if value >= CELL_FROM]
        return replace(ruling, cells=row.support_cells(alone, least_together(row)))


def _is_doubtful(ruling: ClaimRuling | None) -> bool:
    """Whether the model has read a sentence and does not call it supported."""
    return ruling is not None and ruling.verdict is not ClaimVerdict.SUPPORTED


class _PairReader:
    """Reads the pairs of one sample with the model: each pair once, and at most `max_pairs`."""

    def __init__(self, model: PairModel, max_pairs: int, deadline: Deadline) -> None:
        self.lexical_only: Counter[LexicalOnlyReason] = Counter()
        self._model = model
        self._deadline = deadline
        self._pairs_left = max_pairs
        self._signals: dict[Pair, ModelSignals | None] = {}

    def signals(self, pair: Pair) -> ModelSignals | None:
        """Output of the model for a pair; None if it was not read."""
        return self._signals.get(pair)

    def read(self, pairs: Iterable[Pair]) -> None:
        """Read the pairs that have evidence, were not read before, and are in the language of the model."""
        new = [pair for pair in dict.fromkeys(pairs) if pair[1] and pair not in self._signals]
        self._signals.update(dict.fromkeys(new))
        english = [pair for pair in checked(new, self._deadline) if is_english(" ".join(pair))]
        self.lexical_only[LexicalOnlyReason.LANGUAGE] += len(new) - len(english)
        self.lexical_only[LexicalOnlyReason.TOO_MANY] += max(0, len(english) - self._pairs_left)
        with self._deadline.paused():
            self._run(english)

    def _run(self, pairs: Sequence[Pair]) -> None:
        tokenized = dict(zip(pairs, self._model.pairs(pairs[: self._pairs_left]), strict=False))
        readable = {pair: pieces for pair, pieces in tokenized.items() if pieces.unknown <= MAX_UNKNOWN_SHARE}
        self.lexical_only[LexicalOnlyReason.LANGUAGE] += len(tokenized) - len(readable)
        self._pairs_left -= len(readable)
        self._signals.update(zip(readable, self._model.read(list(readable.values())), strict=True))


def is_english(text: str) -> bool:
    """Whether a text is in English, the language of the model.

    English is recognised by its function words: of claims and their evidence in seven labelled sets 99.5 % have a share
    of .19 or more; sentences of a dozen other languages in Latin letters have .15 or less, most of them none. Other
    scripts are recognised by their letters. A false negative (a table, a list of names) gets the lexical ruling.

    >>> is_english("The lamp of the old mill burned out in May, so they put in a new one.")
    True
    >>> is_english("Die Lampe der alten Mühle ist im Mai ausgegangen und niemand hat sie bisher ersetzt.")
    False
    """
    letters = len(_LETTER.findall(text))
    if letters and len(_OTHER_LETTER.findall(text)) > _MAX_OTHER_LETTERS_SHARE * letters:
        return False
    # Accents stay: `à` is not `a`.
    words = [word for word in TOKEN.findall(text.lower()) if word[0].isalpha()]
    function_words = sum([word in STOP_WORDS for word in words])
    return len(words) < _MIN_LANGUAGE_WORDS or function_words >= _MIN_FUNCTION_WORDS_SHARE * len(words)
