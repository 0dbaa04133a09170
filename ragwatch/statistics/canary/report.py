"""Evaluates the replies to a suite of canaries: a report a canary, the means of the suite and of its categories."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from enum import StrEnum

from ragwatch.statistics import ranking as measures
from ragwatch.statistics.canary.answer import AnswerFault, JudgedAnswer, answers_line, faults
from ragwatch.statistics.canary.definition import Canary, Category, Direction, Failure, Hit, Retrieved
from ragwatch.statistics.canary.metric import CanaryMetric
from ragwatch.statistics.ranking import TAU, Ranking, Similarity
from ragwatch.statistics.relevance import MatchField, missing_field, rank_passages


class CanaryOutcome(StrEnum):
    """Outcome of a canary in one run."""

    FOUND = "found"
    BELOW_MIN_SCORE = "below_min_score"
    MISSING_FROM_TOP_K = "missing_from_top_k"
    FOUND_FOR_NEGATIVE = "found_for_negative"
    FAILED = "failed"


DEGRADED_OUTCOMES = frozenset(
    {CanaryOutcome.BELOW_MIN_SCORE, CanaryOutcome.MISSING_FROM_TOP_K, CanaryOutcome.FOUND_FOR_NEGATIVE}
)
"""Outcomes caused by the retriever. `FAILED` is caused by the endpoint and is counted by its `Failure` instead."""

_NO_FIELD: dict[MatchField, Failure] = {"id": Failure.NO_IDS, "text": Failure.NO_TEXTS}


@dataclass(frozen=True, slots=True)
class CanaryReport:
    """Result of one canary in one run."""

    canary: Canary
    at: float  # time of the run, in seconds since the epoch
    cutoff: int  # the k of "top k": the number of passages that count
    retrieved: Retrieved  # the reply, cut to the first `cutoff` passages
    outcome: CanaryOutcome
    failure: Failure | None = None
    ranking: Ranking | None = None  # of the expected contexts; None if unknown, and for a negative canary
    scores_fell: bool = False  # whether all scores of the suite fell by more than their spread; health is then 0

    @property
    def success(self) -> bool:
        """Whether the retriever returned what the canary expects."""
        return self.outcome is CanaryOutcome.FOUND

    @property
    def degraded(self) -> bool:
        """Whether the retriever replied, but did not return what the canary expects."""
        return self.outcome in DEGRADED_OUTCOMES

    @property
    def reason(self) -> str | None:
        """Why the canary did not succeed: the outcome, or `failed:` and the failure; None if it succeeded."""
        if self.success:
            return None
        return str(self.outcome) if self.failure is None else f"{self.outcome}:{self.failure}"

    @property
    def ranks(self) -> tuple[int | None, ...]:
        """Rank (from 1) of each expected context, None if it was not retrieved. Empty if the ranking is unknown."""
        return () if self.ranking is None else self.ranking.ranks

    @property
    def scores(self) -> tuple[float | None, ...]:
        """The retriever's score of each expected context; None if it was not retrieved or has no score."""
        return tuple(None if rank is None else self.retrieved.hits[rank - 1].score for rank in self.ranks)


def evaluate(
    canary: Canary, retrieved: Retrieved, cutoff: int, *, at: float, similar: Similarity | None = None, tau: float = TAU
) -> CanaryReport:
    """Evaluates the reply to a canary, of which the first `cutoff` passages count.

    Canaries that expect a text without an id need `similar` (else ValueError); texts are the same from `tau` on.
    """
    if cutoff < 1:
        raise ValueError(f"cutoff must be 1 or more, not {cutoff}")
    top = replace(retrieved, hits=retrieved.hits[:cutoff])
    failure = retrieved.failure
    field = missing_field(top.hits, canary.expected) if failure is None else None
    if field is not None:
        index = next(index for index, hit in enumerate(top.hits) if getattr(hit, field) is None)
        detail = f"contexts[{index}].{field}: is missing, and the canary expects contexts by their {field}"
        failure, top = _NO_FIELD[field], replace(top, detail=detail)
    if failure is not None:
        return CanaryReport(canary, at, cutoff, top, outcome=CanaryOutcome.FAILED, failure=failure)
    ranking = None if canary.negative else rank_passages(top.hits, canary.expected, similar, tau)
    outcome = _outcome(canary, top, ranking)
    no_scores = Failure.NO_SCORES if outcome is CanaryOutcome.FAILED else None
    return CanaryReport(canary, at, cutoff, top, outcome=outcome, failure=no_scores, ranking=ranking)


def _outcome(canary: Canary, retrieved: Retrieved, ranking: Ranking | None) -> CanaryOutcome:
    if ranking is None:  # of a negative canary
        reached = [_reaches_min_score(canary, retrieved, hit) for hit in retrieved.hits]
        if True in reached:
            return CanaryOutcome.FOUND_FOR_NEGATIVE
        return CanaryOutcome.FAILED if None in reached else CanaryOutcome.FOUND
    ranks = [rank for rank in ranking.ranks if rank is not None]
    if len(ranks) / len(ranking.grades) < canary.min_recall:
        return CanaryOutcome.MISSING_FROM_TOP_K
    relevant = _reaches_min_score(canary, retrieved, retrieved.hits[min(ranks) - 1])
    if relevant is None:
        return CanaryOutcome.FAILED
    return CanaryOutcome.FOUND if relevant else CanaryOutcome.BELOW_MIN_SCORE


def _reaches_min_score(canary: Canary, retrieved: Retrieved, hit: Hit) -> bool | None:
    """Returns whether a passage reaches the canary's `min_relevance_score`; None if the passage has no usable score."""
    limit = canary.min_relevance_score
    if limit is None:
        return True
    if hit.score is None or retrieved.direction is None:
        return None
    return hit.score >= limit if retrieved.direction is Direction.SIMILARITY else hit.score <= limit


@dataclass(frozen=True, slots=True)
class SuiteReport:
    """Result of one run of a suite.

    Means are over the canaries with a known ranking: negative and failed canaries are left out, except one that failed
    for want of a score only (`NO_SCORES`), whose ranking is known. A mean over no canary is None.
    """

    suite: str
    ks: tuple[int, ...]  # cut-offs of recall, precision, F1, NDCG and hit rate; the largest is the k of "top k"
    reports: tuple[CanaryReport, ...]
    answers: tuple[JudgedAnswer, ...] = ()  # of the whole service; empty where only the retriever is tested

    def __post_init__(self) -> None:
        if not self.ks or min(self.ks) < 1:
            raise ValueError(f"ks must be numbers from 1, not {self.ks}")
        if any(report.cutoff != self.cutoff for report in self.reports):
            raise ValueError(f"every report must be cut off at the largest k, {self.cutoff}")

    @property
    def cutoff(self) -> int:
        """The k of "top k"."""
        return max(self.ks)

    def mean(self, metric: CanaryMetric, k: int | None = None) -> float | None:
        """Mean of a metric over the canaries for which it is defined; by default (and at most) of all passages."""
        k = self.cutoff if k is None else k
        if k > self.cutoff:
            raise ValueError(f"only the first {self.cutoff} passages were evaluated, not {k}")
        fallen = metric is CanaryMetric.HEALTH
        return measures.mean_of_known(
            0.0 if fallen and report.scores_fell else metric.row.of(report.ranking, k)
            for report in self.reports
            if report.ranking is not None
        )

    @property
    def degraded(self) -> tuple[CanaryReport, ...]:
        """Reports of the canaries for which the retriever did not return what is expected."""
        return tuple(report for report in self.reports if report.degraded)

    @property
    def failures(self) -> Counter[Failure]:
        """Number of failed canaries by failure."""
        return Counter(report.failure for report in self.reports if report.failure is not None)

    @property
    def replies(self) -> int:
        """Number of canaries that got a usable reply."""
        return sum(report.failure is None for report in self.reports)

    @property
    def by_category(self) -> dict[Category, SuiteReport]:
        """The run by category of its canaries, in the order of `Category`; categories without canaries are left out."""
        groups = {
            category: tuple(report for report in self.reports if report.canary.category is category)
            for category in Category
        }
        return {category: replace(self, reports=part, answers=()) for category, part in groups.items() if part}

    @property
    def success(self) -> bool:
        """Whether every canary succeeded, and no answer is wrong; False for a suite without canaries."""
        return bool(self.reports) and all(report.success for report in self.reports) and not self.faults

    @property
    def faults(self) -> dict[str, AnswerFault]:
        """Stage at fault by canary, for the canaries whose answers are wrong."""
        return faults(self.answers)

    @property
    def scores_fell(self) -> bool:
        """Whether all scores of the retriever fell by more than their own spread."""
        return any(report.scores_fell for report in self.reports)

    @property
    def unreachable(self) -> bool:
        """Whether no connection could be made for any canary, so that no query was sent."""
        return bool(self.reports) and all(report.failure is Failure.CONNECT for report in self.reports)


def suite_line(run: SuiteReport) -> dict[str, object]:
    """Returns the run as an item of `suites` in `ragwatch canary --json`; unknown figures are null."""
    return {
        "suite": run.suite,
        **_figures(run),
        "degraded": [report.canary.query for report in run.degraded],
        "failures": {str(failure): count for failure, count in sorted(run.failures.items())},
        "answers": answers_line(run.answers),
        "categories": {str(category): category_line(part) for category, part in run.by_category.items()},
        "items": [_item(report) for report in run.reports],
    }


def category_line(run: SuiteReport) -> dict[str, object]:
    """Returns the figures of the canaries of one category, with the number of canaries, degraded and failed ones."""
    return {
        "canaries": len(run.reports),
        "degraded": len(run.degraded),
        "failed": len(run.reports) - run.replies,
        **_figures(run),
    }


def _figures(run: SuiteReport) -> dict[str, object]:
    return {
        metric.row.name: {str(k): run.mean(metric, k) for k in run.ks} if metric.row.by_k else run.mean(metric)
        for metric in CanaryMetric
    }


def _item(report: CanaryReport) -> dict[str, object]:
    return {
        "canary": report.canary.name,
        "query": report.canary.query,
        "category": str(report.canary.category),
        "success": report.success,
        "reason": report.reason,
        "detail": report.retrieved.detail,
        "ranks": list(report.ranks),
        "grades": [] if report.ranking is None else list(report.ranking.grades),
        "scores": list(report.scores),
        "scores_fell": report.scores_fell,
        "seconds": report.retrieved.seconds,
    }
