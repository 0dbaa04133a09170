"""Alerts on ragwatch itself: absent, down, stale, misconfigured, failing, or inconsistent."""

from __future__ import annotations

from collections.abc import Iterator

from ragwatch.rules.alert import Alert, Area, Severity
from ragwatch.rules.plan import RulePlan
from ragwatch.rules.promql import pick, span

_COUNT = '{{ $value | printf "%.0f" }}'
_AGE, _FREE, _JOB = "{{ $value | humanizeDuration }}", "{{ $value | humanize1024 }}B", "{{ $labels.job }}"
_MAX_FAILED_STEPS = 3


def alerts(plan: RulePlan) -> Iterator[Alert]:
    """Alerts on ragwatch itself."""
    up = pick("up", job=plan.job)
    yield _own(
        "RagwatchAbsent",
        f"absent({pick('ragwatch_build_info', job=plan.job)})",
        f"{_JOB}: no ragwatch instance is running, or none is scraped.",
        "Prometheus has no series of job {{ $labels.job }}. Answer quality is not monitored.",
        severity=Severity.CRITICAL,
    )
    hold = span(plan.limits.hold)
    yield _own(  # per instance, not `for`: in a long rollout there is always one that is not up yet
        "RagwatchDown",
        f"count by (job) (\n  {up} == 0 and max_over_time({up}[{hold}]) == 0 and {up} offset {hold}\n)",
        f"{_JOB}: {_COUNT} ragwatch instances cannot be scraped.",
        f"Prometheus could not scrape {_COUNT} instances of job {{{{ $labels.job }}}} for {hold}.",
        hold=0.0,
    )
    yield _own(
        "RagwatchFiguresStale",
        f"max by (job) (time() - ragwatch_last_digest_timestamp_seconds) > {plan.limits.lag:g}",
        f"{_JOB}: the figures of ragwatch are {_AGE} old, because its digest does not run.",
        "The figures of an instance are {{ $value | humanizeDuration }} old; alerts that use them cannot fire.",
    )
    yield _own(
        "RagwatchReloadFailed",
        "count by (job) (ragwatch_config_last_reload_successful == 0)",
        f"{_JOB}: {_COUNT} ragwatch instances refused their new configuration.",
        f"{_COUNT} instances could not load the new configuration and keep running with the previous one.",
    )
    yield _own(
        "RagwatchDiskLow",
        f"min by (job) (ragwatch_state_free_bytes) < {plan.limits.free}",
        f"{_JOB}: {_FREE} are free on the disk of the ragwatch state directory.",
        "{{ $value | humanize1024 }}B are free on the disk of the state directory; below store.min_free ragwatch stops "
        "reading its sources.",
    )
    yield from _internals(plan)


def _internals(plan: RulePlan) -> Iterator[Alert]:
    """Alerts on background loops, the export, and invariants."""
    window, short = span(plan.window), span(plan.windows[0])
    yield _own(
        "RagwatchStepsFailing",
        f"sum by (job, loop) (increase(ragwatch_step_failures_total[{short}])) > {_MAX_FAILED_STEPS}",
        f"{_JOB}: ragwatch loop {{{{ $labels.loop }}}} failed about {_COUNT} times in {short}.",
        f"Loop {{{{ $labels.loop }}}} failed about {_COUNT} times in the last {short}. Check disk and database.",
    )
    sent = 'ragwatch_export_records_total{outcome="sent"}'
    yield _own(
        "RagwatchExportFailing",
        f"sum by (job, signal) (increase(ragwatch_export_failures_total[{short}])) > 0\n"
        f"and sum by (job, signal) (increase({sent}[{short}])) == 0",
        f"{_JOB}: no {{{{ $labels.signal }}}} with scores reach the endpoint of export.otlp; {_COUNT} requests failed.",
        f"About {_COUNT} requests with {{{{ $labels.signal }}}} failed in {short}, and none succeeded. Judging and all "
        "figures go on; the backend of the traces shows no new scores.",
    )
    yield _own(  # counted once for each wrong change, so what is still wrong after the window is silent
        "RagwatchWebConfigRefused",
        f"sum by (job) (increase(ragwatch_web_config_failures_total[{window}])) > 0",
        f"{_JOB}: ragwatch refused a changed web.config_file or certificate.",
        f"About {_COUNT} changes of web.config_file or its certificates were wrong in {window}. The previous users and "
        "certificates stay in force, until they expire.",
        hold=0.0,
    )
    yield _own(
        "RagwatchInvariantViolated",
        f"sum by (job, law) (increase(ragwatch_invariant_violations_total[{window}])) > 0",
        f"{_JOB}: the counters of ragwatch violate invariant {{{{ $labels.law }}}}. This is a bug.",
        f"Invariant {{{{ $labels.law }}}} was violated about {_COUNT} times in {window}. Figures may be wrong.",
        hold=0.0,
    )


def _own(
    name: str,
    expr: str,
    summary: str,
    description: str,
    *,
    severity: Severity = Severity.WARNING,
    hold: float | None = None,
) -> Alert:
    return Alert(
        name,
        severity=severity,
        area=Area.OPERATION,
        expr=expr,
        summary=summary,
        description=description,
        board="operation",
        labels=("job",),
        hold=hold,
    )
