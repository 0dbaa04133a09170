"""Selects the sentences of passages that the cross-encoder reads together with a claim.

The model reads a hundred words, a context has thousands. Sentences are selected greedily by the IDF weight of the claim
that they add to the selection, so that a claim made of two facts gets both of their sentences. Training and run time
both use this module, because the model needs the same kind of text as in training.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from ragwatch.judges.claims.words import terms
from ragwatch.judges.lexical.features import ClaimWords, coverage
from ragwatch.judges.lexical.passages import PreparedPassage

BUDGET = 95
"""Default number of words of a window."""

MAX_SENTENCES = 6
"""Maximum number of sentences of a window."""

MAX_SENTENCE_WORDS = 60
"""Maximum number of words of a sentence; a longer one is truncated, so that two of them fit."""

MIN_PART_WORDS = 8
"""Minimum number of words of a truncated sentence."""

MIN_FREE_WORDS = 3
"""A window with fewer free words than these is full."""

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
