"""Builds the parts of alert texts: Go templates that query Prometheus when an alert is sent.

The texts answer, in this order: which route, what, how much, since when; which stage changed; whether a judge or the
retriever changed too; where the failing answers are.
"""

from ragwatch.model.quantities import LOW_IS_GOOD
from ragwatch.rules.plan import RulePlan
from ragwatch.rules.promql import span

PLACE = "job='%s',route='%s',judge='%s'"
ARGUMENTS = "$labels.job $labels.route $labels.judge"
RISING = "|".join(sorted(LOW_IS_GOOD))
TWO_DIGITS = '{{ . | first | value | printf "%.2f" }}'
WHOLE_PERCENT = "{{ . | first | value | humanizePercentage }}"
PAIR = "job='%s',route='%s'"
PAIR_ARGUMENTS = "$labels.job $labels.route"
_CELL, _OF_WORST = f"{PAIR},quantity='%s'", f"{PAIR_ARGUMENTS} $worst"
OF_ROUTE = "ragwatch_drift", _CELL, _OF_WORST
"""What texts tell the break of: prefix of its series, matchers with `%s` for the arguments, and the arguments."""
OF_SEGMENT = (
    "ragwatch_segment_drift",
    f"{_CELL},segment='%s',value=%q",  # a value may have a quotation mark
    f"{_OF_WORST} $labels.segment $labels.value",
)
BEGIN = f"max(ragwatch_drift_change_start_timestamp_seconds{{{_CELL}}})"
ANSWERING = f"ragwatch_traffic_contexts_count{{{PAIR}}}", PAIR_ARGUMENTS
"""The instances that read a route: query and arguments."""
DRIFTED = f"ragwatch_drift_alarm{{{PAIR}}} == 1", PAIR_ARGUMENTS
"""The instances with an alarm about the quality of a route."""
_SINCE_HOURS = 6
_WORST = 3
_A_DAY, _DATE = 72000, "Jan 2 15:04"


def asked(query: str, arguments: str, then: str, otherwise: str = "") -> str:
    """Template text `then` with the result of a query as `.`; `otherwise` if the query finds nothing."""
    other = f"{{{{ else }}}}{otherwise}" if otherwise else ""
    return f'{{{{ with printf "{query}" {arguments} | query }}}}{then}{other}{{{{ end }}}}'


def of_worst(series: str, arguments: str, then: str, otherwise: str = "") -> str:
    """Template text `then` with `$worst`, the quantity in which a series is largest; `otherwise` if there is none."""
    inner = f"{{{{ with . | first }}}}{{{{ $worst := .Labels.quantity }}}}{then}{{{{ end }}}}"
    return asked(f"topk(1, {series})", arguments, inner, otherwise)


def figure(query: str, before: str) -> str:
    """Template text with the value of a query about `$worst`, after the text `before`; empty if there is none."""
    return asked(query, f"{ARGUMENTS} $worst", f"{before}{TWO_DIGITS}")


def change(lead: str, otherwise: str, of: tuple[str, str, str] = OF_ROUTE) -> str:
    """Template text of the break behind the alarm of `$worst`, such as `0.99 -> 0.41 since 14:08 UTC, 32 answers`.

    `lead` stands before it; `otherwise` is the text if the daemon tells no break, and `of` is what has the alarm.
    """
    prefix, matchers, arguments = of
    begin, before, mean, samples = (
        f"max({prefix}_{name}{{{matchers}}})"
        for name in ("change_start_timestamp_seconds", "before_ratio", "since_ratio", "since_samples")
    )
    rest = asked(mean, arguments, f" -> {TWO_DIGITS}") + clock(begin, arguments)
    rest += asked(samples, arguments, ', {{ . | first | value | printf "%.0f" }} answers')
    return asked(before, arguments, f"{lead}{TWO_DIGITS}{rest}", otherwise)


def clock(begin: str, arguments: str) -> str:
    """Template text such as ` since 14:08 UTC`; with the day if that is long ago. Empty if there is no such time."""
    short, long = (f' since {{{{ (. | first | value | toTime).Format "{form}" }}}} UTC' for form in ("15:04", _DATE))
    return asked(f"{begin} > time() - {_A_DAY}", arguments, short, asked(begin, arguments, long))


def begun() -> str:
    """URL parameter with the begin of the break behind the alarm of `$worst`."""
    return asked(BEGIN, _OF_WORST, '&since={{ . | first | value | printf "%.0f" }}', f"&since={_SINCE_HOURS}h")


def _newest(plan: RulePlan) -> str:
    """Selector of the mean of `$worst` over the first window, which is not closed yet."""
    window = span(plan.windows[0])
    return f"route:ragwatch_quality:mean{window}{{{PLACE},quantity='%s',window='{window}'"


def since(plan: RulePlan, limit: str, then: str, otherwise: str = "") -> str:
    """Template text `then` with the last time at which the newest mean of `$worst` was within a limit as `.`.

    `limit` is a series with the labels job, route and quantity. `otherwise`: it was not within it in the last hours.
    """
    newest = _newest(plan)
    compared = f"on (job, route, quantity) group_left () max by (job, route, quantity) ({limit})"
    good = f"{newest},quantity!~'{RISING}'}} >= {compared} or {newest},quantity=~'{RISING}'}} <= {compared}"
    query = f"max_over_time(timestamp({good})[{_SINCE_HOURS}h:1m])"
    return asked(query, f"{ARGUMENTS} $worst {ARGUMENTS} $worst", then, otherwise)


def since_when(plan: RulePlan, limit: str) -> str:
    """Template text such as ` since 04:18 UTC`."""
    moment = ' since {{ (. | first | value | toTime).Format "15:04" }} UTC'
    first = f"min_over_time(timestamp({_newest(plan)}}})[{_SINCE_HOURS}h:1m])"
    return since(plan, limit, moment, asked(first, f"{ARGUMENTS} $worst", f"{moment} or earlier"))


def stage() -> str:
    """Template text with the stage at fault whose share rose significantly, as the daemon sees it; empty for none."""
    share = f"100 * max(ragwatch_drift_stage_ratio{{{{{PAIR},stage='%s',period='{{}}'}}}})"
    percent, arguments = '{{ . | first | value | printf "%.0f" }}', f"{PAIR_ARGUMENTS} $stage"
    before = asked(share.format("before"), arguments, f" from {percent}")
    now = asked(share.format("since"), arguments, f" to {percent} % of answers")
    named = f'{{{{ $stage := . | first | label "stage" }}}} Stage that changed: {{{{ $stage }}}},{before}{now}.'
    return asked(f"topk(1, ragwatch_drift_stage_ratio{{{PAIR},period='since'}})", PAIR_ARGUMENTS, named)


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
        + asked(
            f"max by (signal) (ragwatch_traffic_drift_alarm{{{PAIR}}}) == 1",
            PAIR_ARGUMENTS,
            " Traffic changed too (RagwatchTrafficDrift):{{ range . }} {{ .Labels.signal }}{{ end }}.",
        )
    )


def beyond(limit: str) -> str:
    """URL parameters of the answers beyond a limit of `$worst`: `above` it where low is good, else `below`."""
    name = f'{{{{ if match "{RISING}" $worst }}}}above{{{{ else }}}}below{{{{ end }}}}'
    value = asked(
        f"max({limit}{{{PAIR},quantity='%s'}})",
        f"{PAIR_ARGUMENTS} $worst",
        f'&{name}={{{{ . | first | value | printf "%.4g" }}}}',
    )
    return f"&quantity={{{{ $worst }}}}{value}"


def failing(plan: RulePlan, limit: str) -> str:
    """URL parameters of the answers beyond a limit since the alert began."""
    age = f"&since={_SINCE_HOURS}h"
    start = since(plan, limit, '&since={{ . | first | value | printf "%.0f" }}', age)
    return f"{beyond(limit)}{start}"


def link(origin: tuple[str, str], path: str, lead: str = "", pages: str | None = None) -> str:
    """Template text of an address on the pages of an instance that raises an alert; empty if none is known.

    `origin` is the query for the series of such instances, with its arguments; `lead` stands before the address. An
    instance that tells no address of its pages has `pages`, if given.
    """
    query, arguments = origin
    info = f"topk(1, ragwatch_pages_info and on (job, instance) ({query}))"
    own = '{{ . | first | label "external_url" }}'
    if pages is None:
        return asked(info, arguments, f"{lead}{own}{path}")
    chosen = asked(info, arguments, '{{ $pages = . | first | label "external_url" }}')
    return f'{{{{ $pages := "{pages}" }}}}{chosen}{lead}{{{{ $pages }}}}{path}'


def worst(origin: tuple[str, str], parameters: str, pages: str | None) -> str:
    """Template text with the address of the worst answers that `parameters` select; empty as a link is."""
    place = "route={{ $labels.route }}&judge={{ $labels.judge }}"
    return link(origin, f"/samples?{place}{parameters}&sort=worst&limit={_WORST}", " Worst answers: ", pages)


def rejection(window: str) -> str:
    """Template text such as `: missing_field (answer), first at app.jsonl:12`: the most frequent reason."""
    most = f"topk(1, sum by (reason) (increase(ragwatch_requests_rejected_total{{job='%s',source='%s'}}[{window}])))"
    place = "job='%s',source='%s',reason='%s'"
    field = "{{ if .Labels.field }} ({{ .Labels.field }}){{ end }}"
    first = asked(
        f"topk(1, ragwatch_rejections_info{{{place}}})",
        "$labels.job $labels.source $reason",
        f"{{{{ with . | first }}}}{field}, first at {{{{ .Labels.first }}}}{{{{ end }}}}",
    )
    reason = '{{ $reason := . | first | label "reason" }}: {{ $reason }}'
    return asked(most, "$labels.job $labels.source", f"{reason}{first}")
