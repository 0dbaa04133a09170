"""Computes ranking metrics: recall, precision, F1, reciprocal rank, average precision, NDCG.

Every metric is None if no context is expected. A context that is returned twice counts once. Formulas: Manning,
Raghavan, Schuetze 2008, chapter 8; NDCG: Jarvelin and Kekalainen 2002 (10.1145/582415.582418), with the discount of
trec_eval.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import fsum, log2

from ragwatch.statistics import scores

Similarity = Callable[[str, str], float]
"""Similarity of two texts, from 0 (nothing in common) to 1 (identical)."""

TAU = 0.5
"""Minimum similarity at which two texts count as the same context."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The passages that a retriever returned, matched with the expected contexts."""

    grades: tuple[int, ...]  # relevance of each expected context, 1 or more
    hits: tuple[tuple[int, ...], ...]  # indices of the matched expected contexts, by returned passage, best first

    def __post_init__(self) -> None:
        if any(grade < 1 for grade in self.grades):
            raise ValueError(f"grades must be 1 or more, not {self.grades}")
        if any(not 0 <= index < len(self.grades) for hit in self.hits for index in hit):
            raise ValueError(f"a hit names none of the {len(self.grades)} expected contexts")

    @property
    def relevant(self) -> tuple[bool, ...]:
        """For each returned passage, whether it matches an expected context."""
        return tuple(bool(hit) for hit in self.hits)

    @property
    def ranks(self) -> tuple[int | None, ...]:
        """For each expected context, the rank (from 1) of the first passage that matches it; None if there is none."""
        ranks: dict[int, int] = {}
        for rank, hit in enumerate(self.hits, start=1):
            for index in hit:
                ranks.setdefault(index, rank)
        return tuple(ranks.get(index) for index in range(len(self.grades)))

    @property
    def gains(self) -> tuple[int, ...]:
        """For each returned passage, the highest grade among the expected contexts that it is the first to match.

        0 if there is none. Grades are not added up: a passage that matches two would gain more than the ideal ranking.
        """
        at: dict[int, int] = {}
        for grade, rank in zip(self.grades, self.ranks, strict=True):
            if rank is not None:
                at[rank] = max(grade, at.get(rank, 0))
        return tuple(at.get(rank, 0) for rank in range(1, len(self.hits) + 1))


def recall_at(ranking: Ranking, k: int) -> float | None:
    """Recall@k: expected contexts that the first k passages match / expected contexts."""
    _check(k)
    if not ranking.grades:
        return None
    return sum(rank is not None and rank <= k for rank in ranking.ranks) / len(ranking.grades)


def precision_at(ranking: Ranking, k: int) -> float | None:
    """Precision@k: relevant passages among the first k / k, even if fewer than k passages were returned."""
    _check(k)
    return sum(ranking.relevant[:k]) / k if ranking.grades else None


def f1(precision: float | None, recall: float | None) -> float | None:
    """Harmonic mean of precision and recall: 0 if both are 0, None if either is None."""
    if precision is None or recall is None:
        return None
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def f1_at(ranking: Ranking, k: int) -> float | None:
    """F1@k: `f1` of `precision_at` and `recall_at`."""
    return f1(precision_at(ranking, k), recall_at(ranking, k))


def reciprocal_rank(ranking: Ranking, k: int | None = None) -> float | None:
    """1 / rank of the first relevant passage; 0 if there is none (among the first k, if k is set)."""
    _check(k)
    if not ranking.grades:
        return None
    first = ranking.relevant[:k]
    return 1 / (first.index(True) + 1) if any(first) else 0.0


def hit_at(ranking: Ranking, k: int) -> float | None:
    """1 if any of the first k passages is relevant, else 0. Its mean is the hit rate, or coverage, of a suite."""
    _check(k)
    return float(any(ranking.relevant[:k])) if ranking.grades else None


def average_precision(ranking: Ranking, k: int | None = None) -> float | None:
    """Average precision: sum of precision@rank over the relevant ranks / expected contexts.

    An expected context that was not returned counts as precision 0; otherwise as `statistics.scores.average_precision`.
    """
    _check(k)
    if not ranking.grades:
        return None
    relevant, total = 0, 0.0
    for rank, gain in enumerate(ranking.gains[:k], start=1):
        if gain:
            relevant += 1
            total += relevant / rank
    return total / len(ranking.grades)


def context_precision(ranking: Ranking, k: int | None = None) -> float | None:
    """Rank-weighted precision of the returned passages, or of the first k: sum_k(precision@k * v_k) / sum_k(v_k).

    v_k is 1 if the passage at rank k is relevant. Expected contexts that were not returned do not count. With passages
    matched by similarity of texts, this is the non-LLM context precision.
    """
    _check(k)
    return scores.average_precision(ranking.relevant[:k]) if ranking.grades else None


def ndcg_at(ranking: Ranking, k: int) -> float | None:
    """NDCG@k: gain (grade / log2(rank + 1)) of the first k passages / that of the ideal order; as in trec_eval."""
    _check(k)
    if not ranking.grades:
        return None
    return _discounted(ranking.gains[:k]) / _discounted(sorted(ranking.grades, reverse=True)[:k])


def _discounted(grades: Sequence[int]) -> float:
    return fsum(float(grade) / log2(rank + 1) for rank, grade in enumerate(grades, start=1) if grade)


def first_relevance(ranking: Ranking) -> float | None:
    """Grade of the first passage / highest expected grade; 0 if it is not relevant. Its mean is a suite's health."""
    if not ranking.grades:
        return None
    return max(ranking.gains[:1], default=0) / max(ranking.grades)


def mean_of_known(values: Iterable[float | None]) -> float | None:
    """Mean of the values that are not None; None if there are none."""
    numbers = [value for value in values if value is not None]
    return fsum(numbers) / len(numbers) if numbers else None


def _check(k: int | None) -> None:
    if k is not None and k < 1:
        raise ValueError(f"k must be 1 or more, not {k}")
