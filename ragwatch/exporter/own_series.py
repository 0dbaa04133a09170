"""Series of ragwatch itself."""

from __future__ import annotations

from ragwatch.core.snapshot import Gauge
from ragwatch.exporter.series import Figure, Kind, Series
from ragwatch.telemetry import Count

_C, _G, _I = Kind.COUNTER, Kind.GAUGE, Kind.INFO

OWN: tuple[Series, ...] = (
    Series(
        "ragwatch_step_failures_total",
        _C,
        "Steps of a loop that failed and are repeated, since the start.",
        ("loop",),
        Count.STEP_FAILURES,
    ),
    Series(
        "ragwatch_invariant_violations_total",
        _C,
        "Digests that found our own counts out of balance, since the start: anything but 0 is a bug of ragwatch.",
        ("law",),
        Count.VIOLATIONS,
        from_zero=True,
    ),
    Series(
        "ragwatch_last_digest_timestamp_seconds",
        _G,
        "When the figures shown were last drawn from the store, in seconds since the epoch.",
        (),
        Figure.DIGESTED,
    ),
    Series(
        "ragwatch_state_free_bytes",
        _G,
        "Bytes that may still be written on the disk of the state directory, as of the last digest.",
        (),
        Gauge.STATE_FREE,
    ),
    Series(
        "ragwatch_build_info",
        _I,
        "Version of ragwatch and of the Python that runs it; always 1.",
        ("version", "python_version"),
        Figure.BUILD,
    ),
    Series(
        "ragwatch_config_last_reload_successful",
        _G,
        "Whether the last load of the configuration succeeded, 1 or 0.",
        (),
        Figure.RELOAD_OK,
    ),
    Series(
        "ragwatch_config_last_reload_success_timestamp_seconds",
        _G,
        "When a configuration was last loaded with success, in seconds since the epoch.",
        (),
        Figure.RELOAD_AT,
    ),
)
