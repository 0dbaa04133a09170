"""The metrics of canaries: one row each, with the formula and the words of its series and panel."""

from collections.abc import Callable
from dataclasses import dataclass

from ragwatch.model.enumerations import RowEnum
from ragwatch.statistics import ranking as measures
from ragwatch.statistics.ranking import Ranking
from ragwatch.statistics.snapshot import Gauge


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryMetricRow:
    """All that depends on the metric alone."""

    name: str
    of: Callable[[Ranking, int], float | None]  # its value for one canary, from the ranking and k; None if undefined
    by_k: bool = False  # whether it is shown for each k; otherwise only for the largest one
    measures: str = ""  # what its series `ragwatch_canary_NAME_ratio` measures; empty if it has none
    exported: str = ""  # the NAME of its series; by default that of the metric
    title: str = ""  # of its panel; empty if it has none
    panel: str = ""  # description of its panel

    @property
    def series_name(self) -> str:
        """The name of the series."""
        return self.exported or self.name

    @property
    def gauge(self) -> Gauge:
        """Mean over a suite."""
        return Gauge(f"canary_{self.series_name}_ratio")

    @property
    def by_category(self) -> Gauge:
        """Mean over the canaries of a category."""
        return Gauge(f"canary_category_{self.series_name}_ratio")


class CanaryMetric(RowEnum):
    """Metrics of canaries, in the order in which they are listed."""

    row: CanaryMetricRow

    RECALL = CanaryMetricRow(
        name="recall",
        of=measures.recall_at,
        by_k=True,
        measures="Recall of the expected contexts within the top k",
        title="Recall",
        panel="Share of the expected contexts within the top k.",
    )
    PRECISION = CanaryMetricRow(
        name="precision",
        of=measures.precision_at,
        by_k=True,
        measures="Precision of the top k contexts",
        title="Precision",
        panel="Share of the top k that is expected.",
    )
    F1 = CanaryMetricRow(
        name="f1",
        of=measures.f1_at,
        by_k=True,
        measures="F1 of precision and recall of the top k (2pr / (p + r))",
        title="F1",
        panel="2pr / (p + r) of the precision p and the recall r of the top k.",
    )
    NDCG = CanaryMetricRow(
        name="ndcg",
        of=measures.ndcg_at,
        by_k=True,
        measures="Normalized discounted cumulative gain of the top k",
        title="NDCG",
        panel="Normalized discounted cumulative gain of the top k.",
    )
    HIT_RATE = CanaryMetricRow(name="hit_rate", of=measures.hit_at, by_k=True)
    MRR = CanaryMetricRow(
        name="mrr",
        of=lambda ranking, _: measures.reciprocal_rank(ranking),
        measures="Reciprocal rank of the first expected context (MRR)",
        exported="reciprocal_rank",
        title="Reciprocal rank",
        panel="Mean of 1 / rank of the first expected context (MRR).",
    )
    MAP = CanaryMetricRow(name="map", of=lambda ranking, _: measures.average_precision(ranking))
    CONTEXT_PRECISION = CanaryMetricRow(
        name="context_precision", of=lambda ranking, _: measures.context_precision(ranking)
    )
    COVERAGE = CanaryMetricRow(
        name="coverage",
        of=measures.hit_at,
        measures="Whether an expected context was retrieved (1) or none (0)",
    )
    HEALTH = CanaryMetricRow(
        name="health",
        of=lambda ranking, _: measures.first_relevance(ranking),
        measures="Relevance grade of the first context / highest expected grade, 0 once all scores fell",
        title="Health",
        panel="Relevance grade of the first context / highest expected grade; 0 once the scores of all canaries "
        "fell by more than their own spread.",
    )


EXPORTED = tuple(metric for metric in CanaryMetric if metric.row.measures)
"""The metrics that have series."""
