"""Alerts about ragwatch itself: gone, not configured, failing, or wrong."""

from __future__ import annotations

from collections.abc import Iterator

from ragwatch.exporter.oncall.alert import Alert, Area, Severity
from ragwatch.exporter.oncall.plan import Plan
from ragwatch.exporter.oncall.promql import pick, span

_COUNT = '{{ $value | printf "%.0f" }}'
_FAILED_STEPS = 3


def alerts(plan: Plan) -> Iterator[Alert]:
    """Alerts about ragwatch itself."""
    up = pick("up", job=plan.job)
    yield _own(
        "RagwatchAbsent",
        f"absent({pick('ragwatch_build_info', job=plan.job)})",
        "No ragwatch is there: nobody watches the answers.",
        "No instance of job {{ $labels.job }} shows any series.",
        severity=Severity.CRITICAL,
    )
    hold = span(plan.limits.hold)
    yield _own(  # held instance by instance: in a long rollout there is always one that is not there yet
        "RagwatchDown",
        f"count by (job) (\n  {up} == 0 and max_over_time({up}[{hold}]) == 0 and {up} offset {hold}\n)",
        "An instance of ragwatch cannot be scraped.",
        f"{_COUNT} instances of job {{{{ $labels.job }}}} could not be scraped for {hold}.",
        held=0.0,
    )
    yield _own(
        "RagwatchFiguresStale",
        f"max by (job) (time() - ragwatch_last_digest_timestamp_seconds) > {plan.limits.lag:g}",
        "ragwatch shows old figures: its digest stands still.",
        "The figures of an instance are {{ $value | humanizeDuration }} old, and what builds on them cannot alarm.",
    )
    yield _own(
        "RagwatchReloadFailed",
        "count by (job) (ragwatch_config_last_reload_successful == 0)",
        "ragwatch runs with an old configuration.",
        f"{_COUNT} instances could not load their configuration and keep the one before.",
    )
    yield _own(
        "RagwatchDiskLow",
        f"min by (job) (ragwatch_state_free_bytes) < {plan.limits.free}",
        "The disk of ragwatch's state is nearly full.",
        "{{ $value | humanize1024 }}B are free on the disk of the state directory; below store.min_free ragwatch reads "
        "nothing more.",
    )
    yield from _inside(plan)


def _inside(plan: Plan) -> Iterator[Alert]:
    """What is wrong within."""
    window, short = span(plan.window), span(plan.windows[0])
    yield _own(
        "RagwatchStepsFailing",
        f"sum by (job, loop) (increase(ragwatch_step_failures_total[{short}])) > {_FAILED_STEPS}",
        "A loop of ragwatch fails again and again.",
        f"The loop {{{{ $labels.loop }}}} failed about {_COUNT} times within {short}: often a disk, or the database.",
    )
    yield _own(
        "RagwatchBooksDoNotBalance",
        f"sum by (job, law) (increase(ragwatch_invariant_violations_total[{window}])) > 0",
        "Counts of ragwatch contradict one another: a bug.",
        f"The law {{{{ $labels.law }}}} was broken about {_COUNT} times within {window}.",
        held=0.0,
    )


def _own(
    name: str,
    expr: str,
    summary: str,
    description: str,
    *,
    severity: Severity = Severity.WARNING,
    held: float | None = None,
) -> Alert:
    return Alert(
        name, severity, Area.OPERATION, expr, summary, description, board="operation", labels=("job",), held=held
    )
