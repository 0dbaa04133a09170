"""Answerer: the generator of the demo. It answers with whole sentences of the passages, or admits that it cannot."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from types import MappingProxyType

from ragwatch.demo import words
from ragwatch.demo.corpus import Passage

ABSTENTION = "I could not find that in the documentation."
LEAST_COVERAGE = 0.6  # of the question's weight, below which the passages are taken to say nothing of it
MOST_SENTENCES = 3
_TRUST = 0.06  # share of the question's weight a passage has to say more to be preferred to the one ranked above
_OPENING = 0.15  # share of the question's weight by which another sentence has to beat the first
_WORTH_ADDING = 0.08  # share of the question's weight a further sentence has to add


class Answerer:
    """Chooses the sentences that share the question's rarest words.

    Args:
        passages: The documentation, from which it is counted how rare a word is.
    """

    def __init__(self, passages: Iterable[Passage]) -> None:
        known = tuple(passages)
        self._rarity = rarity(known)
        self._unheard_of = math.log(1 + 2 * len(known))  # rarer than what stands in one passage

    def coverage(self, question: str, text: str) -> float:
        """Share of the question's weight (inverse document frequency of its words) that the text holds, in [0, 1]."""
        asked = self._weights(question)
        held = set(words.content(text))
        whole = sum(asked.values())
        return sum(weight for word, weight in asked.items() if word in held) / whole if whole else 0.0

    def answer(self, question: str, passages: Sequence[Passage]) -> str:
        """One to three sentences of one passage, after its name; the abstention when none covers the question."""
        best = self._best(question, passages)
        return ABSTENTION if best is None else self.quote(question, best)

    def quote(self, question: str, passage: Passage) -> str:
        """The sentences of the passage that say most about the question, in their own order, after its name."""
        asked = self._weights(question)
        lines = words.sentences(passage.body)
        kept = {self._first(asked, lines)}
        missing = set(asked) - set(words.content(f"{passage.title} {lines[min(kept)]}"))
        while len(kept) < min(MOST_SENTENCES, len(lines)):
            gains = {
                at: sum(asked[word] for word in missing & set(words.content(line)))
                for at, line in enumerate(lines)
                if at not in kept
            }
            at = max(gains, key=lambda at: (gains[at], -at))
            if gains[at] < _WORTH_ADDING * sum(asked.values()):
                break
            kept.add(at)
            missing -= set(words.content(lines[at]))
        return f"{passage.title}: {' '.join(lines[at] for at in sorted(kept))}"

    def misfit(self, question: str, passages: Sequence[Passage]) -> Passage:
        """The passage below the first that has the least in common with the question and with the first.

        What a model reads that loses the best document in the middle of its prompt. The first, when it is alone.
        """
        top = passages[0]
        lower = [passage for passage in passages if passage.title != top.title] or passages[1:] or passages
        return min(lower, key=lambda one: self.coverage(question, one.text) + self.coverage(one.text, top.text))

    def _best(self, question: str, passages: Sequence[Passage]) -> Passage | None:
        # The retriever's order is trusted unless a lower passage covers clearly more.
        scored = [
            (self.coverage(question, passage.text) - _TRUST * rank, rank) for rank, passage in enumerate(passages)
        ]
        if not scored:
            return None
        score, rank = max(scored, key=lambda pair: (pair[0], -pair[1]))
        return passages[rank] if score + _TRUST * rank >= LEAST_COVERAGE else None

    def _first(self, asked: Mapping[str, float], lines: Sequence[str]) -> int:
        """The first sentence tells what a thing is; another leads only when it says more about the question."""
        told = [sum(asked.get(word, 0.0) for word in words.content(line)) for line in lines]
        told[0] += _OPENING * sum(asked.values())
        return told.index(max(told))

    def _weights(self, question: str) -> dict[str, float]:
        return {word: self._rarity.get(word, self._unheard_of) for word in words.content(question)}


@cache
def rarity(passages: tuple[Passage, ...]) -> Mapping[str, float]:
    """Of each word's stem, log(1 + passages / passages that hold it)."""
    counts = Counter(word for passage in passages for word in words.content(passage.text))
    return MappingProxyType({word: math.log(1 + len(passages) / count) for word, count in counts.items()})
