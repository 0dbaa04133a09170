"""Chooses what the demo answers: whole sentences of one passage, or nothing."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from ragwatch.demo import tokenizer
from ragwatch.demo.corpus import Passage

MIN_COVERAGE = 0.6  # share of the question's weight below which a passage does not answer it
MAX_SENTENCES = 3
_RANK_MARGIN = 0.06  # additional share of the question's weight by which a passage beats the one ranked above it
_FIRST_MARGIN = 0.15  # additional share of the question's weight by which a sentence beats the first
_MIN_GAIN = 0.08  # share of the question's weight that a further sentence must add


class Quote(NamedTuple):
    """Sentences of one passage.

    Attributes:
        rank: 0-based position of the passage among those that were retrieved.
        title: Its title.
        sentences: Some of its sentences, in their order.
    """

    rank: int
    title: str
    sentences: tuple[str, ...]


class Answerer:
    """Selects the sentences that share the rarest words with the question, by their frequency in the passages."""

    def __init__(self, passages: Iterable[Passage]) -> None:
        corpus = tuple(passages)
        self._idf = inverse_document_frequencies(corpus)
        self._unknown_idf = math.log(1 + 2 * len(corpus))  # rarer than a word of one passage

    def coverage(self, question: str, text: str) -> float:
        """Share of the question's weight (inverse document frequency of its words) that the text contains, 0 to 1."""
        weights = self._weights(question)
        contained = set(tokenizer.content(text))
        total = sum(weights.values())
        return sum(weight for word, weight in weights.items() if word in contained) / total if total else 0.0

    def answer(self, question: str, passages: Sequence[Passage]) -> Quote | None:
        """Quotes one to three sentences of one passage; None if none covers the question."""
        best = self._best(question, passages)
        return None if best is None else self.quote(question, passages, best)

    def quote(self, question: str, passages: Sequence[Passage], rank: int) -> Quote:
        """Quotes the sentences of the passage of this rank that best cover the question, in their order."""
        passage = passages[rank]
        weights = self._weights(question)
        lines = tokenizer.sentences(passage.body)
        kept = {self._first(weights, lines)}
        missing = set(weights) - set(tokenizer.content(f"{passage.title} {lines[min(kept)]}"))
        while len(kept) < min(MAX_SENTENCES, len(lines)):
            gains = {
                index: sum(weights[word] for word in missing & set(tokenizer.content(line)))
                for index, line in enumerate(lines)
                if index not in kept
            }
            index = max(gains, key=lambda index: (gains[index], -index))
            if gains[index] < _MIN_GAIN * sum(weights.values()):
                break
            kept.add(index)
            missing -= set(tokenizer.content(lines[index]))
        return Quote(rank, passage.title, tuple(lines[index] for index in sorted(kept)))

    def wrong_rank(self, question: str, passages: Sequence[Passage]) -> int:
        """Rank of a wrong passage: of those below the first, the least similar to the question and to the first.

        Simulates a model that ignores the best document of its prompt. A single passage is returned as it is.
        """
        top = passages[0]
        ranks = range(len(passages))
        lower = [rank for rank in ranks if passages[rank].title != top.title] or ranks[1:] or ranks
        texts = [passage.text for passage in passages]
        return min(lower, key=lambda rank: self.coverage(question, texts[rank]) + self.coverage(texts[rank], top.text))

    def _best(self, question: str, passages: Sequence[Passage]) -> int | None:
        # The order of the retriever counts, unless a lower passage covers clearly more.
        scored = [
            (self.coverage(question, passage.text) - _RANK_MARGIN * rank, rank) for rank, passage in enumerate(passages)
        ]
        if not scored:
            return None
        score, rank = max(scored, key=lambda pair: (pair[0], -pair[1]))
        return rank if score + _RANK_MARGIN * rank >= MIN_COVERAGE else None

    def _first(self, weights: Mapping[str, float], lines: Sequence[str]) -> int:
        """Index of the opening sentence: the first, which defines the term, unless another covers clearly more."""
        coverage = [sum(weights.get(word, 0.0) for word in tokenizer.content(line)) for line in lines]
        coverage[0] += _FIRST_MARGIN * sum(weights.values())
        return coverage.index(max(coverage))

    def _weights(self, question: str) -> dict[str, float]:
        return {word: self._idf.get(word, self._unknown_idf) for word in tokenizer.content(question)}


@cache
def inverse_document_frequencies(passages: tuple[Passage, ...]) -> Mapping[str, float]:
    """Inverse document frequency of each stem: log(1 + passages / passages that contain it)."""
    counts = Counter(word for passage in passages for word in tokenizer.content(passage.text))
    return MappingProxyType({word: math.log(1 + len(passages) / count) for word, count in counts.items()})
