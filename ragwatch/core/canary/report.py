"""CanaryReport: what a reply means for a canary, by arithmetic alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from ragwatch.core.canary.definition import Canary, Direction, Expected, Failure, Hit, Retrieved
from ragwatch.core.ranking import TAU, Ranking, Similarity


class CanaryOutcome(StrEnum):
    """What became of a canary in one run."""

    FOUND = "found"
    BELOW_MIN_SCORE = "below_min_score"
    MISSING_FROM_TOP_K = "missing_from_top_k"
    FOUND_FOR_NEGATIVE = "found_for_negative"
    FAILED = "failed"


DEGRADED = frozenset(
    {CanaryOutcome.BELOW_MIN_SCORE, CanaryOutcome.MISSING_FROM_TOP_K, CanaryOutcome.FOUND_FOR_NEGATIVE}
)
"""Outcomes that speak against the retriever. A failed run speaks about the endpoint, and is counted by its reason."""


@dataclass(frozen=True, slots=True)
class CanaryReport:
    """One canary in one run.

    Attributes:
        canary: What was asked.
        at: When, in seconds since the epoch.
        cutoff: The k of "top k": how many passages count.
        retrieved: What came back, at most `cutoff` passages of it.
        outcome: What became of it.
        failure: Why it failed, when it did.
        ranking: Where expected contexts were met; None when that is unknown, and for a negative canary, which
            expects none.
    """

    canary: Canary
    at: float
    cutoff: int
    retrieved: Retrieved
    outcome: CanaryOutcome
    failure: Failure | None = None
    ranking: Ranking | None = None

    @property
    def success(self) -> bool:
        """Whether the retriever answered, and found what it must and no more."""
        return self.outcome is CanaryOutcome.FOUND

    @property
    def degraded(self) -> bool:
        """Whether it answered, and did not."""
        return self.outcome in DEGRADED

    @property
    def reason(self) -> str | None:
        """Why it did not succeed, as it is counted; `failed:` and the failure where there was no usable reply."""
        if self.success:
            return None
        return str(self.outcome) if self.failure is None else f"{self.outcome}:{self.failure}"

    @property
    def ranks(self) -> tuple[int | None, ...]:
        """For each expected context, its rank from 1; None where it was not found. Empty when nothing is known."""
        return () if self.ranking is None else self.ranking.found

    @property
    def scores(self) -> tuple[float | None, ...]:
        """For each expected context, the retriever's score of the passage that met it."""
        return tuple(None if rank is None else self.retrieved.hits[rank - 1].score for rank in self.ranks)


def report(
    canary: Canary, retrieved: Retrieved, cutoff: int, *, at: float, similar: Similarity | None = None, tau: float = TAU
) -> CanaryReport:
    """What the reply means for the canary, by arithmetic alone.

    Args:
        canary: What was asked.
        retrieved: What came back; passages behind `cutoff` do not count.
        cutoff: The k of "top k", 1 or more.
        at: When it was asked, in seconds since the epoch.
        similar: Compares texts. Needed for canaries that expect a text without an id.
        tau: Similarity from which two texts are the same context.

    Raises:
        ValueError: No `similar` was given and the canary expects texts, or `cutoff` is below 1.
    """
    if cutoff < 1:
        raise ValueError(f"cutoff must be 1 or more, not {cutoff}")
    first = replace(retrieved, hits=retrieved.hits[:cutoff])
    failure = retrieved.failure or _incomparable(canary, first)
    if failure is not None:
        return CanaryReport(canary, at, cutoff, first, CanaryOutcome.FAILED, failure)
    ranking = None if canary.negative else _ranking(canary, first, similar, tau)
    outcome = _negative_outcome(canary, first) if ranking is None else _outcome(canary, first, ranking)
    lacking = Failure.NO_SCORES if outcome is CanaryOutcome.FAILED else None
    return CanaryReport(canary, at, cutoff, first, outcome, lacking, ranking)


def _incomparable(canary: Canary, retrieved: Retrieved) -> Failure | None:
    """What the reply lacks, so that an expected context might be there unseen."""
    by_id = any(each.id for each in canary.expected)
    by_text = any(not each.id for each in canary.expected)
    if by_id and any(hit.id is None for hit in retrieved.hits):
        return Failure.NO_IDS
    if by_text and any(hit.text is None for hit in retrieved.hits):
        return Failure.NO_TEXTS
    return None


def _ranking(canary: Canary, retrieved: Retrieved, similar: Similarity | None, tau: float) -> Ranking:
    met: set[str] = set()
    hits = []
    for hit in retrieved.hits:
        again = hit.id in met
        hits.append(
            tuple(
                index
                for index, expected in enumerate(canary.expected)
                if not (again and expected.id) and _meets(hit, expected, similar, tau)
            )
        )
        if hit.id is not None:
            met.add(hit.id)
    return Ranking(tuple(int(each.grade) for each in canary.expected), tuple(hits))


def _meets(hit: Hit, expected: Expected, similar: Similarity | None, tau: float) -> bool:
    if expected.id:
        return hit.id == expected.id
    if similar is None:
        raise ValueError("a canary that expects texts needs a way to compare them")
    return similar(hit.text or "", expected.text or "") >= tau


def _outcome(canary: Canary, retrieved: Retrieved, ranking: Ranking) -> CanaryOutcome:
    met = [rank for rank in ranking.found if rank is not None]
    if len(met) / len(ranking.grades) < canary.min_recall:
        return CanaryOutcome.MISSING_FROM_TOP_K
    reaches = _reaches(canary, retrieved, retrieved.hits[min(met) - 1])
    if reaches is None:
        return CanaryOutcome.FAILED
    return CanaryOutcome.FOUND if reaches else CanaryOutcome.BELOW_MIN_SCORE


def _negative_outcome(canary: Canary, retrieved: Retrieved) -> CanaryOutcome:
    reached = [_reaches(canary, retrieved, hit) for hit in retrieved.hits]
    if True in reached:
        return CanaryOutcome.FOUND_FOR_NEGATIVE
    return CanaryOutcome.FAILED if None in reached else CanaryOutcome.FOUND


def _reaches(canary: Canary, retrieved: Retrieved, hit: Hit) -> bool | None:
    """Whether a passage is at least as relevant as the canary demands; None when its score cannot say."""
    least = canary.min_relevance_score
    if least is None:
        return True
    if hit.score is None or retrieved.direction is None:
        return None
    return hit.score >= least if retrieved.direction is Direction.SIMILARITY else hit.score <= least
