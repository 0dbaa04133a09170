"""SuiteReport: one run of a whole suite in numbers, and as the JSON of `ragwatch canary`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ragwatch.core import ranking
from ragwatch.core.canary.definition import Failure
from ragwatch.core.canary.report import CanaryReport
from ragwatch.core.ranking import Ranking


@dataclass(frozen=True, slots=True)
class SuiteReport:
    """One run of a suite.

    Means run over the canaries whose ranking is known: negative ones expect nothing, and a failed one says nothing
    about the retriever. Without any they are None.

    Attributes:
        suite: Its name.
        ks: Where recall, precision and the like are cut off; the largest is the k of "top k".
        reports: One for each canary.
    """

    suite: str
    ks: tuple[int, ...]
    reports: tuple[CanaryReport, ...]

    def __post_init__(self) -> None:
        if not self.ks or min(self.ks) < 1:
            raise ValueError(f"ks must be numbers from 1, not {self.ks}")
        if any(each.cutoff != self.cutoff for each in self.reports):
            raise ValueError(f"every report must be cut off at the largest k, {self.cutoff}")

    @property
    def cutoff(self) -> int:
        """The k of "top k"."""
        return max(self.ks)

    def recall(self, k: int) -> float | None:
        """Mean `ranking.recall_at`."""
        return self._mean(lambda each: ranking.recall_at(each, self._known(k)))

    def precision(self, k: int) -> float | None:
        """Mean `ranking.precision_at`: divided by k, also where fewer came back."""
        return self._mean(lambda each: ranking.precision_at(each, self._known(k)))

    def f1(self, k: int) -> float | None:
        """Mean `ranking.f1_at`: of each canary's F1, not the F1 of the means."""
        return self._mean(lambda each: ranking.f1_at(each, self._known(k)))

    def ndcg(self, k: int) -> float | None:
        """Mean `ranking.ndcg_at`, gains linear in the grade."""
        return self._mean(lambda each: ranking.ndcg_at(each, self._known(k)))

    def hit_rate(self, k: int) -> float | None:
        """Share of canaries with any expected context among the first k."""
        return self._mean(lambda each: ranking.hit_at(each, self._known(k)))

    @property
    def mrr(self) -> float | None:
        """Mean reciprocal rank among the top k. Show recall beside it: it sees only the first find."""
        return self._mean(ranking.reciprocal_rank)

    @property
    def mean_average_precision(self) -> float | None:
        """Mean `ranking.average_precision` among the top k."""
        return self._mean(ranking.average_precision)

    @property
    def context_precision(self) -> float | None:
        """Mean `ranking.context_precision` of what came back among the top k: whether the useful stands first."""
        return self._mean(ranking.context_precision)

    @property
    def coverage(self) -> float | None:
        """Share of canaries with any expected context among the top k."""
        return self.hit_rate(self.cutoff)

    @property
    def health(self) -> float | None:
        """Mean relevance of the first passage: its grade / the canary's highest; 0 where it is not expected."""
        return self._mean(ranking.first_relevance)

    @property
    def degraded(self) -> tuple[CanaryReport, ...]:
        """Reports that speak against the retriever."""
        return tuple(each for each in self.reports if each.degraded)

    @property
    def failures(self) -> Counter[Failure]:
        """How many canaries failed, by why."""
        return Counter(each.failure for each in self.reports if each.failure is not None)

    @property
    def success(self) -> bool:
        """Whether every canary succeeded. A suite without canaries has nothing to say for itself."""
        return bool(self.reports) and all(each.success for each in self.reports)

    @property
    def unreached(self) -> bool:
        """Whether nobody could be reached: no question was put at all."""
        return bool(self.reports) and all(each.failure is Failure.CONNECT for each in self.reports)

    def _mean(self, of: Callable[[Ranking], float | None]) -> float | None:
        return ranking.mean_of_known(of(each.ranking) for each in self.reports if each.ranking is not None)

    def _known(self, k: int) -> int:
        if k > self.cutoff:
            raise ValueError(f"only the first {self.cutoff} passages were looked at, not {k}")
        return k


def suite_line(found: SuiteReport) -> dict[str, Any]:
    """The run as one item of `suites` in `ragwatch canary --json`; unknown figures are null."""
    by_k = {"recall": found.recall, "precision": found.precision, "f1": found.f1, "ndcg": found.ndcg}
    by_k["hit_rate"] = found.hit_rate
    return {
        "suite": found.suite,
        **{name: {str(k): figure(k) for k in found.ks} for name, figure in by_k.items()},
        "mrr": found.mrr,
        "map": found.mean_average_precision,
        "context_precision": found.context_precision,
        "coverage": found.coverage,
        "health": found.health,
        "degraded": [each.canary.query for each in found.degraded],
        "failures": {str(failure): count for failure, count in sorted(found.failures.items())},
        "items": [_item(each) for each in found.reports],
    }


def _item(found: CanaryReport) -> dict[str, Any]:
    return {
        "canary": found.canary.name,
        "query": found.canary.query,
        "category": str(found.canary.category),
        "success": found.success,
        "reason": found.reason,
        "detail": found.retrieved.detail,
        "ranks": list(found.ranks),
        "scores": list(found.scores),
        "seconds": found.retrieved.seconds,
    }
