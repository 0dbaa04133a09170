"""Metrics of a test set, and its scores: by metric, and by question."""

from collections.abc import Sequence

from ragwatch.model.quantities import Quantity, ReferenceQuantity, is_quantity_name, quantity_of
from ragwatch.model.stages import Stage
from ragwatch.statistics.question_scores import QuestionScores, by_row, question_of
from ragwatch.statistics.reference import score_by_reference
from ragwatch.statistics.relevance import CaseKind, RankedCase, RankingMetric
from ragwatch.statistics.verdict import Judged

JudgedMetric = Quantity | ReferenceQuantity
Metric = JudgedMetric | RankingMetric

JUDGED_RETRIEVAL: frozenset[Metric] = frozenset(
    metric for metric in (*Quantity, *ReferenceQuantity) if metric.row.stage is Stage.RETRIEVAL
)
"""Judged metrics of the retrieved contexts, which mean nothing for fixed contexts."""


def metric_of(name: str, *, criteria: bool = False) -> Metric:
    """Returns the metric of this name, with `criteria` also that of a criterion; raises ValueError if there is none."""
    if name in set(Quantity) or (criteria and is_quantity_name(name)):
        return quantity_of(name)
    return ReferenceQuantity[name.upper()] if name in set(ReferenceQuantity) else RankingMetric(name)


def score_of(verdict: Judged, metric: JudgedMetric) -> float | None:
    """Returns the score of a judged sample; None if it is undefined or unread."""
    if isinstance(metric, Quantity):
        return verdict.scores.get(metric)
    return score_by_reference(verdict.evidence)[metric]


class SetScores:
    """Scores of judged samples and of ranked test cases; rejected rows and unjudged samples count as unread."""

    def __init__(
        self, judged: Sequence[Judged], cases: Sequence[RankedCase], *, rejected: int = 0, unjudged: int = 0
    ) -> None:
        self.judged, self.cases = judged, cases
        self._rejected, self._unjudged = rejected, unjudged
        self.end_to_end = sum(case.kind is CaseKind.END_TO_END for case in cases)
        self.separate = len(cases) > self.end_to_end

    def of(self, metric: Metric) -> list[float]:
        """Returns the known scores."""
        if isinstance(metric, RankingMetric):
            scores = [metric.of(case.ranking) for case in self.cases if case.ranking is not None]
        else:
            scores = [score_of(verdict, metric) for verdict in self.samples(metric)]
        return [score for score in scores if score is not None]

    def samples(self, metric: Metric) -> Sequence[Judged]:
        """Returns the judged samples that count for a metric."""
        if self.separate and metric in JUDGED_RETRIEVAL:
            return [verdict for verdict in self.judged if verdict.draw.sample.relevant is not None]
        return self.judged

    def by_question(self, metrics: Sequence[Metric]) -> tuple[QuestionScores, ...]:
        """Returns the known scores of each row. A row with an answer and relevance judgements has those of both."""
        judged = [metric for metric in metrics if not isinstance(metric, RankingMetric)]
        counted = {metric: {id(verdict) for verdict in self.samples(metric)} for metric in judged}
        rows = by_row(
            question_of(verdict.draw.sample).scored(
                (metric, score_of(verdict, metric)) for metric in judged if id(verdict) in counted[metric]
            )
            for verdict in self.judged
        )
        ranked = [metric for metric in metrics if isinstance(metric, RankingMetric)]
        for key, case in by_row(
            case.question.scored((metric, metric.of(case.ranking)) for metric in ranked if case.ranking is not None)
            for case in self.cases
        ).items():
            both = rows.get(key, case)
            rows[key] = both.scored({**both.scores, **case.scores}.items())
        return tuple(rows.values())

    def coverage(self, metric: Metric) -> float:
        """Returns the share of the rows that could be read."""
        if isinstance(metric, RankingMetric):
            read, total = sum(case.ranking is not None for case in self.cases), len(self.cases)
        else:
            read, total = len(self.judged), len(self.judged) + self._unjudged
        total += self._rejected
        return read / total if total else 0.0
