"""Features: nine numbers about one claim and some passages, each moving one way only with support.

For every feature, adding to a passage words that the claim holds moves it towards support or not at all; with the
signs of the weights held (see `SIGNS`), support never falls when a passage says more of the claim, and the passages
together never support a claim less than one of them alone.

| name         | meaning                                                                             |
|--------------|-------------------------------------------------------------------------------------|
| rec_s_idf    | IDF-weighted recall of the claim's terms in the best single sentence                |
| rec_p_idf    | the same in the best single passage                                                 |
| rec_uq_idf   | the same in all passages and the question together                                  |
| big_rec      | share of the claim's adjacent term pairs that are adjacent in some passage          |
| g4_rec       | share of the claim's character 4-grams found in the passages                        |
| miss_max     | IDF of the rarest term that stands in no passage                                    |
| num_missfrac | share of the claim's numbers that stand in no passage                               |
| num_miss     | how many                                                                            |
| name_miss    | capitalised words, not opening the claim, in neither passages nor question          |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ragwatch.judges.lexical.passages import PreparedPassage, grams
from ragwatch.judges.lexical.words import TOKEN, fold, is_number, term

NAMES = (
    "rec_s_idf",
    "rec_p_idf",
    "rec_uq_idf",
    "big_rec",
    "g4_rec",
    "miss_max",
    "num_missfrac",
    "num_miss",
    "name_miss",
)
SIGNS = (1, 1, 1, 1, 1, -1, -1, -1, -1)
"""+1: the feature speaks for support, -1: against it. The fit may not turn a sign."""

UNLISTED = 1.0
"""Rarity of a term that the table does not list: as rare as can be."""

CARRIES = 0.5
"""A sentence carries a claim when it holds this share of the claim's weight."""


@dataclass(frozen=True, slots=True)
class ClaimWords:
    """A claim, read: its distinct terms with their rarity, pairs, 4-grams, numbers and names."""

    rarity: Mapping[str, float]
    pairs: frozenset[tuple[str, str]]
    grams: frozenset[str]
    numbers: frozenset[str]
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class PassageMatch:
    """What one passage holds of a claim.

    Attributes:
        terms: Terms found.
        pairs: Pairs found.
        grams: 4-grams found.
        passage_recall: IDF-weighted recall in the whole passage.
        sentence_recall: The same in its best sentence.
        sentence: Index of that sentence; None when no sentence holds a term of the claim.
        carriers: Indexes of the sentences that hold at least half of the claim's weight.
    """

    terms: frozenset[str]
    pairs: frozenset[tuple[str, str]]
    grams: frozenset[str]
    passage_recall: float
    sentence_recall: float
    sentence: int | None
    carriers: tuple[int, ...] = ()


def claim_words(text: str, rarity: Mapping[str, float]) -> ClaimWords:
    """Read a claim (leads and citation marks already blanked)."""
    raw = TOKEN.findall(text)
    tokens = TOKEN.findall(fold(text))
    ordered = [found for found in map(term, tokens) if found]
    distinct = dict.fromkeys(ordered)
    names = {term(fold(word)) for word in raw[1:] if word[0].isupper()}
    return ClaimWords(
        rarity={found: rarity.get(found, UNLISTED) for found in distinct},
        pairs=frozenset(pairwise(ordered)),
        grams=grams(tokens),
        numbers=frozenset(filter(is_number, distinct)),
        names=frozenset(names) & distinct.keys(),
    )


def match(claim: ClaimWords, passage: PreparedPassage) -> PassageMatch:
    """Look a claim up in one passage."""
    found = claim.rarity.keys() & passage.terms
    by_sentence = _sentence_recalls(claim, found, passage) if found else {}
    where = max(by_sentence, key=by_sentence.__getitem__, default=None)
    return PassageMatch(
        terms=frozenset(found),
        pairs=claim.pairs & passage.pairs,
        grams=claim.grams & passage.grams,
        passage_recall=recall_of(claim, found),
        sentence_recall=0.0 if where is None else by_sentence[where],
        sentence=where,
        carriers=tuple(index for index, recall in by_sentence.items() if recall >= CARRIES),
    )


def _sentence_recalls(claim: ClaimWords, found: AbstractSet[str], passage: PreparedPassage) -> dict[int, float]:
    """Recall of the claim in each sentence that holds any of it, in order."""
    weights = [(name, weight) for name, weight in claim.rarity.items() if name in found]
    total = math.fsum(claim.rarity.values())
    return {
        index: math.fsum([weight for name, weight in weights if name in sentence]) / total
        for index, sentence in enumerate(passage.sentences)
        if not found.isdisjoint(sentence)
    }


def recall_of(claim: ClaimWords, found: AbstractSet[str]) -> float:
    """IDF-weighted share of the claim's terms that were found; 0 for a claim without terms."""
    total = math.fsum(claim.rarity.values())
    return math.fsum([weight for name, weight in claim.rarity.items() if name in found]) / total if total else 0.0


def features(claim: ClaimWords, matches: Sequence[PassageMatch], question: AbstractSet[str]) -> tuple[float, ...]:
    """The nine features, in the order of `NAMES`, of a claim and the passages that were matched.

    Args:
        claim: The claim.
        matches: One for each passage that counts; one alone for a cell, all of them for the union.
        question: Terms of the question.
    """
    found: frozenset[str] = _union(matches, lambda one: one.terms)
    pairs = _union(matches, lambda one: one.pairs)
    runs = _union(matches, lambda one: one.grams)
    missing = claim.rarity.keys() - found
    lost = len(claim.numbers - found)
    recall = recall_of(claim, found)
    return (
        max((one.sentence_recall for one in matches), default=0.0),
        max((one.passage_recall for one in matches), default=0.0),
        recall_of(claim, found | (question & claim.rarity.keys())),
        len(pairs) / len(claim.pairs) if claim.pairs else recall,
        len(runs) / len(claim.grams) if claim.grams else recall,
        max((claim.rarity[name] for name in missing), default=0.0),
        lost / len(claim.numbers) if claim.numbers else 0.0,
        float(lost),
        float(len(claim.names - found - question)),
    )


def _union(matches: Sequence[PassageMatch], part: Callable[[PassageMatch], frozenset[Any]]) -> frozenset[Any]:
    if len(matches) == 1:
        return part(matches[0])
    return frozenset().union(*map(part, matches))
