"""Ranking: what a retriever returned, measured against what it was expected to return.

Everything here is None where nothing was expected (an empty set is unknown, neither 0 nor 1), and says what it divides
by. A context that comes back twice is found once. Formulas: Manning, Raghavan, Schuetze 2008, chapter 8; NDCG:
Jarvelin and Kekalainen 2002 (10.1145/582415.582418), with the discount of trec_eval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, log2

from ragwatch.core import scores

Similarity = Callable[[str, str], float]
"""How alike two texts are, from 0 (nothing in common) to 1 (the same)."""

TAU = 0.5
"""Similarity from which two texts count as the same context, the value included."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """What came back, said in terms of what was expected.

    Attributes:
        grades: For each expected context, how relevant it is: 1, or more.
        hits: For each rank, best first, which expected contexts were met there (indices into `grades`).
    """

    grades: tuple[int, ...]
    hits: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        if any(grade < 1 for grade in self.grades):
            raise ValueError(f"grades must be 1 or more, not {self.grades}")
        if any(not 0 <= index < len(self.grades) for hit in self.hits for index in hit):
            raise ValueError(f"a hit names none of the {len(self.grades)} expected contexts")

    @property
    def relevant(self) -> tuple[bool, ...]:
        """For each rank, whether an expected context was met there."""
        return tuple(bool(hit) for hit in self.hits)

    @property
    def found(self) -> tuple[int | None, ...]:
        """For each expected context, the rank (from 1) where it was first met; None when it was not."""
        ranks: dict[int, int] = {}
        for rank, hit in enumerate(self.hits, start=1):
            for index in hit:
                ranks.setdefault(index, rank)
        return tuple(ranks.get(index) for index in range(len(self.grades)))

    @property
    def gains(self) -> tuple[int, ...]:
        """For each rank, the highest grade among the expected contexts first met there; 0 when there is none.

        Only the highest: a passage that covers two expected contexts must not gain more than an ideal ranking may.
        """
        at: dict[int, int] = {}
        for grade, rank in zip(self.grades, self.found, strict=True):
            if rank is not None:
                at[rank] = max(grade, at.get(rank, 0))
        return tuple(at.get(rank, 0) for rank in range(1, len(self.hits) + 1))


def by_ids(returned: Sequence[str], grades: Mapping[str, int]) -> Ranking:
    """The ranking of returned ids, where `grades` holds the expected ones. An id that comes again meets nothing.

    >>> by_ids(["c3", "c1", "c9", "c2"], {"c1": 1, "c2": 2}).gains
    (0, 1, 0, 2)
    """
    index = {name: place for place, name in enumerate(grades)}
    hits = tuple(
        (index[name],) if name in index and name not in returned[:rank] else () for rank, name in enumerate(returned)
    )
    return Ranking(tuple(grades.values()), hits)


def by_texts(returned: Sequence[str], grades: Mapping[str, int], similar: Similarity, tau: float = TAU) -> Ranking:
    """The ranking of returned texts: one meets an expected text that is similar to it by `tau` or more.

    A passage may cover several expected texts, and several passages one.

    >>> by_texts(["ab", "x"], {"ab": 1}, lambda one, other: float(one == other)).hits
    ((0,), ())
    """
    expected = tuple(grades)
    hits = tuple(
        tuple(place for place, wanted in enumerate(expected) if similar(text, wanted) >= tau) for text in returned
    )
    return Ranking(tuple(grades.values()), hits)


def recall_at(ranking: Ranking, k: int) -> float | None:
    """Expected contexts met in the first k / expected contexts. None when nothing was expected.

    >>> recall_at(by_ids(["c3", "c1", "c9", "c2"], {"c1": 1, "c2": 1}), 3)
    0.5
    """
    _check(k)
    if not ranking.grades:
        return None
    return sum(rank is not None and rank <= k for rank in ranking.found) / len(ranking.grades)


def precision_at(ranking: Ranking, k: int) -> float | None:
    """Relevant passages in the first k / k, also when fewer than k came back. None when nothing was expected.

    >>> round(precision_at(by_ids(["c3", "c1", "c9", "c2"], {"c1": 1, "c2": 1}), 3), 4)
    0.3333
    """
    _check(k)
    return sum(ranking.relevant[:k]) / k if ranking.grades else None


def precision_of_returned(ranking: Ranking, k: int) -> float | None:
    """Relevant passages in the first k / passages in the first k. None when nothing was expected, or came back.

    >>> precision_of_returned(by_ids(["c1", "c9"], {"c1": 1, "c2": 1}), 5)
    0.5
    """
    _check(k)
    first = ranking.relevant[:k]
    return sum(first) / len(first) if ranking.grades and first else None


def f1(precision: float | None, recall: float | None) -> float | None:
    """Harmonic mean of precision and recall: 0 when both are, None when one is unknown.

    >>> round(f1(1 / 3, 0.5), 4)
    0.4
    """
    if precision is None or recall is None:
        return None
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def f1_at(ranking: Ranking, k: int) -> float | None:
    """`f1` of `precision_at` and `recall_at`."""
    return f1(precision_at(ranking, k), recall_at(ranking, k))


def reciprocal_rank(ranking: Ranking, k: int | None = None) -> float | None:
    """1 / rank of the first relevant passage; 0 when there is none (in the first k, where k is given).

    >>> reciprocal_rank(by_ids(["c3", "c1", "c9", "c2"], {"c1": 1, "c2": 1}))
    0.5
    """
    if k is not None:
        _check(k)
    if not ranking.grades:
        return None
    first = ranking.relevant[:k]
    return 1 / (first.index(True) + 1) if any(first) else 0.0


def hit_at(ranking: Ranking, k: int) -> float | None:
    """1 when any expected context was met in the first k, else 0. Its mean is the hit rate, or coverage, of a suite."""
    _check(k)
    return float(any(ranking.relevant[:k])) if ranking.grades else None


def average_precision(ranking: Ranking, k: int | None = None) -> float | None:
    """Sum of precision@rank over relevant ranks / expected contexts: what was not returned counts as precision 0.

    Where all that was expected came back, this is the rank-weighted precision `core.scores.average_precision`.

    >>> round(average_precision(by_ids("abxcy", {"a": 1, "b": 1, "c": 1})), 4)    # [1,1,0,1,0]: 11/12
    0.9167
    >>> round(average_precision(by_ids("xyabc", {"a": 1, "b": 1, "c": 1})), 4)    # [0,0,1,1,1]: 43/90
    0.4778
    """
    if k is not None:
        _check(k)
    if not ranking.grades:
        return None
    met, total = 0, 0.0
    for rank, gain in enumerate(ranking.gains[:k], start=1):
        if gain:
            met += 1
            total += met / rank
    return total / len(ranking.grades)


def context_precision(ranking: Ranking) -> float | None:
    """Rank-weighted precision of what came back, whatever is missing: sum_k(precision@k * v_k) / sum_k(v_k).

    The non-LLM context precision, when the ranking is one of texts: v_k is 1 where a similar text was expected.
    """
    return scores.average_precision(ranking.relevant) if ranking.grades else None


def linear(grade: int) -> float:
    """The gain is the grade: as in trec_eval and ir-measures, and the default here."""
    return float(grade)


def exponential(grade: int) -> float:
    """The gain is 2^grade - 1 (Burges et al. 2005): a highly relevant context is worth three relevant ones."""
    return 2.0**grade - 1.0


def ndcg_at(ranking: Ranking, k: int, gain: Callable[[int], float] = linear) -> float | None:
    """Discounted gain of the first k / that of the best possible order. Discount: log2(rank + 1), ranks from 1.

    >>> round(ndcg_at(by_ids("xab", {"a": 1, "b": 2}), 3), 4)    # (1/log2(3) + 2/log2(4)) / (2 + 1/log2(3))
    0.6199
    """
    _check(k)
    if not ranking.grades:
        return None
    return _discounted(ranking.gains[:k], gain) / _discounted(sorted(ranking.grades, reverse=True)[:k], gain)


def _discounted(grades: Sequence[int], gain: Callable[[int], float]) -> float:
    return fsum(gain(grade) / log2(rank + 1) for rank, grade in enumerate(grades, start=1) if grade)


def first_relevance(ranking: Ranking) -> float | None:
    """Grade of the first passage / highest grade expected; 0 when it is not expected. Its mean is a suite's health.

    >>> first_relevance(by_ids("ab", {"a": 1, "b": 2}))
    0.5
    """
    if not ranking.grades:
        return None
    return max(ranking.gains[:1], default=0) / max(ranking.grades)


def mean_of_known(values: Iterable[float | None]) -> float | None:
    """Mean of what is known; None when nothing is.

    >>> mean_of_known([1.0, None, 0.5]), mean_of_known([None])
    (0.75, None)
    """
    known = [value for value in values if value is not None]
    return fsum(known) / len(known) if known else None


def _check(k: int) -> None:
    if k < 1:
        raise ValueError(f"k must be 1 or more, not {k}")
