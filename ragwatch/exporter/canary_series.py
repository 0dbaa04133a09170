"""Defines the series of canaries: retrieval metrics of known queries."""

from __future__ import annotations

from ragwatch.core.snapshot import Gauge
from ragwatch.core.tally import Tally
from ragwatch.exporter.series import SeriesDefinition

_BY_CATEGORY: tuple[SeriesDefinition, ...] = (
    SeriesDefinition(
        "ragwatch_canary_category_recall_ratio",
        "Recall within the top k, mean over the canaries of a category at the last run, between 0 and 1.",
        Gauge.CANARY_CATEGORY_RECALL,
    ),
    SeriesDefinition(
        "ragwatch_canary_category_precision_ratio",
        "Precision of the top k, mean over the canaries of a category at the last run, between 0 and 1.",
        Gauge.CANARY_CATEGORY_PRECISION,
    ),
    SeriesDefinition(
        "ragwatch_canary_category_f1_ratio",
        "F1 of precision and recall of the top k, mean over the canaries of a category at the last run, 0 to 1.",
        Gauge.CANARY_CATEGORY_F1,
    ),
    SeriesDefinition(
        "ragwatch_canary_category_ndcg_ratio",
        "NDCG of the top k, mean over the canaries of a category at the last run, between 0 and 1.",
        Gauge.CANARY_CATEGORY_NDCG,
    ),
    SeriesDefinition(
        "ragwatch_canary_category_reciprocal_rank_ratio",
        "Mean reciprocal rank (MRR) over the canaries of a category at the last run, between 0 and 1.",
        Gauge.CANARY_CATEGORY_RECIPROCAL_RANK,
    ),
    SeriesDefinition(
        "ragwatch_canary_category_coverage_ratio",
        "Share of the canaries of a category that retrieved at least one expected context at the last run, 0 to 1.",
        Gauge.CANARY_CATEGORY_COVERAGE,
    ),
    SeriesDefinition(
        "ragwatch_canary_category_health_ratio",
        "Relevance grade of the first context / highest expected grade, mean over a category at the last run, 0 to 1.",
        Gauge.CANARY_CATEGORY_HEALTH,
    ),
    SeriesDefinition(
        "ragwatch_canary_category_degraded",
        "Number of canaries of a category degraded at the last run.",
        Gauge.CANARY_CATEGORY_DEGRADED,
    ),
)

CANARIES: tuple[SeriesDefinition, ...] = (
    SeriesDefinition(
        "ragwatch_canary_success",
        "Whether the canary retrieved its expected contexts at the last run (1) or not (0).",
        Gauge.CANARY_SUCCESS,
    ),
    SeriesDefinition(
        "ragwatch_canary_recall_ratio",
        "Recall of the expected contexts within the top k, mean over the suite at its last run, between 0 and 1.",
        Gauge.CANARY_RECALL,
    ),
    SeriesDefinition(
        "ragwatch_canary_precision_ratio",
        "Precision of the top k contexts, mean over the suite at its last run, between 0 and 1.",
        Gauge.CANARY_PRECISION,
    ),
    SeriesDefinition(
        "ragwatch_canary_f1_ratio",
        "F1 of precision and recall of the top k (2pr / (p + r)), mean over the suite at its last run, 0 to 1.",
        Gauge.CANARY_F1,
    ),
    SeriesDefinition(
        "ragwatch_canary_ndcg_ratio",
        "Normalized discounted cumulative gain of the top k, mean over the suite at its last run, between 0 and 1.",
        Gauge.CANARY_NDCG,
    ),
    SeriesDefinition(
        "ragwatch_canary_reciprocal_rank_ratio",
        "Mean reciprocal rank (MRR) of the first expected context over the suite at its last run, between 0 and 1.",
        Gauge.CANARY_RECIPROCAL_RANK,
    ),
    SeriesDefinition(
        "ragwatch_canary_coverage_ratio",
        "Share of canaries that retrieved at least one expected context at the last run, between 0 and 1.",
        Gauge.CANARY_COVERAGE,
    ),
    SeriesDefinition(
        "ragwatch_canary_health_ratio",
        "Relevance grade of the first context / highest expected grade, mean over the suite at its last run, 0 to 1.",
        Gauge.CANARY_HEALTH,
    ),
    SeriesDefinition(
        "ragwatch_canary_degraded",
        "Number of canaries degraded at the last run.",
        Gauge.CANARY_DEGRADED,
    ),
    *_BY_CATEGORY,
    SeriesDefinition(
        "ragwatch_canary_runs_total",
        "Total number of runs of a canary suite.",
        Tally.CANARY_RUNS,
        from_zero=True,
    ),
    SeriesDefinition(
        "ragwatch_canary_failures_total",
        "Total number of canary queries without a usable reply, by reason; they yield no score.",
        Tally.CANARY_FAILURES,
        from_zero=True,
    ),
    SeriesDefinition(
        "ragwatch_canary_last_run_timestamp_seconds",
        "Unix timestamp of the last run of a canary suite.",
        Gauge.CANARY_LAST_RUN,
    ),
    SeriesDefinition(
        "ragwatch_canary_last_success_timestamp_seconds",
        "Unix timestamp of the last run in which every canary query of the suite got a usable reply.",
        Gauge.CANARY_LAST_SUCCESS,
    ),
    SeriesDefinition(
        "ragwatch_canary_duration_seconds",
        "Duration of a canary query in seconds.",
        Tally.CANARY_SECONDS,
    ),
    SeriesDefinition(
        "ragwatch_canary_answer_ratio",
        "Mean score of the answers to a canary suite at its last run, for retrieved or for expected contexts, 0 to 1.",
        Gauge.CANARY_ANSWER,
    ),
)
