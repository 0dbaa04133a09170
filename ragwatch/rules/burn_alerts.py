"""Alerts on the error budget of answer quality objectives. Their texts say when the budget is used up."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import ceil

from ragwatch.model.quantities import LOW_IS_GOOD, Quantity
from ragwatch.rules import texts
from ragwatch.rules.alert import PERCENT, Alert, Area, Severity
from ragwatch.rules.plan import PERIOD, BurnRate, RulePlan
from ragwatch.rules.promql import pick, span, unless_paged
from ragwatch.rules.recording import level

_PLACE, _ARGUMENTS = "job='%s',route='%s'", "$labels.job $labels.route"
_HOURS_UP_TO = 48
_PAGES = 'alertname=~"RagwatchQualityBad|RagwatchQualityDrift"'
_NAME = 'alertname="RagwatchErrorBudgetBurn"'


def alerts(plan: RulePlan) -> Iterator[Alert]:
    """One alert per objective and burn rate."""
    for (quantity, route, objective), burn in product(plan.objectives_by_route, plan.burns):
        yield _burning(plan, quantity, route, objective, burn)


def _burning(plan: RulePlan, quantity: Quantity, route: str, objective: float, burn: BurnRate) -> Alert:
    long = span(burn.long)
    beyond = f"&above={1.0 - objective:g}" if quantity in LOW_IS_GOOD else f"&below={objective:g}"
    parameters = f"&quantity={quantity}{beyond}&since={span(burn.short)}"
    allowed = 1.0 - objective
    left = f"route:ragwatch_quality:error_budget_remaining{{{_PLACE},quantity='{quantity}'}}"
    remaining = texts.asked(
        f"max(clamp_min({left}, 0))", _ARGUMENTS, f" {texts.WHOLE_PERCENT} of the 30-day error budget remain."
    )
    return Alert(
        name="RagwatchErrorBudgetBurn",
        meaning="The error budget of an objective (`alerts.slos`) is used up soon, over a long and a short window, and "
        "the whole interval of the level lies beyond the objective.",
        delay="1 h, 6 h, 1 d or 3 d windows (`alerts.burns`)",
        promise="below 2.5 % at any time for an error exactly at the burn rate",
        severity=Severity(burn.severity),
        area=Area.QUALITY,
        expr=_condition(plan, quantity, route, objective, burn),
        summary=(
            f"{{{{ $labels.route }}}}: the error budget of {quantity} is used up{_when(quantity, objective, burn)}."
        ),
        description=(
            f"The mean error of {quantity} was at least {PERCENT} over the last {long}; the objective "
            f"of {objective:.4g} allows {allowed:.1%}.{remaining}{texts.stage()}{texts.also_changed()}"
            f"{texts.worst(texts.ANSWERING, parameters, plan.links.pages)}"
        ),
        board="overview",
        labels=("job", "route", "judge"),
        samples=f"{parameters}&sort=worst",
        causes=f"&quantity={quantity}{beyond}",
        hold=0.0,
        static_labels={"quantity": str(quantity), "window": long},
    )


def _condition(plan: RulePlan, quantity: Quantity, route: str, objective: float, burn: BurnRate) -> str:
    long, short = span(burn.long), span(burn.short)
    chosen = {"quantity": str(quantity), "judge": plan.judge}
    limit = burn.factor * (1 - objective)

    def error(figure: str, window: str) -> str:
        value = pick(f"route:ragwatch_quality:{figure}", route, **chosen, window=window)
        return value if quantity in LOW_IS_GOOD else f"1 - {value}"

    enough = (
        pick("route:ragwatch_quality:effective_samples", route, **chosen, window=window) for window in (long, short)
    )
    beyond = (
        f"{level(plan, quantity, route, '_low')} > {1.0 - objective:g}"
        if quantity in LOW_IS_GOOD
        else f"{level(plan, quantity, route, '_high')} < {objective:g}"
    )
    burning = (
        f"{error('low' if quantity in LOW_IS_GOOD else 'high', long)} > {limit:.6g}\n"
        f"and on (job, route) {error('mean', short)} > {limit:.6g}\n"
        f"and on (job, route) {next(enough)} >= {plan.limits.samples}\n"
        f"and on (job, route) {next(enough)} >= {ceil(plan.limits.samples / 3)}\n"
        f"and on (job, route) {beyond}"
    )
    if burn.severity == "critical":
        others = (f'{_NAME},window!="{long}"', f'{_NAME},quantity!="{quantity}"')
        return unless_paged(f"({burning})", short, _PAGES, *others)
    # After a page about the same route, a ticket would be new after the mend.
    names = "RagwatchQuality(Bad|Drift)|RagwatchErrorBudgetBurn"
    paged = f'ALERTS{{alertname=~"{names}",severity="critical",alertstate="firing"}}'
    return f"({burning})\nunless on (job, route) max by (job, route) (max_over_time({paged}[{short}]))"


def _when(quantity: Quantity, objective: float, burn: BurnRate) -> str:
    """Template text such as ` in 2 days`, from the budget that remains and the mean error of the short window."""
    chosen = f"{_PLACE},quantity='{quantity}'"
    value = f"max(route:ragwatch_quality:mean{span(burn.short)}{{{chosen},window='{span(burn.short)}'}})"
    error = value if quantity in LOW_IS_GOOD else f"(1 - {value})"
    remaining = f"max(clamp_min(route:ragwatch_quality:error_budget_remaining{{{chosen}}}, 0))"
    hours = f"({remaining} * {PERIOD * (1.0 - objective) / 3600.0:.6g} / ({error} > 0))"
    arguments = f"{_ARGUMENTS} {_ARGUMENTS}"
    count = '{{ . | first | value | printf "%.0f" }}'
    return texts.asked(f"1 <= {hours} < {_HOURS_UP_TO}", arguments, f" in {count} hours") + texts.asked(
        f"{hours} / 24 >= {_HOURS_UP_TO // 24}", arguments, f" in {count} days"
    )
