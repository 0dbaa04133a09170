"""Builds the parts of alert texts: Go templates that query Prometheus when an alert is sent.

The texts answer, in this order: which route, what, how much, since when; which stage changed; whether a judge or the
retriever changed too; where the failing answers are.
"""

from __future__ import annotations

from ragwatch.model.quantities import LOW_IS_GOOD
from ragwatch.rules.plan import RulePlan
from ragwatch.rules.promql import span

PLACE = "job='%s',route='%s',judge='%s'"
ARGUMENTS = "$labels.job $labels.route $labels.judge"
RISING = "|".join(sorted(LOW_IS_GOOD))
TWO_DIGITS = '{{ . | first | value | printf "%.2f" }}'
WHOLE_PERCENT = "{{ . | first | value | humanizePercentage }}"
_PAIR = "job='%s',route='%s'"
_PAIR_ARGUMENTS = "$labels.job $labels.route"
_SINCE_HOURS = 6
_NEWEST = 3


def asked(query: str, arguments: str, then: str, otherwise: str = "") -> str:
    """Template text `then` with the result of a query as `.`; `otherwise` if the query finds nothing."""
    other = f"{{{{ else }}}}{otherwise}" if otherwise else ""
    return f'{{{{ with printf "{query}" {arguments} | query }}}}{then}{other}{{{{ end }}}}'


def of_worst(series: str, arguments: str, then: str, otherwise: str = "") -> str:
    """Template text `then` with `$worst`, the quantity in which a series is largest; `otherwise` if there is none.

    Args:
        series: Expression whose result has the label quantity, with `%s` for the arguments.
        arguments: Of the template.
        then: Template text.
        otherwise: Template text.
    """
    inner = f"{{{{ with . | first }}}}{{{{ $worst := .Labels.quantity }}}}{then}{{{{ end }}}}"
    return asked(f"topk(1, {series})", arguments, inner, otherwise)


def figure(query: str, before: str, shape: str = TWO_DIGITS) -> str:
    """Template text with the value of a query about `$worst`, after the text `before`; empty if there is none."""
    return asked(query, f"{ARGUMENTS} $worst", f"{before}{shape}")


def mean(window: float) -> str:
    """PromQL of the mean of a quantity over a window, for `figure`."""
    return f"route:ragwatch_quality:mean{span(window)}{{{PLACE},quantity='%s',window='{span(window)}'}}"


def mean_before(plan: RulePlan) -> str:
    """PromQL of the median of the mean over the longest window, for `figure`: what was usual before."""
    return f"quantile_over_time(0.5, {mean(plan.window)}[{span(plan.windows[-1])}])"


def since(plan: RulePlan, limit: str, then: str, otherwise: str = "") -> str:
    """Template text `then` with the last time at which the newest mean of `$worst` was within a limit as `.`.

    Args:
        plan: Its first window is the newest mean.
        limit: Series with labels job, route and quantity.
        then: Template text.
        otherwise: Text if the mean was not within the limit in the last hours.
    """
    newest = (
        f"route:ragwatch_quality:mean{span(plan.windows[0])}{{{PLACE},quantity='%s',window='{span(plan.windows[0])}'"
    )
    compared = f"on (job, route, quantity) group_left () max by (job, route, quantity) ({limit})"
    good = f"{newest},quantity!~'{RISING}'}} >= {compared} or {newest},quantity=~'{RISING}'}} <= {compared}"
    query = f"max_over_time(timestamp({good})[{_SINCE_HOURS}h:1m])"
    return asked(query, f"{ARGUMENTS} $worst {ARGUMENTS} $worst", then, otherwise)


def since_when(plan: RulePlan, limit: str) -> str:
    """Template text such as ` since 04:18 UTC`."""
    clock = ' since {{ (. | first | value | toTime).Format "15:04" }} UTC'
    newest = (
        f"route:ragwatch_quality:mean{span(plan.windows[0])}{{{PLACE},quantity='%s',window='{span(plan.windows[0])}'}}"
    )
    first = f"min_over_time(timestamp({newest})[{_SINCE_HOURS}h:1m])"
    return since(plan, limit, clock, asked(first, f"{ARGUMENTS} $worst", f"{clock} or earlier"))


def stage() -> str:
    """Template text with the stage at fault whose share rose most; empty if there are too few answers."""
    arguments = f"{_PAIR_ARGUMENTS} $stage"
    percent = '{{ . | first | value | printf "%.0f" }}'
    before = asked(f"100 * route:ragwatch_stage:before{{{_PAIR},stage='%s'}}", arguments, f" from {percent}")
    recent = asked(f"100 * route:ragwatch_stage:recent{{{_PAIR},stage='%s'}}", arguments, f" to {percent} %")
    named = '{{ $stage := . | first | label "stage" }} Stage that changed most: {{ $stage }},'
    risen = f"topk(1, route:ragwatch_stage:rise{{{_PAIR}}} > 0)"
    return asked(risen, _PAIR_ARGUMENTS, f"{named}{before}{recent} of answers.")


def also_changed() -> str:
    """Template text on other changes: of the judge, whose scores are then not comparable, and of canaries."""
    judge, arguments = "job='%s',judge='%s'", "$labels.job $labels.judge"
    window = span(_SINCE_HOURS * 3600)
    return (
        asked(
            f"max(ragwatch_judge_drift_alarm{{{judge}}}) == 1",
            arguments,
            " The judge changed too (RagwatchJudgeDrift): check it first.",
        )
        + asked(
            f"count(count by (version) (count_over_time(ragwatch_judge_info{{{judge}}}[{window}]))) > 1",
            arguments,
            f" The judge has had a new version within {window}.",
        )
        + asked(
            "sum(max by (suite) (ragwatch_canary_degraded{job='%s'})) > 0",
            "$labels.job",
            ' Canaries degraded: {{ . | first | value | printf "%.0f" }}.',
        )
    )


def bound(limit: str) -> str:
    """Template text of the URL parameter `below`, or `above` where low is good, with the limit of `$worst`."""
    name = f'{{{{ if match "{RISING}" $worst }}}}above{{{{ else }}}}below{{{{ end }}}}'
    query = f"max({limit}{{{_PAIR},quantity='%s'}})"
    return asked(query, f"{_PAIR_ARGUMENTS} $worst", f'&{name}={{{{ . | first | value | printf "%.4g" }}}}')


def beyond(limit: str) -> str:
    """URL parameters of the answers beyond a limit of `$worst`."""
    return f"&quantity={{{{ $worst }}}}{bound(limit)}"


def failing(plan: RulePlan, limit: str) -> str:
    """URL parameters of the answers beyond a limit since the alert began."""
    age = f"&since={_SINCE_HOURS}h"
    start = since(plan, limit, '&since={{ . | first | value | printf "%.0f" }}', age)
    return f"{beyond(limit)}{start}"


def newest(plan: RulePlan, parameters: str) -> str:
    """Text with the address of the newest failing answers; empty if the address of the pages is not known."""
    if plan.links.pages is None:
        return ""
    place = "route={{ $labels.route }}&judge={{ $labels.judge }}"
    return f" Newest failing answers: {plan.links.pages}/samples?{place}{parameters}&limit={_NEWEST}"
