"""Defines the series of canaries: retrieval metrics of known queries."""

from __future__ import annotations

from ragwatch.core.canary.definition import Failure
from ragwatch.core.canary.metric import CanaryMetric
from ragwatch.core.snapshot import Gauge
from ragwatch.core.tally import Tally
from ragwatch.exporter.series import SeriesDefinition

_BY_SUITE, _BY_CATEGORY = (
    tuple(
        SeriesDefinition(
            f"ragwatch_canary_{part}{series.name}_ratio",
            f"{series.measures}, mean over the {whole} at {run}, between 0 and 1.",
            series.by_category if part else series.gauge,
        )
        for series in (metric.row.series for metric in CanaryMetric)
        if series is not None
    )
    for part, whole, run in (("", "suite", "its last run"), ("category_", "canaries of a category", "the last run"))
)

CANARIES: tuple[SeriesDefinition, ...] = (
    SeriesDefinition(
        "ragwatch_canary_success",
        "Whether the canary retrieved its expected contexts at the last run (1) or not (0).",
        Gauge.CANARY_SUCCESS,
    ),
    *_BY_SUITE,
    SeriesDefinition(
        "ragwatch_canary_degraded",
        "Number of canaries degraded at the last run.",
        Gauge.CANARY_DEGRADED,
    ),
    *_BY_CATEGORY,
    SeriesDefinition(
        "ragwatch_canary_category_degraded",
        "Number of canaries of a category degraded at the last run.",
        Gauge.CANARY_CATEGORY_DEGRADED,
    ),
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
        values=Failure,
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
