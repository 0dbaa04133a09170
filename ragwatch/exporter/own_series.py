"""Defines the series of ragwatch itself: failures, invariants, free disk space, configuration."""

from platform import python_version

from ragwatch import __version__
from ragwatch.exporter.series import FromSnapshot, FromTelemetry, Series, known, of_origins
from ragwatch.statistics.snapshot import Gauge
from ragwatch.statistics.tally import Invariant, Tally
from ragwatch.telemetry import EventCount, GaugeLevel

OWN: tuple[Series, ...] = (
    Series(
        EventCount.STEP_FAILURES,
        "Total number of failed steps of a background loop since the process started; failed steps are retried.",
    ),
    Series(
        EventCount.VIOLATIONS,
        "Total number of digests in which a counter invariant was violated; any value above 0 is a bug of ragwatch.",
        values=Invariant,
    ),
    Series(
        EventCount.ACCEPT_FAILURES,
        "Total number of connections not accepted for want of a file descriptor, since the process started.",
        from_zero=True,
    ),
    Series(
        EventCount.WEB_REFUSALS,
        "Total number of HTTP requests refused since the process started, by reason (credentials, right, rate).",
    ),
    Series(
        EventCount.WEB_FILE_FAILURES,
        "Total number of changes of web.config_file or its certificates that were wrong and not put into force.",
        from_zero=True,
    ),
    *of_origins(
        {
            EventCount.EXPORT_RECORDS: "Total number of log records or spans with scores for the endpoint of "
            "export.otlp, since the process started, by outcome: sent, rejected (partial success) or dropped "
            "(refused).",
            EventCount.EXPORT_SKIPPED: "Total number of verdicts of which nothing is sent to export.otlp, since the "
            "process started, by reason (no_trace_id, invalid_trace_id, no_span_id, no_scores, too_old, deleted).",
            EventCount.EXPORT_FAILURES: "Total number of failed requests to the endpoint of export.otlp since the "
            "process started, by reason; all but refused and too_large are repeated.",
            GaugeLevel.EXPORT_WAITING: "Time for which verdicts have been waiting to be sent to export.otlp; 0 if none "
            "wait.",
        }
    ),
    Series(
        known("leader"),
        "Whether this worker leads (1) or not (0): of workers that share a database, one detects drift, runs canaries"
        " and computes the figures.",
        "ragwatch_leader",
    ),
    Series(
        FromSnapshot((), lambda snapshot: [((), snapshot.at)]),
        "Unix timestamp of the last digest, when all estimates were computed from the store.",
        "ragwatch_last_digest_timestamp_seconds",
    ),
    Series(Gauge.STATE_FREE, "Number of free bytes on the disk of the state directory, as of the last digest."),
    Series(
        Gauge.STATE_DAMAGED,
        "Rows of the state whose text cannot be read, of those that were met since the start, as of the last digest.",
    ),
    Series(
        Tally.UNKNOWN_COUNTERS,
        "Stored counters of another version of ragwatch that are left out, because their name or labels are not known.",
        "ragwatch_state_unknown_counters",
    ),
    Series(
        Gauge.LAST_EVENT,
        "Unix timestamp of the last event of the last 7 days, by kind (release, index, other, version, judge, drift, "
        "reload, canary).",
    ),
    Series(
        FromTelemetry(("version", "python_version"), lambda _: [((__version__, python_version()), 1)]),
        "Version of ragwatch and of the Python interpreter; the value is always 1.",
        "ragwatch_build_info",
    ),
    Series(
        FromTelemetry(
            ("external_url",), lambda telemetry: [] if telemetry.pages is None else [((telemetry.pages,), 1)]
        ),
        "Address of the pages of this instance (web.external_url), to which links of alerts lead; the value is 1.",
        "ragwatch_pages_info",
    ),
    Series(
        known("last_reload_ok"),
        "Whether the last load of the configuration succeeded (1) or not (0).",
        "ragwatch_config_last_reload_successful",
    ),
    Series(
        known("last_reload_at"),
        "Unix timestamp of the last successful load of the configuration.",
        "ragwatch_config_last_reload_success_timestamp_seconds",
    ),
)
