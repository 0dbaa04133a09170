"""Selects which samples people label, and computes the probability with which each is selected.

Labels are costly, so samples on which judges disagree or are unsure are selected more often; because the probability of
each selection is known, estimates stay unbiased. Each sample has a size: it represents w = 1 / probability requests,
and a share s of the selections depends on the uncertainty d of its judges, size = (1 - s) w / mean w + s w d / mean
w d. At s = 0 every request has the same probability. Its rank is u / size, u uniform in (0, 1). People label samples by
rising rank and may stop at any time: with t the rank of the first sample that was not shown, the shown samples are a
bottom-k sample, each with probability min(1, t size) (Cohen and Kaplan, PODC 2007: rank conditioning). The joint
probability is this one times the probability that the sample was drawn and read by the judges.

Each of several people labels random groups of the samples, of their own: what one of them labels or passes over does
not change the sample of the others. A sample is labelled with the mean of the probabilities of all groups.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from ragwatch.model.evidence import ClaimVerdict
from ragwatch.model.quantities import Quantity
from ragwatch.statistics.sampling import SamplingHash, key_of, uncertainty_of


@dataclass(frozen=True, slots=True)
class LabelCandidate:
    """A sample that can be selected for labelling, with the uncertainty of its judges in [0, 1].

    The probability is that with which it was drawn and read by the last judge.
    """

    key: str
    probability: float
    unsure: float


@dataclass(frozen=True, slots=True)
class LabelPosition:
    """Position of a candidate in the order of labelling, by rank = u / size; the mean size over all candidates is 1."""

    key: str
    rank: float
    size: float
    probability: float


@dataclass(frozen=True, slots=True)
class LabelPool:
    """Ordered candidates of one time range of traffic, cut off at rank `beyond`. No sample is in two pools."""

    places: tuple[LabelPosition, ...]
    beyond: float = math.inf

    def groups(self, count: int, sampling: SamplingHash) -> list[LabelPool]:
        """Returns random groups of the candidates, by a hash of their keys, which a person may label alone."""
        groups: list[list[LabelPosition]] = [[] for _ in range(count)]
        for place in self.places:
            groups[int(sampling.place(key_of("group", place.key))[:8], 16) % count].append(place)
        return [LabelPool(tuple(places), self.beyond) for places in groups]

    def threshold(self, shown: Collection[str]) -> float:
        """Returns the rank of the first candidate that was not shown to people."""
        return next((position.rank for position in self.places if position.key not in shown), self.beyond)


def joint_probabilities(
    groups: Sequence[LabelPool], shown: Collection[str], counted: Collection[int] | None = None
) -> dict[str, float]:
    """Returns the joint probability of each candidate that was shown to people, for a pool in random groups.

    Groups other than the `counted` ones (by index; None for all) are taken as not shown.

    >>> first, second = (LabelPool((LabelPosition(key, 0.1, 1.0, 1.0),), beyond=0.5) for key in "ab")
    >>> joint_probabilities((first, second), {"a"}), joint_probabilities((first, second), {"a", "b"}, [1])
    ({'a': 0.25}, {'b': 0.25})
    """
    open_groups = range(len(groups)) if counted is None else counted
    kept = [group for index, group in enumerate(groups) if index in open_groups]
    limits = [group.threshold(shown) if any(place.key in shown for place in group.places) else 0.0 for group in kept]
    return {
        place.key: place.probability * math.fsum(min(1.0, other * place.size) for other in limits) / len(groups)
        for group, limit in zip(kept, limits, strict=True)
        for place in group.places
        if place.key in shown and place.rank < limit
    }


def pool(
    candidates: Iterable[LabelCandidate], share_unsure: float, uniform: Callable[[], float], limit: int
) -> LabelPool:
    """Orders candidates by rank, of which a share depends on uncertainty, and keeps the first `limit`."""
    candidates = list(candidates)
    total_weight = math.fsum(1.0 / candidate.probability for candidate in candidates)
    total_unsure = math.fsum(candidate.unsure / candidate.probability for candidate in candidates)
    positions = []
    for candidate in candidates:
        share = 1.0 / candidate.probability / total_weight
        unsure_share = candidate.unsure / candidate.probability / total_unsure if total_unsure > 0.0 else share
        size = len(candidates) * ((1.0 - share_unsure) * share + share_unsure * unsure_share)
        positions.append(LabelPosition(candidate.key, uniform() / size, size, candidate.probability))
    positions.sort(key=lambda position: (position.rank, position.key))
    return LabelPool(tuple(positions[:limit]), positions[limit].rank if len(positions) > limit else math.inf)


class JudgeScores(NamedTuple):
    """What one judge read of a sample: scores, and the probability of support of each claim that has one."""

    scores: Mapping[Quantity, float | None]
    supports: Sequence[float]


def unsure(readings: Sequence[JudgeScores]) -> float:
    """Returns the uncertainty about a sample, in [0, 1]: the greatest of a judge, or difference of any two judges."""
    values = [uncertainty_of(reading.supports) or 0.0 for reading in readings]
    for first, second in combinations([reading.scores for reading in readings], 2):
        pairs = [(score, second.get(quantity)) for quantity, score in first.items()]
        values += [abs(a - b) for a, b in pairs if a is not None and b is not None]
    return max(values, default=0.0)


def is_double(key: str, share: float, sampling: SamplingHash) -> bool:
    """Returns whether a second person labels this sample too, by a hash of its key."""
    return sampling.draws(key_of("second annotator", key), share)


def scores_of(claims: Sequence[ClaimVerdict | None], scores: Mapping[Quantity, float]) -> dict[Quantity, float]:
    """Returns a person's scores: those of the answer as a whole, and those from claims, of which none was skipped."""
    all_scores = dict(scores)
    if claims and None not in claims:
        all_scores[Quantity.FAITHFULNESS] = claims.count(ClaimVerdict.SUPPORTED) / len(claims)
        all_scores[Quantity.CONTRADICTION] = claims.count(ClaimVerdict.CONTRADICTED) / len(claims)
    return all_scores
