"""Computes nine monotone features of a claim and passages.

Adding words of the claim to a passage moves every feature towards support, or leaves it as it is. With the signs of the
weights fixed (see `SIGNS`), support never falls when a passage covers more of the claim, and all passages together
never support a claim less than one of them alone.

| name         | meaning                                                                             |
|--------------|-------------------------------------------------------------------------------------|
| rec_s_idf    | IDF-weighted recall of the claim's terms in the best single sentence                |
| rec_p_idf    | the same in the best single passage                                                 |
| rec_uq_idf   | the same in all passages and the question together                                  |
| big_rec      | share of the claim's adjacent term pairs that are adjacent in some passage          |
| g4_rec       | share of the claim's character 4-grams found in the passages                        |
| miss_max     | IDF of the rarest term that is in no passage                                        |
| num_missfrac | share of the claim's numbers that are in no passage                                 |
| num_miss     | number of them                                                                      |
| name_miss    | capitalised words, except the first, in neither passages nor question               |

The words that they share also decide which contexts a claim uses: its support set or, if it is not supported, those
that informed it (`informed_by`).
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise

from ragwatch.judges.claims.words import TOKEN, fold, is_number, term
from ragwatch.judges.lexical.passages import PreparedPassage, grams
from ragwatch.judges.lexical.tables import Split
from ragwatch.model.evidence import smallest_support_set

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
"""+1: the feature is evidence for support, -1: against it. The fit must not change a sign."""

UNLISTED = 1.0
"""Rarity of a term that is not in the table: the maximum."""

CARRIES = 0.5
"""A sentence carries a claim if its recall of the claim is at least this."""


@dataclass(frozen=True, slots=True)
class ClaimWords:
    """Words of a claim: terms in their order, distinct terms with their rarity, pairs, 4-grams, numbers and names."""

    order: tuple[str, ...]
    rarity: Mapping[str, float]
    pairs: frozenset[tuple[str, str]]
    grams: frozenset[str]
    numbers: frozenset[str]
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class PassageMatch:
    """Words that a claim and a passage share."""

    terms: frozenset[str]
    pairs: frozenset[tuple[str, str]]
    grams: frozenset[str]
    passage_recall: float  # IDF-weighted recall in the whole passage
    sentence_recall: float  # the same in its best sentence
    sentence: int | None  # index of that sentence; None when no sentence has a term of the claim
    carriers: tuple[int, ...] = ()  # indexes of the sentences whose recall of the claim is at least a half


def claim_words(text: str, rarity: Mapping[str, float], split: Split | None = None) -> ClaimWords:
    """Extract the words of a claim without leads and citation marks; `split` for another language, without names."""
    raw = TOKEN.findall(text)
    tokens = TOKEN.findall(fold(text))
    ordered = split(text) if split else [name for name in map(term, tokens) if name]
    weights = weigh(ordered, rarity)
    names = {term(fold(word)) for word in raw[1:] if word[0].isupper()} if split is None else set()
    return ClaimWords(
        order=tuple(ordered),
        rarity=weights,
        pairs=frozenset(pairwise(ordered)),
        grams=grams(tokens),
        numbers=frozenset(filter(is_number, weights)),
        names=frozenset(names) & weights.keys(),
    )


def match(claim: ClaimWords, passage: PreparedPassage) -> PassageMatch:
    """Compare a claim with one passage."""
    shared = claim.rarity.keys() & passage.terms
    by_sentence = _sentence_recalls(claim, shared, passage) if shared else {}
    best = max(by_sentence, key=by_sentence.__getitem__, default=None)
    return PassageMatch(
        terms=frozenset(shared),
        pairs=claim.pairs & passage.pairs,
        grams=claim.grams & passage.grams,
        passage_recall=coverage(claim.rarity, shared),
        sentence_recall=0.0 if best is None else by_sentence[best],
        sentence=best,
        carriers=tuple(index for index, recall in by_sentence.items() if recall >= CARRIES),
    )


def _sentence_recalls(claim: ClaimWords, shared: AbstractSet[str], passage: PreparedPassage) -> dict[int, float]:
    """Recall of the claim in each sentence that shares terms with it, in order."""
    weights = [(name, weight) for name, weight in claim.rarity.items() if name in shared]
    total = math.fsum(claim.rarity.values())
    return {
        index: math.fsum([weight for name, weight in weights if name in sentence]) / total
        for index, sentence in enumerate(passage.sentences)
        if not shared.isdisjoint(sentence)
    }


def coverage(weights: Mapping[str, float], terms: AbstractSet[str]) -> float:
    """Weighted share of terms that a text has; 0.0 without any.

    >>> coverage({"tea": 0.75, "green": 0.25}, {"tea"})
    0.75
    """
    total = math.fsum(weights.values())
    return math.fsum([weight for name, weight in weights.items() if name in terms]) / total if total else 0.0


def weigh(words: Iterable[str], rarity: Mapping[str, float]) -> dict[str, float]:
    """Distinct terms, in order, with their rarity."""
    return {name: rarity.get(name, UNLISTED) for name in dict.fromkeys(words)}


def missing_run(claim: ClaimWords, matches: Sequence[PassageMatch]) -> float:
    """Weight of the heaviest run of consecutive terms of a claim of which none is in a passage.

    Words that are missing one by one may be a paraphrase; several in a row are a statement that nobody made. More
    passages, or longer ones, never make it heavier.

    >>> from ragwatch.judges.lexical.passages import passage
    >>> claim = claim_words("Tea is green and monks drink coffee.", {"tea": 0.5, "green": 0.5})
    >>> [missing_run(claim, [match(claim, passage(text))]) for text in ("Green tea.", "Tea for monks.", "Coffee.")]
    [3.0, 2.0, 3.0]
    """
    shared = frozenset[str]().union(*(passage.terms for passage in matches))
    heaviest = weight = 0.0
    for name in claim.order:
        weight = 0.0 if name in shared else weight + claim.rarity[name]
        heaviest = max(heaviest, weight)
    return heaviest


def features(claim: ClaimWords, matches: Sequence[PassageMatch], question: AbstractSet[str]) -> tuple[float, ...]:
    """Compute the nine features, in the order of `NAMES`, of a claim, its matches and the terms of the question.

    Of one match they are those of a cell, of all matches those of the union.
    """
    shared = frozenset[str]().union(*(passage.terms for passage in matches))
    pairs = frozenset[tuple[str, str]]().union(*(passage.pairs for passage in matches))
    shared_grams = frozenset[str]().union(*(passage.grams for passage in matches))
    missing = claim.rarity.keys() - shared
    lost = len(claim.numbers - shared)
    recall = coverage(claim.rarity, shared)
    return (
        max((passage.sentence_recall for passage in matches), default=0.0),
        max((passage.passage_recall for passage in matches), default=0.0),
        coverage(claim.rarity, shared | (question & claim.rarity.keys())),
        len(pairs) / len(claim.pairs) if claim.pairs else recall,
        len(shared_grams) / len(claim.grams) if claim.grams else recall,
        max((claim.rarity[name] for name in missing), default=0.0),
        lost / len(claim.numbers) if claim.numbers else 0.0,
        float(lost),
        float(len(claim.names - shared - question)),
    )


COMMON = 0.3  # terms with a lower rarity are common
MIN_SPECIFIC = 2  # minimum number of specific terms that a context shares with a claim that it informed
MIN_SHARE = 0.3  # minimum share of the weight of the specific terms in a context that informed a claim
MIN_GAIN = 0.25  # minimum share that another context adds to those before it

NEAR = 0.1
"""Contexts that support a claim alone are marked if their recall of it is this near to the best one's. The others say
the same in other words, and the answer has its words from the best."""


def nearest(matches: Sequence[PassageMatch], alone: Sequence[int]) -> list[int]:
    """Return those ranks of `alone` whose recall of the claim is near that of the best.

    A context that shares nothing with the claim is not among them, unless none shares anything (all words are those of
    the question): then the best-ranked is.
    """
    least = max((matches[rank].passage_recall for rank in alone), default=0.0) - NEAR
    near = [rank for rank in alone if matches[rank].passage_recall >= least and _has_words(matches[rank])]
    return near or list(alone[:1])


def joint_support(
    matches: Sequence[PassageMatch],
    alone: Sequence[float],
    probability: Callable[[Sequence[PassageMatch]], float],
    least: float,
) -> tuple[int, ...]:
    """Return the ranks of the support set of a claim; empty if all contexts together do not support it.

    `probability` is that of some contexts together, and `least` the minimum at which they support it.
    """
    known: set[PassageMatch] = set()
    strengths: list[float | None] = []  # None: it shares nothing with the claim, or no more than a better rank
    for passage, value in zip(matches, alone, strict=True):
        strengths.append(value if _has_words(passage) and passage not in known else None)
        known.add(passage)
    return smallest_support_set(strengths, lambda ranks: probability([matches[rank] for rank in ranks]) >= least)


def _has_words(passage: PassageMatch) -> bool:
    return bool(passage.terms or passage.grams)


def informed_by(claim: ClaimWords, shared: Sequence[AbstractSet[str]], question: AbstractSet[str]) -> tuple[int, ...]:
    """Return the ranks of the contexts that a claim has its specific content from, in increasing order.

    `shared` are the terms that it shares with each context.
    """
    weights = {name: weight for name, weight in claim.rarity.items() if weight >= COMMON and name not in question}
    total = math.fsum(weights.values())
    left, ranks = dict(weights), list[int]()
    while left:
        gains = [math.fsum([weight for name, weight in left.items() if name in names]) for names in shared]
        best = max(range(len(gains)), key=gains.__getitem__, default=None)
        if best is None or gains[best] < (MIN_GAIN if ranks else MIN_SHARE) * total:
            break
        if not ranks and len(left.keys() & shared[best]) < MIN_SPECIFIC:
            break
        ranks.append(best)
        left = {name: weight for name, weight in left.items() if name not in shared[best]}
    return tuple(sorted(ranks))
