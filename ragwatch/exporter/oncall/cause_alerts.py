"""Alerts about what figures rest upon: canaries, judges, sources, ragwatch itself. Each counts replicas once."""

from __future__ import annotations

import json
from collections.abc import Iterator

from ragwatch.exporter.oncall.alert import PERCENT, Alert, Area, Severity
from ragwatch.exporter.oncall.plan import Plan
from ragwatch.exporter.oncall.promql import pick, span

_AGE = "{{ $value | humanizeDuration }}"
_COUNT = '{{ $value | printf "%.0f" }}'
_FEW = 5


def alerts(plan: Plan) -> Iterator[Alert]:
    """Alerts about causes."""
    yield from _canaries(plan)
    yield from _judges(plan)
    yield from _sources(plan)


def _canaries(plan: Plan) -> Iterator[Alert]:
    yield _retrieval(
        "RagwatchCanariesDegraded",
        "max by (job, suite) (ragwatch_canary_degraded) > 0",
        "The retriever no longer finds what it must find.",
        f"{_COUNT} canaries of suite {{{{ $labels.suite }}}} are degraded: the stage at fault is retrieval.",
    )
    yield _retrieval(
        "RagwatchCanariesStale",
        "\nor ".join(_stale(chosen, pause + plan.limits.canaries) for chosen, pause in _paces(plan)),
        "Canaries have not been asked for too long.",
        f"Suite {{{{ $labels.suite }}}} was last run {_AGE} ago.",
    )
    yield _retrieval(
        "RagwatchCanariesFailing",
        "\nor ".join(_failing(chosen, 2 * max(pause, plan.limits.canaries)) for chosen, pause in _paces(plan)),
        "Canaries could not be asked, run after run.",
        f"{_COUNT} questions of suite {{{{ $labels.suite }}}} had no reply in its last runs: {{{{ $labels.reason }}}}.",
    )


def _paces(plan: Plan) -> Iterator[tuple[str, float]]:
    """Matchers of suites, and what `limits.canaries` leaves out: the seconds between two runs of rare ones."""
    quoted = {json.dumps(suite, ensure_ascii=False): pause for suite, pause in plan.rare.items()}
    yield ",".join(f"suite!={suite}" for suite in quoted), 0.0
    for suite, pause in quoted.items():
        yield f"suite={suite}", pause


def _stale(chosen: str, limit: float) -> str:
    last = _of_suites("ragwatch_canary_last_run_timestamp_seconds", chosen)
    return f"time() - max by (job, suite) ({last}) > {limit:g}"


def _failing(chosen: str, seconds: float) -> str:
    """Two runs failed for the same reason, the last one among them: one may have met a service that was starting."""
    failed, run, success = (
        _of_suites(f"ragwatch_canary_{each}", chosen)
        for each in ("failures_total", "last_run_timestamp_seconds", "last_success_timestamp_seconds")
    )
    return (
        f"sum by (job, suite, reason) (\n  increase({failed}[{span(seconds)}])"
        f" and changes({failed}[{span(seconds)}]) > 1\n"
        f"  and on (job, instance, suite) ({run} unless {success} >= {run})\n)"
    )


def _of_suites(name: str, chosen: str) -> str:
    return f"{name}{{{chosen}}}" if chosen else name


def _retrieval(name: str, expr: str, summary: str, description: str) -> Alert:
    return Alert(name, Severity.WARNING, Area.RETRIEVAL, expr, summary, description, "retrieval", ("job", "suite"))


def _judges(plan: Plan) -> Iterator[Alert]:
    limits, short = plan.limits, span(plan.windows[0])
    failed, called = (
        f"sum by (job, judge) (increase(ragwatch_judge_{each}_total[{short}]))" for each in ("call_failures", "calls")
    )
    yield _judge(
        "RagwatchJudgeFailing",
        f"{failed}\n  / ({called} >= {_FEW}) > {limits.failures:g}",
        "Most calls of a judge fail.",
        f"{PERCENT} of the calls of judge {{{{ $labels.judge }}}} failed within {short}; answers go unmeasured.",
    )
    yield _judge(
        "RagwatchJudgeLeftAlone",
        "max by (job, judge) (ragwatch_judge_breaker_open) == 1",
        "A judge is left alone because it failed too often.",
        "The breaker of judge {{ $labels.judge }} is open; answers wait or go unmeasured.",
    )
    yield _judge(
        "RagwatchJudgeFallback",
        "max by (job, judge) (ragwatch_judge_fallback) == 1",
        "A judge has lost its model; words alone read.",
        "Judge {{ $labels.judge }} reads without its model: its figures are those of the lexical judge.",
    )
    yield _judge(
        "RagwatchJudgeBudgetLow",
        f"min by (job, judge) (ragwatch_judge_budget_remaining_ratio) < {limits.budget:g}",
        "The budget of a judge is nearly gone.",
        f"Judge {{{{ $labels.judge }}}} has {PERCENT} of its budget left; it reads fewer answers from now on.",
    )
    yield _judge(
        "RagwatchJudgeDrift",
        "max by (job, judge) (ragwatch_judge_drift_alarm) == 1",
        "A judge judges otherwise than it did.",
        "Judge {{ $labels.judge }} gives other verdicts on fixed samples; quality figures mean something else now.",
        held=0.0,
    )
    yield from _replies(plan)


def _replies(plan: Plan) -> Iterator[Alert]:
    """What is wrong with what a judge is told, or says."""
    limits, window = plan.limits, span(plan.window)
    unquoted = f"sum by (job, judge) (increase(ragwatch_judge_unquoted_cells_total[{window}]))"
    judged = f"sum by (job, judge) (increase(ragwatch_samples_judged_total[{window}]))"
    yield _judge(
        "RagwatchJudgeUnquoted",
        f"{unquoted}\n  / ({judged} >= {limits.samples}) > {limits.unquoted:g}",
        "A judge calls claims supported without a quote that stands in the context.",
        '{{ $value | printf "%.2f" }} such claims for each answer that judge {{ $labels.judge }} has read.',
    )
    yield _judge(
        "RagwatchJudgeInstructions",
        f"sum by (job, judge, place) (increase(ragwatch_judge_instructions_total[{window}])) > 0",
        "Texts handed to a judge speak to the judge.",
        f"About {_COUNT} texts in the {{{{ $labels.place }}}} hold orders to judge {{{{ $labels.judge }}}}.",
        held=0.0,
    )


def _judge(name: str, expr: str, summary: str, description: str, *, held: float | None = None) -> Alert:
    labels = ("job", "judge")
    return Alert(
        name, Severity.WARNING, Area.JUDGE, expr, summary, description, board="judges", labels=labels, held=held
    )


def _sources(plan: Plan) -> Iterator[Alert]:
    limits, window = plan.limits, span(plan.window)
    silent, stale = span(limits.silent), span(limits.stale)
    seen = "sum by (job, source) (increase(ragwatch_requests_seen_total[{}]))"
    ever = "sum by (job, source) (ragwatch_requests_seen_total{})"
    yield _source(  # however long it lasts: what was seen ever is kept in the state, and by whoever comes without one
        "RagwatchSourceSilent",
        f"{seen.format(silent)} == 0\nand ({ever.format('')} > 0 or {ever.format('')} == 0 and {seen.format('1d')} > 0)"
        f"\nand {ever.format(f' offset {silent}')} >= 0",  # else it is us who were away
        "A source has fallen silent.",
        f"Nothing was read from source {{{{ $labels.source }}}} for {silent} or longer, though it spoke before.",
    )
    yield _source(
        "RagwatchSourceLag",
        f"max by (job, source) (ragwatch_source_lag_seconds) > {limits.lag:g}",
        "ragwatch is far behind a source.",
        f"The oldest unread record of source {{{{ $labels.source }}}} is {_AGE} old.",
    )
    yield _source(
        "RagwatchSourceUnreadable",
        "max by (job, source) (ragwatch_source_unreadable_files) > 0",
        "Files of a source cannot be read.",
        "{{ $value }} files of source {{ $labels.source }} cannot be read; what is written there is not seen.",
    )
    rejected = f"sum by (job, source) (increase(ragwatch_requests_rejected_total[{window}]))"
    yield _source(
        "RagwatchSourceRejects",
        f"{rejected}\n  / ({seen.format(window)} >= {limits.samples}) > {limits.rejects:g}",
        "Many records of a source cannot be read.",
        f"{PERCENT} of the records of source {{{{ $labels.source }}}} were rejected within {window}.",
    )
    covered, settled = (
        pick(each, window=window)
        for each in ("route:ragwatch_coverage:ratio", "route:ragwatch_samples_settled:increase")
    )
    yield _unmeasured(
        "RagwatchCoverageLow",
        f"{covered} < {limits.coverage:g}\nand on (job, route, judge) {settled} >= {limits.samples}",
        "Many draws are never judged.",
        f"Judge {{{{ $labels.judge }}}} read {PERCENT} of its draws on route {{{{ $labels.route }}}} within {window}.",
    )
    newest = '{__name__=~"ragwatch_(faithfulness|context_use)_last_sample_timestamp_seconds"}'
    settled = f'increase({{__name__=~"ragwatch_samples_(judged|unjudged)_total"}}[{stale}])'
    yield _unmeasured(
        "RagwatchNoFreshSamples",
        f"time() - max by (job, route, judge) ({newest}) > {limits.stale:g}\n"
        f"and sum by (job, route, judge) ({settled}) >= {_FEW}",
        "A judge is given answers, but none was scored for long.",
        f"The newest scored answer on route {{{{ $labels.route }}}} by judge {{{{ $labels.judge }}}} is {_AGE} old.",
    )


def _source(name: str, expr: str, summary: str, description: str) -> Alert:
    return Alert(name, Severity.WARNING, Area.SOURCE, expr, summary, description, "operation", ("job", "source"))


def _unmeasured(name: str, expr: str, summary: str, description: str) -> Alert:
    labels = ("job", "route", "judge")
    unread = "&outcome=unjudged"
    return Alert(name, Severity.WARNING, Area.JUDGE, expr, summary, description, "judges", labels, samples=unread)
