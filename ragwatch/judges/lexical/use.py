"""Decides by words which contexts a claim uses: its support set or, if it is not supported, those that informed it.

What is specific to a claim are its terms that are neither in the question nor common. A context informed a claim that
is not supported if it has enough of the weight of these terms: an answer that misquotes a context has still used it.
Among contexts that have the same, the better rank counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet

from ragwatch.judges.lexical.features import ClaimWords, PassageMatch
from ragwatch.model.evidence import smallest_support_set

COMMON = 0.3
"""Terms with a lower rarity are common."""

MIN_SPECIFIC = 2
"""Minimum number of specific terms that a context shares with a claim that it informed."""

MIN_SHARE = 0.3
"""Minimum share of the weight of the specific terms in a context that informed a claim."""

MIN_GAIN = 0.25
"""Minimum share that another context adds to those before it."""


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
    return smallest_support_set(
        strengths(matches, alone), lambda ranks: probability([matches[rank] for rank in ranks]) >= least
    )


def strengths(matches: Sequence[PassageMatch], alone: Sequence[float]) -> list[float | None]:
    """How far each context alone supports a claim; None if it shares nothing with it, or no more than a better rank."""
    known: set[PassageMatch] = set()
    values: list[float | None] = []
    for passage, probability in zip(matches, alone, strict=True):
        is_new = _has_words(passage) and passage not in known
        known.add(passage)
        values.append(probability if is_new else None)
    return values


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
