"""Evidence: the few sentences of some passages that a model reads beside one claim.

A model reads a hundred words, a context holds thousands. Sentences are chosen for what they hold of the claim's weight
(IDF), each for what the ones before it lack, so that a claim made of two facts brings home both of their sentences.
Training and run time build their evidence here and nowhere else: a model is only as good as its text is the same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from ragwatch.judges.lexical.features import ClaimWords, recall_of
from ragwatch.judges.lexical.passages import PreparedPassage
from ragwatch.judges.lexical.words import TOKEN, fold, term

BUDGET = 95
"""Words of a window, as a rule."""

SENTENCES = 6
"""Sentences of a window at most."""

LONG = 60
"""A longer sentence is cut to this many words: two of them should find room."""

ROOM = 8
"""Fewer words than these are no part of a sentence worth reading; only a whole one may fill such room."""

FULL = 3
"""With room for fewer words than these, a window is full."""

_WORD = re.compile(r"\S{1,24}")  # a run without spaces (a hash, a table's rule, base64) counts as several words


class EvidenceWindow(NamedTuple):
    """Evidence for one claim.

    Attributes:
        text: The chosen sentences in the order of the documents, joined by a space; empty when none holds a term.
        best: (context rank, sentence index) of the one sentence that holds most of the claim; None when none does.
    """

    text: str
    best: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class _SentenceMatch:
    """A sentence that holds some of the claim: where it stands, the terms it holds, and their share of the weight."""

    place: tuple[int, int]
    found: AbstractSet[str]
    recall: float


def window(
    words: ClaimWords, passages: Sequence[PreparedPassage], texts: Sequence[str], *, budget: int = BUDGET
) -> EvidenceWindow:
    """The evidence for a claim among some passages.

    First the sentence that adds most weight to what is covered (of equals, the one that holds most of the claim by
    itself; of equals again, the earliest), then the next, while anything is added; what room is left goes to the
    sentences that hold most of the claim, covered or not.

    Args:
        words: The claim, read.
        passages: One for a cell; all of them for the row "all contexts together".
        texts: What each passage was read from.
        budget: Words of the window at most.

    >>> from ragwatch.judges.lexical.features import claim_words
    >>> from ragwatch.judges.lexical.passages import passage
    >>> texts = ["Tea is green. It rains.", "Lions sleep. Coffee, unlike tea, is black."]
    >>> window(claim_words("Tea is green and coffee is black.", {}), list(map(passage, texts)), texts)
    Window(text='Tea is green. Coffee, unlike tea, is black.', best=(1, 1))
    """
    lines = _lines(words, passages)
    chosen: dict[tuple[int, int], str] = {}
    room = budget
    for line, fresh in _by_gain(words, lines):
        rank, index = line.place
        start, end = passages[rank].offsets[index]
        part, count, whole = _fitted(texts[rank][start:end], words, fresh or line.found, min(room, LONG))
        if part in chosen.values() or not (whole or count >= min(ROOM, budget)):  # retrievers return a passage twice
            continue
        chosen[line.place] = part
        room -= count
        if room < FULL or len(chosen) == SENTENCES:
            break
    best = max(lines, key=lambda line: line.recall, default=None)
    return EvidenceWindow(" ".join(chosen[place] for place in sorted(chosen)), best.place if best else None)


def _lines(words: ClaimWords, passages: Sequence[PreparedPassage]) -> list[_SentenceMatch]:
    """The sentences that hold any of the claim, in the order of the documents."""
    terms = words.rarity.keys()
    return [
        _SentenceMatch((rank, index), found, recall_of(words, found))
        for rank, passage in enumerate(passages)
        if not terms.isdisjoint(passage.terms)
        for index, sentence in enumerate(passage.sentences)
        if (found := terms & sentence)
    ]


def _by_gain(words: ClaimWords, lines: Sequence[_SentenceMatch]) -> Iterator[tuple[_SentenceMatch, AbstractSet[str]]]:
    """Sentences in the order in which they add to what the ones before them cover, each with the terms it adds.

    What a sentence adds can only shrink, so the first of the heap is the best once its own figure is up to date.
    """
    covered: set[str] = set()
    heap = [(-line.recall, -line.recall, order) for order, line in enumerate(lines)]
    heapify(heap)
    while heap:
        gain, recall, order = heappop(heap)
        fresh = lines[order].found - covered
        now = -recall_of(words, fresh)
        if now != gain:
            heappush(heap, (now, recall, order))
            continue
        covered |= fresh
        yield lines[order], fresh


def _fitted(sentence: str, words: ClaimWords, wanted: AbstractSet[str], room: int) -> tuple[str, int, bool]:
    """A sentence, cut to `room` words around the terms wanted; how many words that is, and whether it is all of it."""
    found = list(_WORD.finditer(sentence))
    first, count = 0, min(room, len(found))
    if len(found) > room:
        first = _densest([_terms(word.group(), wanted) for word in found], words, room)
    part = sentence[found[first].start() : found[first + count - 1].end()]
    return " ".join(part.split()), count, count == len(found)


def _terms(word: str, wanted: AbstractSet[str]) -> AbstractSet[str]:
    return {found for found in map(term, TOKEN.findall(fold(word))) if found in wanted}


def _densest(held: Sequence[AbstractSet[str]], words: ClaimWords, room: int) -> int:
    """Where the `room` words begin that hold most weight of the terms, with as much text before them as behind."""
    inside: Counter[str] = Counter()
    most, span = 0.0, (0, 0)
    places = [place for place, names in enumerate(held) if names]
    left = 0
    for right in places:
        inside.update(held[right])
        while places[left] <= right - room:
            inside.subtract(held[places[left]])
            left += 1
        weight = recall_of(words, {name for name, times in inside.items() if times})
        if weight > most:
            most, span = weight, (places[left], right)
    first, last = span
    slack = room - (last - first + 1)
    return max(0, min(first - slack // 2, len(held) - room))
