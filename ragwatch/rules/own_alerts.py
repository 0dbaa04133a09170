"""Alerts on ragwatch itself: absent, down, stale, misconfigured, failing, or inconsistent."""

from collections.abc import Iterator
from functools import partial

from ragwatch.rules.alert import AGE, COUNT, JOB, Alert, Area, Severity
from ragwatch.rules.plan import RulePlan
from ragwatch.rules.promql import in_words, pick, span

_FREE = "{{ $value | humanize1024 }}B"
_MAX_FAILED_STEPS = 3

_own = partial(Alert, area=Area.OPERATION, board="operation", labels=("job",))


def alerts(plan: RulePlan) -> Iterator[Alert]:
    """Alerts on ragwatch itself."""
    limits, up = plan.limits, pick("up", job=plan.job)
    yield _own(
        name="RagwatchAbsent",
        meaning="Prometheus has no series of ragwatch; nothing is monitored.",
        severity=Severity.CRITICAL,
        expr=f"absent({pick('ragwatch_build_info', job=plan.job)})",
        summary=f"{JOB}: no ragwatch instance is running, or none is scraped.",
        description=f"Prometheus has no series of job {JOB}. Answer quality is not monitored.",
    )
    hold = span(limits.hold)
    yield _own(  # per instance, not `for`: in a long rollout there is always one that is not up yet
        name="RagwatchDown",
        meaning="An instance of ragwatch cannot be scraped.",
        delay=f"{in_words(limits.hold)} (`alerts.hold`) of one instance",
        expr=f"count by (job) (\n  {up} == 0 and max_over_time({up}[{hold}]) == 0 and {up} offset {hold}\n)",
        summary=f"{JOB}: {COUNT} ragwatch instances cannot be scraped.",
        description=f"Prometheus could not scrape {COUNT} instances of job {JOB} for {hold}.",
        hold=0.0,
    )
    yield _own(
        name="RagwatchFiguresStale",
        meaning=f"The figures of ragwatch are older than {in_words(limits.lag)}.",
        delay=in_words(limits.lag),
        expr=f"max by (job) (time() - ragwatch_last_digest_timestamp_seconds) > {limits.lag:g}",
        summary=f"{JOB}: the figures of ragwatch are {AGE} old, because its digest does not run.",
        description=f"The figures of an instance are {AGE} old; alerts that use them cannot fire.",
    )
    yield _own(
        name="RagwatchReloadFailed",
        meaning="ragwatch refused its new configuration.",
        expr="count by (job) (ragwatch_config_last_reload_successful == 0)",
        summary=f"{JOB}: {COUNT} ragwatch instances refused their new configuration.",
        description=f"{COUNT} instances could not load the new configuration and keep running with the previous one.",
    )
    yield from _internals(plan)


def _internals(plan: RulePlan) -> Iterator[Alert]:
    """Alerts on the disk, background loops, the export, and invariants."""
    window, short = span(plan.window), span(plan.windows[0])
    yield _own(
        name="RagwatchDiskLow",
        meaning=f"Less than {plan.limits.free >> 20} MiB are free for the state directory.",
        expr=f"min by (job) (ragwatch_state_free_bytes) < {plan.limits.free}",
        summary=f"{JOB}: {_FREE} are free on the disk of the ragwatch state directory.",
        description=f"{_FREE} are free on the disk of the state directory; below store.min_free ragwatch stops reading "
        "its sources.",
    )
    yield _own(
        name="RagwatchStepsFailing",
        meaning="A background loop fails repeatedly.",
        delay=f"{in_words(plan.windows[0])} window",
        expr=f"sum by (job, loop) (increase(ragwatch_step_failures_total[{short}])) > {_MAX_FAILED_STEPS}",
        summary=f"{JOB}: ragwatch loop {{{{ $labels.loop }}}} failed about {COUNT} times in {short}.",
        description=f"Loop {{{{ $labels.loop }}}} failed about {COUNT} times in the last {short}. Check disk and "
        "database.",
    )
    failures, sent = "ragwatch_export_failures_total", 'ragwatch_export_records_total{outcome="sent"}'
    yield _own(
        name="RagwatchExportFailing",
        meaning="No scores reach the endpoint of `export.otlp`.",
        delay=f"{in_words(plan.windows[0])} window",
        expr=f"sum by (job, signal) (increase({failures}[{short}])) > 0\n"
        f"and sum by (job, signal) (increase({sent}[{short}])) == 0",
        summary=f"{JOB}: no {{{{ $labels.signal }}}} with scores reach the endpoint of export.otlp; {COUNT} requests "
        "failed.",
        description=f"About {COUNT} requests with {{{{ $labels.signal }}}} failed in {short}, and none succeeded. "
        "Judging and all figures go on; the backend of the traces shows no new scores.",
    )
    yield from _faults(plan, window)


def _faults(plan: RulePlan, window: str) -> Iterator[Alert]:
    """Alerts on what is counted once; they end when the count has left the window."""
    yield _own(  # counted once for each wrong change, so what is still wrong after the window is silent
        name="RagwatchWebConfigRefused",
        meaning="A changed web.config_file or certificate is wrong.",
        delay=f"at once; ends after {in_words(plan.window)}",
        expr=f"sum by (job) (increase(ragwatch_web_config_failures_total[{window}])) > 0",
        summary=f"{JOB}: ragwatch refused a changed web.config_file or certificate.",
        description=f"About {COUNT} changes of web.config_file or its certificates were wrong in {window}. The "
        "previous users and certificates stay in force, until they expire.",
        hold=0.0,
    )
    yield _own(
        name="RagwatchInvariantViolated",
        meaning="The counters of ragwatch contradict each other.",
        delay="at once",
        expr=f"sum by (job, law) (increase(ragwatch_invariant_violations_total[{window}])) > 0",
        summary=f"{JOB}: the counters of ragwatch violate invariant {{{{ $labels.law }}}}. This is a bug.",
        description=f"Invariant {{{{ $labels.law }}}} was violated about {COUNT} times in {window}. Figures may be "
        "wrong.",
        hold=0.0,
    )
