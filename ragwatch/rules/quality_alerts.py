"""Alerts on answer quality. They compare the limit of a confidence interval, not the mean, and need enough samples."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import ceil

from ragwatch.core.scores import LOW_IS_GOOD, Quantity
from ragwatch.rules.alert import PERCENT, Alert, Area, Severity
from ragwatch.rules.burn import BurnRate
from ragwatch.rules.plan import RulePlan
from ragwatch.rules.promql import pick, span

_PAIR = "job='%s',route='%s'"


def alerts(plan: RulePlan) -> Iterator[Alert]:
    """Alerts on answer quality, the most severe first."""
    if plan.thresholds:
        yield _bad(plan)
    for (quantity, objective), burn in product(plan.objectives.items(), plan.burns):
        yield _burning(plan, quantity, objective, burn)
    yield _ignored(plan)
    yield Alert(
        name="RagwatchQualityDrift",
        severity=Severity.WARNING,
        area=Area.QUALITY,
        expr="max by (job, route, quantity) (ragwatch_drift_alarm) == 1",
        summary="Answer quality has drifted from its baseline.",
        description=(
            "{{ $labels.quantity }} on route {{ $labels.route }} has drifted from its baseline"
            f"{_figure('mean', 'ragwatch_drift_baseline_ratio')}. The alarm stays active until someone acknowledges it "
            f"or renews the baseline (ragwatch acknowledge).{_stage(plan)}"
        ),
        board="overview",
        labels=("job", "route", "quantity"),
        samples="&quantity={{ $labels.quantity }}",
        hold=0.0,
    )
    yield Alert(
        name="RagwatchTrafficDrift",
        severity=Severity.INFO,
        area=Area.RETRIEVAL,
        expr="max by (job, route, signal) (ragwatch_traffic_drift_alarm) == 1",
        summary="The distribution of a traffic signal has changed.",
        description="The distribution of {{ $labels.signal }} on route {{ $labels.route }} differs from its reference.",
        board="retrieval",
        labels=("job", "route", "signal"),
        hold=0.0,
    )


def _figure(label: str, series: str) -> str:
    """Template text with the value of a series for the alert's route and quantity; empty if there is no such value."""
    query = f"max({series}{{{_PAIR},quantity='%s'}})"
    return (
        f'{{{{ with printf "{query}" $labels.job $labels.route $labels.quantity | query }}}}'
        f" ({label} {{{{ . | first | value | humanizePercentage }}}}){{{{ end }}}}"
    )


def _worst_stage(plan: RulePlan, then: str) -> str:
    """Template text with the most frequent stage at fault in the window; empty if no answer was bad."""
    stages = f"route:ragwatch_stage_samples:increase{{{_PAIR},stage!='none',window='{span(plan.window)}'}}"
    return f'{{{{ with printf "topk(1, {stages} > 0)" $labels.job $labels.route | query }}}}{then}{{{{ end }}}}'


def _stage(plan: RulePlan) -> str:
    return _worst_stage(plan, ' Stage at fault in most bad answers: {{ . | first | label "stage" }}.')


def _bad(plan: RulePlan) -> Alert:
    """One alert per route, however many quantities are bad: they usually drop together, and one page is enough."""
    window = span(plan.window)
    chosen = "job='%s',route='%s',judge='%s'"
    arguments = "$labels.job $labels.route $labels.judge"
    mean = f"route:ragwatch_quality:mean{{{chosen},quantity='%s',window='{window}'}}"
    worst = f"sort_desc(route:ragwatch_quality:shortfall{{{chosen}}} > 0)"
    percent = "{{ .Value | humanizePercentage }}"
    entry = (
        "{{ .Labels.quantity }}"
        f'{{{{ range printf "{mean}" {arguments} .Labels.quantity | query }}}} {percent}{{{{ end }}}}'
        f"{{{{ range printf \"ragwatch:quality_threshold{{quantity='%s'}}\" .Labels.quantity | query }}}}"
        f", threshold {percent}{{{{ end }}}}, worse by at least {percent}; "
    )
    return Alert(
        name="RagwatchQualityBad",
        severity=Severity.CRITICAL,
        area=Area.QUALITY,
        expr="max by (job, route, judge) (route:ragwatch_quality:shortfall) > 0",
        summary="Answer quality is significantly worse than its threshold.",
        description=(
            f"Route {{{{ $labels.route }}}}, last {window}, {plan.confidence:.0%} confidence: "
            f'{{{{ range printf "{worst}" {arguments} | query }}}}{entry}{{{{ end }}}}'
            f"measured by judge {{{{ $labels.judge }}}}.{_stage(plan)}"
        ),
        board="overview",
        labels=("job", "route", "judge"),
        samples=_worst_stage(plan, '&stage={{ . | first | label "stage" }}'),
    )


def _burning(plan: RulePlan, quantity: Quantity, objective: float, burn: BurnRate) -> Alert:
    long, short = span(burn.long), span(burn.short)
    chosen = {"quantity": str(quantity), "judge": plan.judge}
    error = burn.factor * (1 - objective)
    sure = _error(quantity, "low" if quantity in LOW_IS_GOOD else "high", long, chosen)
    now = _error(quantity, "mean", short, chosen)
    samples = "route:ragwatch_quality:effective_samples"
    enough = pick(samples, **chosen, window=long), pick(samples, **chosen, window=short)
    return Alert(
        name="RagwatchErrorBudgetBurn",
        severity=Severity(burn.severity),
        area=Area.QUALITY,
        expr=(
            f"{sure} > {error:.6g}\n"
            f"and on (job, route) {now} > {error:.6g}\n"
            f"and on (job, route) {enough[0]} >= {plan.limits.samples}\n"
            f"and on (job, route) {enough[1]} >= {ceil(plan.limits.samples / 3)}"
        ),
        summary="The error budget of an answer quality objective is burning too fast.",
        description=(
            f"{quantity} on route {{{{ $labels.route }}}}: the mean error is at least {PERCENT} over {long} and above "
            f"{error:.1%} over {short}, {burn.factor:.3g} times the error that an objective of {objective:.4g} allows. "
            f"This rate burns {burn.budget:.0%} of the 30-day error budget in {long}.{_stage(plan)}"
        ),
        board="overview",
        labels=("job", "route", "judge"),
        samples=f"&quantity={quantity}"
        + (f"&above={1.0 - objective:g}" if quantity in LOW_IS_GOOD else f"&below={objective:g}"),
        hold=0.0,
        static_labels={"quantity": str(quantity), "window": long},
    )


def _error(quantity: Quantity, figure: str, window: str, chosen: dict[str, str]) -> str:
    read = pick(f"route:ragwatch_quality:{figure}", **chosen, window=window)
    return read if quantity in LOW_IS_GOOD else f"1 - {read}"


def _ignored(plan: RulePlan) -> Alert:
    """Compares with the same route's own baseline, because the normal rate differs from service to service."""
    chosen = {"quantity": str(Quantity.TOP_RANKED_IGNORED), "judge": plan.judge}
    window, long = span(plan.window), span(plan.windows[-1])
    now = pick("route:ragwatch_quality:low", **chosen, window=window)
    before = f"{pick('route:ragwatch_quality:high', **chosen, window=long)} offset {window}"
    samples = "route:ragwatch_quality:effective_samples"
    return Alert(
        name="RagwatchTopContextIgnored",
        severity=Severity.WARNING,
        area=Area.QUALITY,
        expr=(
            f"{now}\n  > on (job, route, judge, quantity) {before}\n"
            f"and on (job, route) {pick(samples, **chosen, window=window)} >= {plan.limits.samples}\n"
            f"and on (job, route) {pick(samples, **chosen, window=long)} offset {window} >= {plan.limits.samples}"
        ),
        summary="Answers ignore the top-ranked context more often than before.",
        description=(
            f"At least {PERCENT} of the answers on route {{{{ $labels.route }}}} in the last {window} did not use the "
            f"top-ranked context, more than over the {long} before.{_fault(window)}"
        ),
        board="retrieval",
        labels=("job", "route", "judge"),
        samples="&quantity=top_ranked_ignored",
    )


def _fault(window: str) -> str:
    faults = f"sum by (fault) (increase(ragwatch_top_ranked_fault_samples_total{{{_PAIR}}}[{window}]))"
    return (
        f'{{{{ with printf "topk(1, {faults} > 0)" $labels.job $labels.route | query }}}}'
        ' Most frequent fault: {{ . | first | label "fault" }}.{{ end }}'
    )
