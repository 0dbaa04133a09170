"""Series of ragwatch itself: failures, invariants, free disk space, configuration."""

from __future__ import annotations

from ragwatch.core.snapshot import Gauge
from ragwatch.exporter.series import Figure, Kind, Series
from ragwatch.telemetry import Count

_C, _G, _I = Kind.COUNTER, Kind.GAUGE, Kind.INFO

OWN: tuple[Series, ...] = (
    Series(
        "ragwatch_step_failures_total",
        _C,
        "Total number of failed steps of a background loop since the process started; failed steps are retried.",
        ("loop",),
        Count.STEP_FAILURES,
    ),
    Series(
        "ragwatch_invariant_violations_total",
        _C,
        "Total number of digests in which a counter invariant was violated; any value above 0 is a bug of ragwatch.",
        ("law",),
        Count.VIOLATIONS,
        from_zero=True,
    ),
    Series(
        "ragwatch_web_accept_failures_total",
        _C,
        "Total number of connections not accepted for want of a file descriptor, since the process started.",
        (),
        Count.ACCEPT_FAILURES,
        from_zero=True,
    ),
    Series(
        "ragwatch_last_digest_timestamp_seconds",
        _G,
        "Unix timestamp of the last digest, when all estimates were computed from the store.",
        (),
        Figure.DIGESTED,
    ),
    Series(
        "ragwatch_state_free_bytes",
        _G,
        "Number of free bytes on the disk of the state directory, as of the last digest.",
        (),
        Gauge.STATE_FREE,
    ),
    Series(
        "ragwatch_state_damaged_rows",
        _G,
        "Rows of the state whose text cannot be read, of those that were met since the start, as of the last digest.",
        (),
        Gauge.STATE_DAMAGED,
    ),
    Series(
        "ragwatch_build_info",
        _I,
        "Version of ragwatch and of the Python interpreter; the value is always 1.",
        ("version", "python_version"),
        Figure.BUILD,
    ),
    Series(
        "ragwatch_config_last_reload_successful",
        _G,
        "Whether the last load of the configuration succeeded (1) or not (0).",
        (),
        Figure.RELOAD_OK,
    ),
    Series(
        "ragwatch_config_last_reload_success_timestamp_seconds",
        _G,
        "Unix timestamp of the last successful load of the configuration.",
        (),
        Figure.RELOAD_AT,
    ),
)
