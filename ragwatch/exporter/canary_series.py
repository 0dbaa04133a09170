"""Defines the series of canaries: retrieval metrics of known queries."""

from __future__ import annotations

from ragwatch.core.snapshot import Gauge
from ragwatch.core.tally import Tally
from ragwatch.exporter.series import MetricType, SeriesDefinition

_C, _G, _H = MetricType.COUNTER, MetricType.GAUGE, MetricType.HISTOGRAM

_BY_CATEGORY: tuple[SeriesDefinition, ...] = (
    SeriesDefinition(
        "ragwatch_canary_category_recall_ratio",
        _G,
        "Recall within the top k, mean over the canaries of a category at the last run, between 0 and 1.",
        ("suite", "category", "k"),
        Gauge.CANARY_CATEGORY_RECALL,
    ),
    SeriesDefinition(
        "ragwatch_canary_category_precision_ratio",
        _G,
        "Precision of the top k, mean over the canaries of a category at the last run, between 0 and 1.",
        ("suite", "category", "k"),
        Gauge.CANARY_CATEGORY_PRECISION,
    ),
    SeriesDefinition(
        "ragwatch_canary_category_f1_ratio",
        _G,
        "F1 of precision and recall of the top k, mean over the canaries of a category at the last run, 0 to 1.",
        ("suite", "category", "k"),
        Gauge.CANARY_CATEGORY_F1,
    ),
    SeriesDefinition(
        "ragwatch_canary_category_ndcg_ratio",
        _G,
        "NDCG of the top k, mean over the canaries of a category at the last run, between 0 and 1.",
        ("suite", "category", "k"),
        Gauge.CANARY_CATEGORY_NDCG,
    ),
    SeriesDefinition(
        "ragwatch_canary_category_reciprocal_rank_ratio",
        _G,
        "Mean reciprocal rank (MRR) over the canaries of a category at the last run, between 0 and 1.",
        ("suite", "category"),
        Gauge.CANARY_CATEGORY_RECIPROCAL_RANK,
    ),
    SeriesDefinition(
        "ragwatch_canary_category_coverage_ratio",
        _G,
        "Share of the canaries of a category that retrieved at least one expected context at the last run, 0 to 1.",
        ("suite", "category"),
        Gauge.CANARY_CATEGORY_COVERAGE,
    ),
    SeriesDefinition(
        "ragwatch_canary_category_health_ratio",
        _G,
        "Relevance grade of the first context / highest expected grade, mean over a category at the last run, 0 to 1.",
        ("suite", "category"),
        Gauge.CANARY_CATEGORY_HEALTH,
    ),
    SeriesDefinition(
        "ragwatch_canary_category_degraded",
        _G,
        "Number of canaries of a category degraded at the last run.",
        ("suite", "category"),
        Gauge.CANARY_CATEGORY_DEGRADED,
    ),
)

CANARIES: tuple[SeriesDefinition, ...] = (
    SeriesDefinition(
        "ragwatch_canary_success",
        _G,
        "Whether the canary retrieved its expected contexts at the last run (1) or not (0).",
        ("suite", "canary"),
        Gauge.CANARY_SUCCESS,
    ),
    SeriesDefinition(
        "ragwatch_canary_recall_ratio",
        _G,
        "Recall of the expected contexts within the top k, mean over the suite at its last run, between 0 and 1.",
        ("suite", "k"),
        Gauge.CANARY_RECALL,
    ),
    SeriesDefinition(
        "ragwatch_canary_precision_ratio",
        _G,
        "Precision of the top k contexts, mean over the suite at its last run, between 0 and 1.",
        ("suite", "k"),
        Gauge.CANARY_PRECISION,
    ),
    SeriesDefinition(
        "ragwatch_canary_f1_ratio",
        _G,
        "F1 of precision and recall of the top k (2pr / (p + r)), mean over the suite at its last run, 0 to 1.",
        ("suite", "k"),
        Gauge.CANARY_F1,
    ),
    SeriesDefinition(
        "ragwatch_canary_ndcg_ratio",
        _G,
        "Normalized discounted cumulative gain of the top k, mean over the suite at its last run, between 0 and 1.",
        ("suite", "k"),
        Gauge.CANARY_NDCG,
    ),
    SeriesDefinition(
        "ragwatch_canary_reciprocal_rank_ratio",
        _G,
        "Mean reciprocal rank (MRR) of the first expected context over the suite at its last run, between 0 and 1.",
        ("suite",),
        Gauge.CANARY_RECIPROCAL_RANK,
    ),
    SeriesDefinition(
        "ragwatch_canary_coverage_ratio",
        _G,
        "Share of canaries that retrieved at least one expected context at the last run, between 0 and 1.",
        ("suite",),
        Gauge.CANARY_COVERAGE,
    ),
    SeriesDefinition(
        "ragwatch_canary_health_ratio",
        _G,
        "Relevance grade of the first context / highest expected grade, mean over the suite at its last run, 0 to 1.",
        ("suite",),
        Gauge.CANARY_HEALTH,
    ),
    SeriesDefinition(
        "ragwatch_canary_degraded",
        _G,
        "Number of canaries degraded at the last run.",
        ("suite",),
        Gauge.CANARY_DEGRADED,
    ),
    *_BY_CATEGORY,
    SeriesDefinition(
        "ragwatch_canary_runs_total",
        _C,
        "Total number of runs of a canary suite.",
        ("suite",),
        Tally.CANARY_RUNS,
        from_zero=True,
    ),
    SeriesDefinition(
        "ragwatch_canary_failures_total",
        _C,
        "Total number of canary queries without a usable reply, by reason; they yield no score.",
        ("suite", "reason"),
        Tally.CANARY_FAILURES,
        from_zero=True,
    ),
    SeriesDefinition(
        "ragwatch_canary_last_run_timestamp_seconds",
        _G,
        "Unix timestamp of the last run of a canary suite.",
        ("suite",),
        Gauge.CANARY_LAST_RUN,
    ),
    SeriesDefinition(
        "ragwatch_canary_last_success_timestamp_seconds",
        _G,
        "Unix timestamp of the last run in which every canary query of the suite got a usable reply.",
        ("suite",),
        Gauge.CANARY_LAST_SUCCESS,
    ),
    SeriesDefinition(
        "ragwatch_canary_duration_seconds",
        _H,
        "Duration of a canary query in seconds.",
        ("suite",),
        Tally.CANARY_SECONDS,
    ),
    SeriesDefinition(
        "ragwatch_canary_answer_ratio",
        _G,
        "Mean score of the answers to a canary suite at its last run, for retrieved or for expected contexts, 0 to 1.",
        ("suite", "quantity", "contexts"),
        Gauge.CANARY_ANSWER,
    ),
)
