"""Series of canaries: what the retriever still finds."""

from __future__ import annotations

from ragwatch.core.snapshot import Gauge
from ragwatch.core.tally import Tally
from ragwatch.exporter.series import Kind, Series

_C, _G, _H = Kind.COUNTER, Kind.GAUGE, Kind.HISTOGRAM

CANARIES: tuple[Series, ...] = (
    Series(
        "ragwatch_canary_success",
        _G,
        "Whether the retriever found at the last run what the canary must find, 1 or 0.",
        ("suite", "canary"),
        Gauge.CANARY_SUCCESS,
    ),
    Series(
        "ragwatch_canary_recall_ratio",
        _G,
        "Expected contexts within the first k / expected contexts, mean over a suite at its last run, 0 to 1.",
        ("suite", "k"),
        Gauge.CANARY_RECALL,
    ),
    Series(
        "ragwatch_canary_precision_ratio",
        _G,
        "Expected contexts within the first k / k, mean over a suite at its last run, 0 to 1.",
        ("suite", "k"),
        Gauge.CANARY_PRECISION,
    ),
    Series(
        "ragwatch_canary_ndcg_ratio",
        _G,
        "Normalised discounted cumulative gain of the first k, mean over a suite at its last run, 0 to 1.",
        ("suite", "k"),
        Gauge.CANARY_NDCG,
    ),
    Series(
        "ragwatch_canary_reciprocal_rank_ratio",
        _G,
        "Inverse of the rank of the first expected context, mean over a suite at its last run, 0 to 1.",
        ("suite",),
        Gauge.CANARY_RECIPROCAL_RANK,
    ),
    Series(
        "ragwatch_canary_coverage_ratio",
        _G,
        "Share of canaries for which anything that was expected came back at the last run, 0 to 1.",
        ("suite",),
        Gauge.CANARY_COVERAGE,
    ),
    Series(
        "ragwatch_canary_health_ratio",
        _G,
        "Mean grade of the first passage / highest grade expected, over a suite at its last run, 0 to 1.",
        ("suite",),
        Gauge.CANARY_HEALTH,
    ),
    Series(
        "ragwatch_canary_degraded",
        _G,
        "Number of canaries that were degraded at the last run.",
        ("suite",),
        Gauge.CANARY_DEGRADED,
    ),
    Series(
        "ragwatch_canary_runs_total",
        _C,
        "Runs of a suite of canaries.",
        ("suite",),
        Tally.CANARY_RUNS,
        from_zero=True,
    ),
    Series(
        "ragwatch_canary_failures_total",
        _C,
        "Canaries that could not be asked, by reason; no score comes of them.",
        ("suite", "reason"),
        Tally.CANARY_FAILURES,
        from_zero=True,
    ),
    Series(
        "ragwatch_canary_last_run_timestamp_seconds",
        _G,
        "When a suite was last run, in seconds since the epoch.",
        ("suite",),
        Gauge.CANARY_LAST_RUN,
    ),
    Series(
        "ragwatch_canary_last_success_timestamp_seconds",
        _G,
        "When every canary of a suite could last be asked, in seconds since the epoch.",
        ("suite",),
        Gauge.CANARY_LAST_SUCCESS,
    ),
    Series(
        "ragwatch_canary_duration_seconds",
        _H,
        "Time that the retriever took for one canary in seconds.",
        ("suite",),
        Tally.CANARY_SECONDS,
    ),
    Series(
        "ragwatch_canary_answer_ratio",
        _G,
        "Mean score of the answers to a suite at its last run, from retrieved or from the right contexts, 0 to 1.",
        ("suite", "quantity", "contexts"),
        Gauge.CANARY_ANSWER,
    ),
)
