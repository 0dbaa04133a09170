"""Labelling: which samples are put before people, and with which probability.

People's time is dear, so more of it goes to where judges disagree or are unsure; and because the probability of each
choice is known, no estimate is bent by it. Each sample has a size: it stands for w = 1 / probability requests, and a
share s of the choices is made by how unsure its judges are besides, size = (1 - s) w / mean w + s w d / mean w d. At
s = 0 every request has the same probability. Its rank is u / size, u uniform in (0, 1). People take samples by rising
rank and may stop at any time: with t the rank of the first one they were not given, those that they were given are a
bottom-k sample, and each had the probability min(1, t size) (Cohen and Kaplan, PODC 2007: rank conditioning). The
joint probability is that times the probability of having been drawn and read by the judges.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragwatch.core.evidence import ClaimVerdict
from ragwatch.core.sampling import chosen, key_of
from ragwatch.core.scores import Quantity

Line = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LabelCandidate:
    """A sample that could be put before people.

    Attributes:
        key: Identity of the sample in the store.
        probability: With which it was drawn, and read by the last judge, in (0, 1].
        unsure: How unsure its judges are, in [0, 1].
    """

    key: str
    probability: float
    unsure: float


@dataclass(frozen=True, slots=True)
class LabelPosition:
    """A candidate in the order in which people are given them.

    Attributes:
        key: Identity of the sample in the store.
        rank: u / size.
        size: 1 on average.
        probability: With which it became a candidate.
    """

    key: str
    rank: float
    size: float
    probability: float


@dataclass(frozen=True, slots=True)
class LabelPool:
    """Candidates of one stretch of traffic. No sample is in two pools.

    Attributes:
        places: By rising rank.
        beyond: Rank of the first candidate that found no place; infinite when all did.
    """

    places: tuple[LabelPosition, ...]
    beyond: float = math.inf

    def threshold(self, given: Collection[str]) -> float:
        """Rank of the first candidate that people were not given.

        >>> pool = Pool((Place("a", 0.1, 1.0, 1.0), Place("b", 0.4, 1.0, 1.0)))
        >>> pool.threshold({"a"}), pool.threshold({"a", "b"})
        (0.4, inf)
        """
        return next((each.rank for each in self.places if each.key not in given), self.beyond)

    def probabilities(self, given: Collection[str]) -> dict[str, float]:
        """Joint probability of each candidate that people were given.

        >>> pool = Pool((Place("a", 0.1, 2.0, 0.5), Place("b", 0.4, 1.0, 1.0)))
        >>> pool.probabilities({"a"})                                                    # 0.5 * (0.4 * 2)
        {'a': 0.4}
        """
        limit = self.threshold(given)
        return {
            each.key: each.probability * min(1.0, limit * each.size)
            for each in self.places
            if each.key in given and each.rank < limit
        }


def pool(
    candidates: Iterable[LabelCandidate], share_unsure: float, uniform: Callable[[], float], most: int
) -> LabelPool:
    """Put candidates in order, the first `most` of them.

    Args:
        candidates: All of a stretch of traffic.
        share_unsure: Share of the choices that is made by how unsure the judges are, in [0, 1).
        uniform: A number between 0 and 1 at random, a new one at each call.
        most: Places there are.

    >>> found = pool([Candidate("a", 0.1, 0.0), Candidate("b", 0.1, 0.4)], 0.5, lambda: 0.3, most=2)
    >>> sorted((each.key, round(each.size, 9)) for each in found.places)               # .5 + .5 * 0 and .5 + .5 * .4/.2
    [('a', 0.5), ('b', 1.5)]
    """
    known = list(candidates)
    whole = math.fsum(1.0 / each.probability for each in known)
    doubted = math.fsum(each.unsure / each.probability for each in known)
    places = []
    for each in known:
        share = 1.0 / each.probability / whole
        of_doubt = each.unsure / each.probability / doubted if doubted > 0.0 else share
        size = len(known) * ((1.0 - share_unsure) * share + share_unsure * of_doubt)
        places.append(LabelPosition(each.key, uniform() / size, size, each.probability))
    places.sort(key=lambda place: (place.rank, place.key))
    return LabelPool(tuple(places[:most]), places[most].rank if len(places) > most else math.inf)


def unsure(lines: Sequence[Line]) -> float:
    """How unsure judges are of a sample, in [0, 1], from their verdict lines: the most that one doubts or two differ.

    >>> one = {"scores": {"faithfulness": 1.0}, "claims": [{"support": 0.9}]}
    >>> other = {"scores": {"faithfulness": 0.25}, "claims": []}
    >>> round(unsure([one]), 2), unsure([one, other])                                        # 2 sqrt(.9 * .1)
    (0.6, 0.75)
    """
    found = [_doubt(line) for line in lines]
    for index, one in enumerate(lines):
        found += [_difference(one["scores"], other["scores"]) for other in lines[index + 1 :]]
    return max(found, default=0.0)


def _doubt(line: Line) -> float:
    known = [float(claim["support"]) for claim in line["claims"] if claim["support"] is not None]
    return 2.0 * math.sqrt(math.fsum(each * (1.0 - each) for each in known) / len(known)) if known else 0.0


def _difference(one: Mapping[str, float | None], other: Mapping[str, float | None]) -> float:
    pairs = [(one.get(str(quantity)), other.get(str(quantity))) for quantity in Quantity]
    return max((abs(a - b) for a, b in pairs if a is not None and b is not None), default=0.0)


def is_double(key: str, share: float) -> bool:
    """Whether a second person is given this sample too: a hash decides, so that everybody decides alike.

    >>> is_double("a", 0.0), is_double("a", 1.0)
    (False, True)
    """
    return chosen(key_of("second annotator", key), share)


def scores_of(claims: Sequence[ClaimVerdict | None], said: Mapping[Quantity, float]) -> dict[Quantity, float]:
    """A person's scores: what they said of the answer as a whole, and what follows from their word on every claim.

    A claim that was passed over leaves the share of supported ones unknown.

    >>> word = ClaimVerdict("supported"), ClaimVerdict("contradicted")
    >>> {str(quantity): score for quantity, score in scores_of(word, {}).items()}
    {'faithfulness': 0.5, 'contradiction': 0.5}
    >>> scores_of((*word, None), {})
    {}
    """
    found = dict(said)
    if claims and None not in claims:
        found[Quantity.FAITHFULNESS] = claims.count(ClaimVerdict.SUPPORTED) / len(claims)
        found[Quantity.CONTRADICTION] = claims.count(ClaimVerdict.CONTRADICTED) / len(claims)
    return found
