"""Alerts on answer quality. They compare the limit of an interval, not the mean, and need enough samples.

Thresholds are about levels: in people's terms, with the judge's own error in the interval. Drift is about changes.
Texts on an error budget say when it is used up.

One page per route: each of these alerts starts only while none of the others pages about its route.
"""

from collections.abc import Iterator
from functools import partial
from itertools import product
from math import ceil

from ragwatch.model.quantities import LOW_IS_GOOD, Quantity
from ragwatch.model.signals import Signal
from ragwatch.rules import texts
from ragwatch.rules.alert import PERCENT, Alert, Area, Severity
from ragwatch.rules.plan import PERIOD, BurnRate, RulePlan
from ragwatch.rules.promql import pick, span, unless_paged
from ragwatch.rules.recording import level
from ragwatch.rules.traffic_alerts import undecided
from ragwatch.statistics.estimators.level import CALIBRATED_LABELS

_IGNORED = str(Quantity.TOP_RANKED_IGNORED)
_OTHERS = f'quantity!="{_IGNORED}"'
_CELL = "job, route, quantity"
OF_SIGNALS = f'alertname="RagwatchTrafficDrift",signal=~"{"|".join(s for s in Signal if s.row.explains)}"'
"""Pages about signals that change the scores of the answers that have them: quality would repeat them."""
_MEND_HOURS = 6
DETECTOR_DELAY = "see the table of delays in [statistics](statistics.md)"

_quality = partial(Alert, area=Area.QUALITY, board="overview", labels=("job", "route", "judge"))


def alerts(plan: RulePlan) -> Iterator[Alert]:
    """Alerts on answer quality, the most severe first."""
    if any(not quantity.row.own_alert for quantity, _, _ in plan.limits_by_route):
        yield _bad(plan)
    if any(not quantity.row.own_alert for quantity in plan.drift_quantities):
        yield _drift(plan)
        yield _segments(plan)
        yield _standing(plan)
    yield _ignored(plan)
    for (quantity, route, objective), burn in product(plan.objectives_by_route, plan.burns):
        yield _burning(plan, quantity, route, objective, burn)


def _alarm(matcher: str) -> str:
    return f"max by ({_CELL}) (ragwatch_drift_alarm{{{matcher}}}) == 1"


def _judged(alarm: str, plan: RulePlan) -> str:
    """The series of drift have no label `judge`: it is that of the configuration."""
    return f'label_replace({alarm}, "judge", "{plan.watcher}", "", "")'


def _compared(plan: RulePlan, baseline: str, control: str) -> str:
    """Template text: `control` on a route that is compared with a control (`drift.controls`), else `baseline`."""
    routes = " ".join(f'"{route}"' for route in plan.controlled)
    if not routes:
        return baseline
    return f"{{{{ if eq $labels.route {routes} }}}}{control}{{{{ else }}}}{baseline}{{{{ end }}}}"


def _bad(plan: RulePlan) -> Alert:
    """One alert per route, however many quantities are bad: they usually drop together, and one page is enough."""
    window, limit = span(plan.window), "route:ragwatch_quality:threshold"
    here = f"{limit}{{{texts.PLACE},quantity='%s'}}"
    level = f"route:ragwatch_quality:level{{{texts.PLACE},quantity='%s'}}"
    bad = f"route:ragwatch_quality:shortfall{{{texts.PLACE},quantity!='{_IGNORED}'}} > 0"
    headline = (
        f"{{{{ $worst }}}}{texts.figure(level, ' is ')}{texts.figure(here, ', threshold ')}"
        f"{texts.since_when(plan, limit)}"
    )
    listed = "".join(
        f'{{{{ range printf "{query}" {texts.ARGUMENTS} .Labels.quantity | query }}}}{text}{{{{ end }}}}'
        for query, text in (
            (level, ' {{ .Value | printf "%.2f" }}'),
            (here, ', threshold {{ .Value | printf "%.2f" }}'),
        )
    )
    entry = f'{{{{ .Labels.quantity }}}}{listed}, worse by at least {{{{ .Value | printf "%.2f" }}}}; '
    parameters = texts.of_worst(bad, texts.ARGUMENTS, texts.failing(plan, limit))
    return _quality(
        name="RagwatchQualityBad",
        meaning="The level of a quality metric of a route is worse than its threshold: the whole interval of the last "
        "hour, which contains the error of the judge, lies beyond it. Before about "
        f"{CALIBRATED_LABELS} labels of the route it does only where nearly every answer is bad.",
        delay="until the hour is that bad",
        promise="below 2.5 % at any time for a level exactly at its threshold, next to 0 for a better one",
        severity=Severity.CRITICAL,
        expr=unless_paged(
            f'max by (job, route, judge) (route:ragwatch_quality:shortfall{{quantity!="{_IGNORED}"}}) > 0',
            window,
            'alertname=~"RagwatchQualityDrift|RagwatchErrorBudgetBurn"',
            OF_SIGNALS,
        ),
        summary=(
            "{{ $labels.route }}: "
            f"{texts.of_worst(bad, texts.ARGUMENTS, headline, 'answer quality is worse than a threshold')}."
        ),
        description=(
            f"Level of the last {window} in people's terms, {plan.confidence:.0%} confidence: "
            f'{{{{ range printf "sort_desc({bad})" {texts.ARGUMENTS} | query }}}}{entry}{{{{ end }}}}'
            f"measured by judge {{{{ $labels.judge }}}}.{texts.stage()}{texts.also_changed()}"
            f"{texts.worst(texts.ANSWERING, parameters, plan.links.pages)}"
        ),
        samples=f"{parameters}&sort=worst",
        causes=texts.of_worst(bad, texts.ARGUMENTS, texts.beyond(limit)),
    )


def _active(series: str, by: str, plan: RulePlan) -> str:
    """Condition that an alarm is active, over missed scrapes; a daemon that says it has ended ends it at once."""
    return f"max by ({by}) (last_over_time({series}[{span(plan.kept)}])) == 1"


def _drift(plan: RulePlan) -> Alert:
    """Pages with the alarm, and as long: the detector keeps the promise about false alarms, and its test the end."""
    window, limit = span(plan.window), "ragwatch_drift_baseline_ratio"
    others = f"{texts.PAIR},quantity!='{_IGNORED}'"
    moved_by = f"abs(ragwatch_drift_since_ratio{{{others}}} - ragwatch_drift_before_ratio{{{others}}})"
    drifted = f"max by ({_CELL}) ({moved_by} or 0 * ragwatch_drift_alarm{{{others}}}) and on ({_CELL}) {_alarm(others)}"
    arguments = " ".join((texts.PAIR_ARGUMENTS,) * drifted.count(texts.PAIR))
    moved = f'{{{{ if match "{texts.RISING}" $worst }}}} rose{{{{ else }}}} fell{{{{ end }}}}'
    headline = f"{{{{ $worst }}}}{texts.change(' ', moved)}"
    parameters = texts.of_worst(drifted, arguments, f"{texts.beyond(limit)}{texts.begun()}")
    listed = texts.asked(f"sort_desc({drifted})", arguments, "{{ range . }} {{ .Labels.quantity }},{{ end }}")
    alarm = _active(f"ragwatch_drift_alarm{{{_OTHERS}}}", _CELL, plan)
    return _quality(
        name="RagwatchQualityDrift",
        meaning="The drift alarm of a quality metric is active: the newest answers are worse than the baseline. It "
        "ends when a test says that they are back. Not on routes with a control (`drift.controls`): they have no "
        "baseline.",
        delay=DETECTOR_DELAY,
        promise="one in `drift.false_alarm_every` (30 d) over all detectors, guaranteed",
        severity=Severity.CRITICAL,
        expr=unless_paged(
            _judged(f"max by (job, route) ({alarm} and on ({_CELL}) {_baseline(plan)})", plan),
            window,
            'alertname=~"RagwatchQualityBad|RagwatchErrorBudgetBurn"',
            OF_SIGNALS,
        )
        + f"\nunless on (job, route) (\n    {_explained(plan)}\n)",
        summary=(
            "{{ $labels.route }}: "
            f"{texts.of_worst(drifted, arguments, headline, 'answer quality has changed')} (drift)."
        ),
        description=(
            f"Answers are worse than their baseline:{listed} by judge {{{{ $labels.judge }}}}. This page ends when the "
            "newest answers are back at the baseline; /drift says since when."
            f"{texts.stage()}{texts.also_changed()}{texts.worst(texts.DRIFTED, parameters, plan.links.pages)}"
        ),
        samples=f"{parameters}&sort=worst",
        causes=texts.of_worst(drifted, arguments, texts.beyond(limit)),
        origin=texts.DRIFTED,
        hold=0.0,
        kept=0.0,
    )


def _explained(plan: RulePlan) -> str:
    """Breaks that began before the end of a page about signals, for some hours: the end of their alarm is due later.

    And those of a route about which a signal may page after some more answers; a page that fires already stays.
    """
    began = "max by (job, route) (ragwatch_drift_change_start_timestamp_seconds)"
    paged = f'ALERTS{{{OF_SIGNALS},alertstate="firing",severity="critical"}}'
    over = f"{began} < on (job, route) max by (job, route) (max_over_time(timestamp({paged})[{_MEND_HOURS}h:1m]))"
    if not plan.rises:
        return over
    stays = 'ALERTS{alertname="RagwatchQualityDrift",alertstate="firing"}'
    return f"{over}\n    or ({undecided(plan)})\n    unless on (job, route) {stays}"


def _baseline(plan: RulePlan) -> str:
    return f"max by ({_CELL}) (last_over_time(ragwatch_drift_baseline_ratio[{span(plan.kept)}]))"


def _segments(plan: RulePlan) -> Alert:
    """The ticket of a segment; not while a page tells of its whole route, nor within a window after that."""
    by = "job, route, segment, value"
    of_route = f"max by (job, route) (max_over_time(ragwatch_drift_alarm{{{_OTHERS}}}[{span(plan.window)}])) == 1"
    place = "job='%s',route='%s',segment='%s',value=%q"
    drifted = f"max by (quantity) (ragwatch_segment_drift_alarm{{{place},quantity!='{_IGNORED}'}}) == 1"
    arguments = "$labels.job $labels.route $labels.segment $labels.value"
    headline = f"{{{{ $worst }}}}{texts.change(' ', ' is worse', texts.OF_SEGMENT)}"
    listed = texts.asked(drifted, arguments, "{{ range . }} {{ .Labels.quantity }}{{ end }}")
    return _quality(
        name="RagwatchSegmentDrift",
        meaning="The newest answers of a value of a segment (`segments`: a tenant, a release) are worse than their own "
        "baseline, and those of the route as a whole are not. It ends when a test says that they are back.",
        delay=DETECTOR_DELAY,
        promise="as QualityDrift, together with it",
        expr=_judged(
            f"({_active(f'ragwatch_segment_drift_alarm{{{_OTHERS}}}', by, plan)}\nunless on (job, route) {of_route})",
            plan,
        ),
        summary=(
            "{{ $labels.route }}: {{ $labels.segment }} {{ $labels.value }}: "
            f"{texts.of_worst(drifted, arguments, headline, 'answers are worse')} (drift)."
        ),
        description=(
            "Answers of {{ $labels.segment }} {{ $labels.value }} on route {{ $labels.route }} are worse than their "
            f"own baseline:{listed}, by judge {{{{ $labels.judge }}}}. If that is intended: ragwatch acknowledge "
            "--route '{{ $labels.route }}' --renew."
        ),
        labels=("job", "route", "judge", "segment", "value"),
        samples=f"{texts.of_worst(drifted, arguments, '&quantity={{ $worst }}')}&sort=worst",
        causes=texts.of_worst(drifted, arguments, texts.beyond("ragwatch_drift_baseline_ratio")),
        segments=texts.of_worst(drifted, arguments, "&quantity={{ $worst }}"),
        hold=0.0,
        kept=0.0,
    )


def _standing(plan: RulePlan) -> Alert:
    """The ticket of an alarm that no test ends: without a baseline, nobody can say that answers are back."""
    route = "--route '{{ $labels.route }}' --quantity {{ $labels.quantity }}"
    broke = f"{{{{ $worst := $labels.quantity }}}}{texts.change(': ', '')}"
    limit = _compared(plan, "its baseline under an earlier judge", "its control (drift.controls)")
    intended = _compared(plan, "add --renew", "take the route out of drift.controls")
    return _quality(
        name="RagwatchQualityDriftStanding",
        meaning="A drift alarm that does not end by itself awaits acknowledgement: its route has a control "
        "(`drift.controls`), or another judge reads the answers since, so that there is no baseline.",
        promise="as QualityDrift",
        expr=_judged(f"({_alarm(_OTHERS)} unless on ({_CELL}) {_baseline(plan)})", plan),
        summary="{{ $labels.route }}: the drift alarm of {{ $labels.quantity }} awaits acknowledgement.",
        description=(
            f"{{{{ $labels.quantity }}}} on route {{{{ $labels.route }}}} has drifted beyond {limit}{broke}. "
            f"After the mend: ragwatch acknowledge {route}. If the new level is intended: {intended}."
            f"{texts.stage()}"
        ),
        labels=("job", "route", "judge", "quantity"),
        samples="&quantity={{ $labels.quantity }}&sort=worst",
        origin=texts.DRIFTED,
        causes=f"{{{{ $worst := $labels.quantity }}}}{texts.beyond('ragwatch_drift_baseline_ratio')}",
    )


def _ignored(plan: RulePlan) -> Alert:
    """From the drift detector, which controls false alarms: the normal rate differs from route to route."""
    window = span(plan.window)
    faults = "sum by (fault) (increase(ragwatch_top_ranked_fault_samples_total{job='%s',route='%s'}" + f"[{window}]))"
    fault = texts.asked(
        f"topk(1, {faults} > 0)",
        texts.PAIR_ARGUMENTS,
        ' Most frequent fault: {{ . | first | label "fault" }}.',
    )
    return _quality(
        name="RagwatchTopContextIgnored",
        meaning="More answers than in the baseline do not use the top-ranked context (drift detector).",
        delay="as QualityDrift",
        promise="as QualityDrift",
        severity=Severity.INFO,
        expr=_judged(_alarm(f'quantity="{_IGNORED}"'), plan),
        summary="{{ $labels.route }}: more answers than before do not use the top-ranked context.",
        description=(
            "The drift alarm of top_ranked_ignored is active: the share rose beyond "
            f"{_compared(plan, 'its baseline', 'its control (drift.controls)')}.{fault}"
        ),
        board="retrieval",
        samples=f"&quantity={_IGNORED}&sort=worst",
        causes=f"&quantity={_IGNORED}&above=0.5",
        hold=0.0,
    )


_HOURS_UP_TO = 48
_QUALITY_PAGES = 'alertname=~"RagwatchQualityBad|RagwatchQualityDrift"'
_BURN_ALERT = 'alertname="RagwatchErrorBudgetBurn"'


def _burning(plan: RulePlan, quantity: Quantity, route: str, objective: float, burn: BurnRate) -> Alert:
    long = span(burn.long)
    beyond = f"&above={1.0 - objective:g}" if quantity in LOW_IS_GOOD else f"&below={objective:g}"
    parameters = f"&quantity={quantity}{beyond}&since={span(burn.short)}"
    allowed = 1.0 - objective
    left = f"route:ragwatch_quality:error_budget_remaining{{{texts.PAIR},quantity='{quantity}'}}"
    remaining = texts.asked(
        f"max(clamp_min({left}, 0))", texts.PAIR_ARGUMENTS, f" {texts.WHOLE_PERCENT} of the 30-day error budget remain."
    )
    return _quality(
        name="RagwatchErrorBudgetBurn",
        meaning="The error budget of an objective (`alerts.slos`) is used up soon, over a long and a short window, and "
        "the whole interval of the level lies beyond the objective.",
        delay="1 h, 6 h, 1 d or 3 d windows (`alerts.burns`)",
        promise="below 2.5 % at any time for an error exactly at the burn rate",
        severity=Severity(burn.severity),
        expr=_condition(plan, quantity, route, objective, burn),
        summary=(
            f"{{{{ $labels.route }}}}: the error budget of {quantity} is used up{_when(quantity, objective, burn)}."
        ),
        description=(
            f"The mean error of {quantity} was at least {PERCENT} over the last {long}; the objective "
            f"of {objective:.4g} allows {allowed:.1%}.{remaining}{texts.stage()}{texts.also_changed()}"
            f"{texts.worst(texts.ANSWERING, parameters, plan.links.pages)}"
        ),
        samples=f"{parameters}&sort=worst",
        causes=f"&quantity={quantity}{beyond}",
        hold=0.0,
        static_labels={"quantity": str(quantity), "window": long},
    )


def _condition(plan: RulePlan, quantity: Quantity, route: str, objective: float, burn: BurnRate) -> str:
    long, short = span(burn.long), span(burn.short)
    chosen = {"quantity": str(quantity), "judge": plan.judge}
    limit = burn.factor * (1 - objective)
    is_low_good = quantity in LOW_IS_GOOD
    end, beyond = ("low", f"> {1.0 - objective:g}") if is_low_good else ("high", f"< {objective:g}")

    def error(figure: str, window: str) -> str:
        value = pick(f"route:ragwatch_quality:{figure}", route, **chosen, window=window)
        return value if is_low_good else f"1 - {value}"

    enough, few = (
        pick("route:ragwatch_quality:effective_samples", route, **chosen, window=window) for window in (long, short)
    )
    burning = (
        f"{error(end, long)} > {limit:.6g}\n"
        f"and on (job, route) {error('mean', short)} > {limit:.6g}\n"
        f"and on (job, route) {enough} >= {plan.limits.samples}\n"
        f"and on (job, route) {few} >= {ceil(plan.limits.samples / 3)}\n"
        f"and on (job, route) {level(plan, quantity, route, f'_{end}')} {beyond}"
    )
    if burn.severity == "critical":
        others = (f'{_BURN_ALERT},window!="{long}"', f'{_BURN_ALERT},quantity!="{quantity}"')
        return unless_paged(f"({burning})", short, _QUALITY_PAGES, *others)
    # After a page about the same route, a ticket would be new after the mend.
    names = "RagwatchQuality(Bad|Drift)|RagwatchErrorBudgetBurn"
    paged = f'ALERTS{{alertname=~"{names}",severity="critical",alertstate="firing"}}'
    return f"({burning})\nunless on (job, route) max by (job, route) (max_over_time({paged}[{short}]))"


def _when(quantity: Quantity, objective: float, burn: BurnRate) -> str:
    """Template text such as ` in 2 days`, from the budget that remains and the mean error of the short window."""
    chosen = f"{texts.PAIR},quantity='{quantity}'"
    value = f"max(route:ragwatch_quality:mean{span(burn.short)}{{{chosen},window='{span(burn.short)}'}})"
    error = value if quantity in LOW_IS_GOOD else f"(1 - {value})"
    remaining = f"max(clamp_min(route:ragwatch_quality:error_budget_remaining{{{chosen}}}, 0))"
    hours = f"({remaining} * {PERIOD * (1.0 - objective) / 3600.0:.6g} / ({error} > 0))"
    arguments = f"{texts.PAIR_ARGUMENTS} {texts.PAIR_ARGUMENTS}"
    count = '{{ . | first | value | printf "%.0f" }}'
    return texts.asked(f"1 <= {hours} < {_HOURS_UP_TO}", arguments, f" in {count} hours") + texts.asked(
        f"{hours} / 24 >= {_HOURS_UP_TO // 24}", arguments, f" in {count} days"
    )
