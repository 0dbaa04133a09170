"""Defines the series of ragwatch itself: failures, invariants, free disk space, configuration."""

from __future__ import annotations

from platform import python_version

from ragwatch import __version__
from ragwatch.core.invariants import Invariant
from ragwatch.core.snapshot import Gauge
from ragwatch.core.tally import Tally
from ragwatch.exporter.figures import FromSnapshot, FromTelemetry, known
from ragwatch.exporter.series import SeriesDefinition
from ragwatch.telemetry import EventCount, GaugeLevel

OWN: tuple[SeriesDefinition, ...] = (
    SeriesDefinition(
        "ragwatch_step_failures_total",
        "Total number of failed steps of a background loop since the process started; failed steps are retried.",
        EventCount.STEP_FAILURES,
    ),
    SeriesDefinition(
        "ragwatch_invariant_violations_total",
        "Total number of digests in which a counter invariant was violated; any value above 0 is a bug of ragwatch.",
        EventCount.VIOLATIONS,
        from_zero=True,
        values=Invariant,
    ),
    SeriesDefinition(
        "ragwatch_web_accept_failures_total",
        "Total number of connections not accepted for want of a file descriptor, since the process started.",
        EventCount.ACCEPT_FAILURES,
        from_zero=True,
    ),
    SeriesDefinition(
        "ragwatch_web_refused_requests_total",
        "Total number of HTTP requests refused since the process started, by reason (credentials, right, rate).",
        EventCount.WEB_REFUSALS,
    ),
    SeriesDefinition(
        "ragwatch_web_config_failures_total",
        "Total number of changes of web.config_file or its certificates that were wrong and not put into force.",
        EventCount.WEB_FILE_FAILURES,
        from_zero=True,
    ),
    SeriesDefinition(
        "ragwatch_export_records_total",
        "Total number of log records or spans with scores for the endpoint of export.otlp, since the process started,"
        " by outcome: sent, rejected (partial success) or dropped (refused).",
        EventCount.EXPORT_RECORDS,
    ),
    SeriesDefinition(
        "ragwatch_export_verdicts_skipped_total",
        "Total number of verdicts of which nothing is sent to export.otlp, since the process started, by reason"
        " (no_trace_id, invalid_trace_id, no_span_id, no_scores, too_old, deleted).",
        EventCount.EXPORT_SKIPPED,
    ),
    SeriesDefinition(
        "ragwatch_export_failures_total",
        "Total number of failed requests to the endpoint of export.otlp since the process started, by reason; all but"
        " refused and too_large are repeated.",
        EventCount.EXPORT_FAILURES,
    ),
    SeriesDefinition(
        "ragwatch_export_waiting_seconds",
        "Time for which verdicts have been waiting to be sent to export.otlp; 0 if none wait.",
        GaugeLevel.EXPORT_WAITING,
    ),
    SeriesDefinition(
        "ragwatch_leader",
        "Whether this worker leads (1) or not (0): of workers that share a database, one detects drift, runs canaries"
        " and computes the figures.",
        known("leader"),
    ),
    SeriesDefinition(
        "ragwatch_last_digest_timestamp_seconds",
        "Unix timestamp of the last digest, when all estimates were computed from the store.",
        FromSnapshot((), lambda snapshot: [((), snapshot.at)]),
    ),
    SeriesDefinition(
        "ragwatch_state_free_bytes",
        "Number of free bytes on the disk of the state directory, as of the last digest.",
        Gauge.STATE_FREE,
    ),
    SeriesDefinition(
        "ragwatch_state_damaged_rows",
        "Rows of the state whose text cannot be read, of those that were met since the start, as of the last digest.",
        Gauge.STATE_DAMAGED,
    ),
    SeriesDefinition(
        "ragwatch_state_unknown_counters",
        "Stored counters of another version of ragwatch that are left out, because their name or labels are not known.",
        Tally.UNKNOWN_COUNTERS,
    ),
    SeriesDefinition(
        "ragwatch_last_event_timestamp_seconds",
        "Unix timestamp of the last event of the last 7 days, by kind (release, index, other, version, judge, drift, "
        "reload, canary).",
        Gauge.LAST_EVENT,
    ),
    SeriesDefinition(
        "ragwatch_build_info",
        "Version of ragwatch and of the Python interpreter; the value is always 1.",
        FromTelemetry(("version", "python_version"), lambda _: [((__version__, python_version()), 1)]),
    ),
    SeriesDefinition(
        "ragwatch_pages_info",
        "Address of the pages of this instance (web.external_url), to which links of alerts lead; the value is 1.",
        FromTelemetry(
            ("external_url",), lambda telemetry: [] if telemetry.pages is None else [((telemetry.pages,), 1)]
        ),
    ),
    SeriesDefinition(
        "ragwatch_config_last_reload_successful",
        "Whether the last load of the configuration succeeded (1) or not (0).",
        known("last_reload_ok"),
    ),
    SeriesDefinition(
        "ragwatch_config_last_reload_success_timestamp_seconds",
        "Unix timestamp of the last successful load of the configuration.",
        known("last_reload_at"),
    ),
)
