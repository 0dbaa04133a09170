"""Alerts on the causes of bad or missing quality figures: canaries, judges, sources. Replicas raise one alert."""

import json
from collections.abc import Callable, Iterator
from functools import partial

from ragwatch.model.sample import OTHER
from ragwatch.model.signals import GROSS
from ragwatch.rules import texts
from ragwatch.rules.alert import AGE, COUNT, JUDGE, PERCENT, ROUTE, SOURCE, SUITE, Alert, Area, Severity
from ragwatch.rules.plan import RulePlan
from ragwatch.rules.promql import gain, in_words, pick, span
from ragwatch.rules.texts import rejection

_MIN_COUNT = 5
_MIN_PROBES = 20  # known-bad answers below which their share says nothing

_retrieval = partial(Alert, area=Area.RETRIEVAL, board="retrieval", labels=("job", "suite"))
_judge = partial(Alert, area=Area.JUDGE, board="judges", labels=("job", "judge"))
_source = partial(Alert, area=Area.SOURCE, board="operation", labels=("job", "source"))
_unmeasured = partial(
    Alert, area=Area.JUDGE, board="judges", labels=("job", "route", "judge"), samples="&outcome=unjudged"
)


def alerts(plan: RulePlan) -> Iterator[Alert]:
    """Alerts on canaries, judges and sources."""
    yield from _canaries(plan)
    yield from _judges(plan)
    yield from _sources(plan)
    yield _silent_route(plan)
    yield from _coverage(plan)


def _canaries(plan: RulePlan) -> Iterator[Alert]:
    yield from _degraded(plan)
    yield _wrong_answers(plan)
    last_run = "ragwatch_canary_last_run_timestamp_seconds"
    stale = (
        f"time() - max by (job, suite) ({pick(last_run, matchers)}) > {pause + plan.limits.canaries:g}"
        for matchers, pause in _schedules(plan)
    )
    yield _retrieval(
        name="RagwatchCanariesStale",
        meaning="A canary suite has not run.",
        delay=f"{in_words(plan.limits.canaries)} after its schedule",
        expr="\nor ".join(stale),
        summary=f"{SUITE} canaries last ran {AGE} ago.",
        description=f"Suite {SUITE} has not run for longer than its schedule allows; its figures are old.",
    )
    failing = (_failing(matchers, 2 * max(pause, plan.limits.canaries)) for matchers, pause in _schedules(plan))
    yield _retrieval(
        name="RagwatchCanariesFailing",
        meaning="Canary queries got no usable reply in two runs, the last one included.",
        delay="two runs of the suite",
        expr="\nor ".join(failing),
        summary=f"{SUITE}: {COUNT} canary queries got no usable reply ({{{{ $labels.reason }}}}).",
        description=f"{COUNT} queries of suite {SUITE} failed in its last runs. Reason: {{{{ $labels.reason }}}}.",
    )


def _degraded(plan: RulePlan) -> Iterator[Alert]:
    """Critical if most of a suite is degraded: the retriever is broken for everybody, not for one topic."""
    share = (
        "max by (job, suite) (\n"
        "  ragwatch_canary_degraded / on (job, instance, suite)\n"
        "  count by (job, instance, suite) (ragwatch_canary_success)\n)"
    )
    most = f"{share} > {plan.limits.degraded:g}"
    for severity, expr in ((Severity.CRITICAL, most), (Severity.WARNING, f"({share} > 0)\nunless {most}")):
        yield _retrieval(
            name="RagwatchCanariesDegraded",
            meaning="Canaries no longer retrieve their expected contexts; critical if more than half of a suite do "
            "not.",
            delay="one run of the suite",
            promise="none: the same queries are compared with their own results",
            expr=expr,
            summary=f"{SUITE}: {PERCENT} of the canaries no longer retrieve their expected contexts.",
            description=f"{PERCENT} of the canaries of suite {SUITE} are degraded. The stage at fault is retrieval.",
            severity=severity,
        )


def _wrong_answers(plan: RulePlan) -> Alert:
    """Compares with the same suite's own past, as judges differ from suite to suite, and with a floor.

    Answers that were wrong from the beginning have a past that is as bad. Relevancy has no floor, as a part is .5.
    """
    name, by = "ragwatch_canary_answer_ratio", "(job, suite, quantity, contexts)"
    scores = f'{name}{{quantity=~"correctness|faithfulness|answer_relevancy"}}'
    window = span(plan.windows[-1])
    past = f"max by {by} (\n  quantile_over_time(0.5, {scores}[{window}] offset {span(plan.windows[0])})\n)"
    expr = f"min by {by} ({scores}) < {past} - {plan.limits.canary_answers:g}"
    if plan.limits.canary_answers_floor:
        absolute = f'{name}{{quantity=~"correctness|faithfulness"}}'
        expr = f"({expr})\nor min by {by} ({absolute}) < {plan.limits.canary_answers_floor:g}"
    return _retrieval(
        name="RagwatchCanaryAnswersWrong",
        meaning="The answers to a canary suite score .2 below their median of three days, or below .5.",
        delay="one run of the suite",
        promise="depends on how much the answers of the service vary; `alerts.canary_answers` is the fall, "
        "`alerts.canary_answers_floor` the floor (0: none)",
        expr=expr,
        summary=f'{SUITE}: {{{{ $labels.quantity }}}} of the canary answers is {{{{ $value | printf "%.2f" }}}}.',
        description=f"The answers to suite {SUITE} from its {{{{ $labels.contexts }}}} contexts are wrong, or worse "
        f"than the median of the last {window}. If those from the expected contexts (`gold`) are wrong too, the stage "
        "at fault is generation.",
        severity=Severity.CRITICAL,
    )


def _schedules(plan: RulePlan) -> Iterator[tuple[str, float]]:
    """Yields label matchers of suites, and the seconds between two runs of suites that run rarely."""
    quoted = {json.dumps(suite, ensure_ascii=False): pause for suite, pause in plan.rare.items()}
    yield ",".join(f"suite!={suite}" for suite in quoted), 0.0
    for suite, pause in quoted.items():
        yield f"suite={suite}", pause


def _failing(matchers: str, seconds: float) -> str:
    """Requires two failed runs for one reason, including the last: a single one may be a service that is starting."""
    failed, run, success = (
        pick(f"ragwatch_canary_{name}", matchers)
        for name in ("failures_total", "last_run_timestamp_seconds", "last_success_timestamp_seconds")
    )
    return (
        f"sum by (job, suite, reason) (\n  increase({failed}[{span(seconds)}])"
        f" and changes({failed}[{span(seconds)}]) > 1\n"
        f"  and on (job, instance, suite) ({run} unless {success} >= {run})\n)"
    )


def _judges(plan: RulePlan) -> Iterator[Alert]:
    limits, short = plan.limits, span(plan.windows[0])
    failed, called = (
        f"sum by (job, judge) (increase(ragwatch_judge_{name}_total[{short}]))" for name in ("call_failures", "calls")
    )
    yield _judge(
        name="RagwatchJudgeFailing",
        meaning="Most calls to a judge fail.",
        delay=f"{in_words(plan.windows[0])} window",
        expr=f"{failed}\n  / ({called} >= {_MIN_COUNT}) > {limits.failures:g}",
        summary=f"{JUDGE}: {PERCENT} of the calls to the judge failed in the last {short}.",
        description=f"{PERCENT} of the calls to judge {JUDGE} failed in the last {short}; its draws wait or stay "
        "unjudged.",
    )
    yield _judge(
        name="RagwatchJudgeCircuitOpen",
        meaning="Calls to a judge are suspended.",
        expr="max by (job, judge) (ragwatch_judge_breaker_open) == 1",
        summary=f"{JUDGE}: the circuit breaker of the judge is open.",
        description=f"ragwatch has suspended calls to judge {JUDGE} because too many failed or one failed "
        "permanently; its draws wait or stay unjudged.",
    )
    yield _judge(
        name="RagwatchJudgeFallback",
        meaning="A judge cannot load its model; the lexical judge reads instead.",
        expr="max by (job, judge) (ragwatch_judge_fallback) == 1",
        summary=f"{JUDGE}: the judge runs without its model.",
        description=f"Judge {JUDGE} cannot load its model and falls back to the lexical judge, which is less accurate.",
    )
    yield from _changes(plan)
    yield from _replies(plan)


def _changes(plan: RulePlan) -> Iterator[Alert]:
    """Alerts on a budget that is nearly used, and on other verdicts."""
    limits = plan.limits
    yield _judge(
        name="RagwatchJudgeBudgetLow",
        meaning=f"A judge has used {100 * (1 - limits.budget):g} % of its budget.",
        expr=f"min by (job, judge) (ragwatch_judge_budget_remaining_ratio) < {limits.budget:g}",
        summary=f"{JUDGE}: {PERCENT} of the budget of the judge is left.",
        description=f"Judge {JUDGE} has {PERCENT} of its budget left; ragwatch lowers its sampling probability.",
    )
    yield _judge(
        name="RagwatchJudgeDrift",
        meaning="A judge gives different verdicts on the anchor samples: its scores are not comparable.",
        delay="one reading of the anchors (`anchors.every`, 1 d)",
        promise="one in `anchors.false_alarm_every` (90 d)",
        expr="max by (job, judge) (ragwatch_judge_drift_alarm) == 1",
        summary=f"{JUDGE}: the judge gives different verdicts on the same samples.",
        description=f"Judge {JUDGE} changed its verdicts on the anchor samples; its scores before and after are not "
        "comparable.",
        hold=0.0,
    )


def _replies(plan: RulePlan) -> Iterator[Alert]:
    """Alerts on prompt injection, and on quotes that cannot be verified."""
    limits, window = plan.limits, span(plan.window)
    unquoted = f"sum by (job, judge) (increase(ragwatch_judge_unquoted_cells_total[{window}]))"
    checked = f"sum by (job, judge) (increase(ragwatch_judge_checked_readings_total[{window}]))"
    yield _judge(
        name="RagwatchJudgeUnverifiedQuotes",
        meaning="A judge calls claims supported without a verbatim quote.",
        delay=f"{in_words(plan.window)} window",
        expr=f"{unquoted}\n  / ({checked} >= {limits.samples}) > {limits.unquoted:g}",
        summary=f"{JUDGE}: the judge calls claims supported without a verbatim quote from the context.",
        description=f'Judge {JUDGE}: {{{{ $value | printf "%.2f" }}}} such claims per answer; they count as not '
        "supported.",
    )
    fooled, probes = (
        f"sum by (job, judge, version) (ragwatch_judge_{name}_total)" for name in ("probes_fooled", "probes")
    )
    in_force = "and on (job, judge, version) ragwatch_judge_info"  # the totals of earlier versions stay
    yield _judge(
        name="RagwatchJudgeFooled",
        meaning="A judge accepts known-bad answers with a prompt injection (`judges[].known_bad`).",
        delay=f"{_MIN_PROBES} known-bad answers",
        promise="2 in 100 judges that accept 1 %, at their first 20 known-bad answers; fewer later",
        expr=f"max by (job, judge) (\n  {fooled}\n  / ({probes} >= {_MIN_PROBES})\n  {in_force}\n) > {limits.fooled:g}",
        summary=f"{JUDGE}: the judge accepts invented claims when a prompt injection tells it to.",
        description=f"Judge {JUDGE} accepted {PERCENT} of the known-bad answers given to it as a test; its scores may "
        "be higher than the answers deserve.",
    )
    yield _judge(
        name="RagwatchPromptInjection",
        meaning="Texts sent to a judge contain instructions to it.",
        delay="at the first such text",
        promise="documents about language models contain such texts; therefore it notifies nobody",
        expr=f"sum by (job, judge, place) (increase(ragwatch_judge_instructions_total[{window}])) > 0",
        summary=f"{JUDGE}: suspected prompt injection in about {COUNT} texts sent to the judge.",
        description=f"About {COUNT} texts (place: {{{{ $labels.place }}}}) sent to judge {JUDGE} contain instructions "
        "to the judge.",
        hold=0.0,
        severity=Severity.INFO,
    )


def _sources(plan: RulePlan) -> Iterator[Alert]:
    limits, window = plan.limits, span(plan.window)
    yield _silent_source(plan)
    yield _source(
        name="RagwatchSourceLag",
        meaning=f"The oldest unread record is older than {in_words(limits.lag)}.",
        delay=in_words(limits.lag),
        expr=f"max by (job, source) (ragwatch_source_lag_seconds) > {limits.lag:g}",
        summary=f"{SOURCE}: the oldest unread record is {AGE} old.",
        description=f"The oldest unread record of source {SOURCE} is {AGE} old.",
    )
    yield _source(
        name="RagwatchSourceUnreadable",
        meaning="Files of a source cannot be read.",
        expr="max by (job, source) (ragwatch_source_unreadable_files) > 0",
        summary=f"{SOURCE}: {COUNT} files cannot be read.",
        description=f"ragwatch cannot read {{{{ $value }}}} files of source {SOURCE}; their records are not measured.",
    )
    rejected, seen = (
        f"sum by (job, source) (increase(ragwatch_requests_{name}_total[{window}]))" for name in ("rejected", "seen")
    )
    share = f"{rejected}\n  / ({seen} >= {limits.samples})"
    before = share.replace(f"[{window}]", f"[{span(plan.windows[-1])}] offset {window}")  # none of a new source
    gross = f"{share}\nand ({share} - ({before})) > {GROSS:g}"
    for severity, expr in (
        (Severity.CRITICAL, gross),
        (Severity.WARNING, f"{share} > {limits.rejects:g}\nunless ({gross})"),
    ):
        yield _source(
            name="RagwatchSourceRejects",
            meaning=f"More than {100 * limits.rejects:g} % of the records of a source are rejected; it pages where "
            f"their share has risen by more than {100 * GROSS:g} % of the records.",
            delay=f"{in_words(plan.window)} window",
            expr=expr,
            summary=f"{SOURCE}: {PERCENT} of the records were rejected in the last {window}{rejection(window)}.",
            description=f"{PERCENT} of the records of source {SOURCE} were rejected in the last {window}. They are "
            "not measured.",
            severity=severity,
        )
    yield _incomplete(plan)


def _silent_source(plan: RulePlan) -> Alert:
    """Fires however long the silence lasts: the state directory keeps the total; without one, the last day counts."""
    silent = span(plan.limits.silent)

    def of_users(figure: Callable[[str], str]) -> str:
        seen, canaries = (figure(f"ragwatch_requests_{name}_total") for name in ("seen", "of_canaries"))
        return f"(sum by (job, source) ({seen})\n  - sum by (job, source) ({canaries}))"

    ever = of_users(str)
    now, today = (of_users(partial(gain, window=window)) for window in (silent, "1d"))
    return _source(
        name="RagwatchSourceSilent",
        meaning="A source that delivered records of users delivers none. Those of canaries do not count.",
        delay=f"{in_words(plan.limits.silent)} (`alerts.silent`)",
        expr=f"{now} == 0\nand {ever} + {today} > 0\n"
        # otherwise ragwatch itself was down
        f"and sum by (job, source) (ragwatch_requests_seen_total offset {silent}) >= 0",
        summary=f"{SOURCE}: the source has delivered no record of users for {silent} or longer.",
        description=f"ragwatch has read no record from source {SOURCE} for {silent} or longer, except of canaries; the "
        "source delivered records of users before.",
    )


def _incomplete(plan: RulePlan) -> Alert:
    """Requests that a source loses because a part never came: they are neither seen nor rejected."""
    limits, window = plan.limits, span(plan.window)

    def share(series: str, lost: str, counted: str) -> str:
        part, whole = (f"sum by (job, source) (increase({series}{{{one}}}[{window}]))" for one in (lost, counted))
        return f"{part}\n  / ({whole} >= {limits.samples}) > {limits.rejects:g}"

    parts = share("ragwatch_source_parts_total", 'outcome=~"orphaned|dropped"', 'outcome!="repeated"')
    traces = share("ragwatch_otlp_requests_total", 'outcome="incomplete"', 'outcome=~"assembled|refused|incomplete"')
    return _source(
        name="RagwatchSourceIncomplete",
        meaning=f"More than {100 * limits.rejects:g} % of the requests of a source lack a part (kind join: a record; "
        "kind otlp: the first span).",
        delay=f"{in_words(plan.window)} window",
        expr=f"{parts}\nor {traces}",
        summary=f"{SOURCE}: {PERCENT} of the parts of requests came without the others in the last {window}.",
        description=f"{PERCENT} of the parts of requests, or of the traces, of source {SOURCE} were incomplete in "
        f"the last {window}; these answers are not measured.",
    )


def _silent_route(plan: RulePlan) -> Alert:
    """A route that answered regularly and answers nothing now, by its own rhythm.

    The daemon learns the rhythm and tests each gap. Before it knows this time of the day or week, a route counts that
    answered until now at a rate at which a quarter of the window is not empty by chance, unless the same window of
    another day was empty too. The route `other` is what no other route takes, and a new route takes from it: it is
    silent only where no route answers.
    """
    limits, answers = plan.limits, "ragwatch_traffic_contexts_count"
    long, short = span(limits.silent), span(limits.silent / 4)

    def grown(window: str, offset: str = "") -> str:
        return f"sum by (job, route) (increase({answers}[{window}]{f' offset {offset}' if offset else ''}))"

    def silent(window: str) -> str:
        elsewhere = f'sum by (job) (increase({answers}{{route!="{OTHER}"}}[{window}])) > 0'
        return f'({grown(window)} == 0\n    unless label_replace({elsewhere}, "route", "{OTHER}", "", ""))'

    rests = " or ".join(f"{grown(long, day)} == 0" for day in ("1d", "7d"))
    recently = f"{silent(short)}\n  and {grown(long, short)} >= {4 * limits.samples}\n  unless ({rests})"
    usually = "max by (job, route) (max_over_time(ragwatch_silence_alarm[5m])) == 1"
    firing = 'ALERTS{alertname="RagwatchRouteSilent",alertstate="firing"}'
    lasting = f"{silent(short)}\n  and on (job, route) {firing}\n  unless ({rests})"
    series = "max(ragwatch_silence_missed_samples{job='%s',route='%s'})"
    missed = texts.asked(series, "$labels.job $labels.route", '; {{ . | first | value | printf "%.0f" }} are missing')
    return Alert(
        name="RagwatchRouteSilent",
        meaning="A route that answers regularly at this time answers nothing; `other` only if no route answers.",
        delay=f"{in_words(limits.silent / 4)} from {4 * limits.samples} answers an hour on; else 10 to 25 missed "
        "answers ([statistics](statistics.md))",
        promise="one in `drift.traffic.false_alarm_every` (30 d) over all routes, measured; once where a pause is new",
        area=Area.SOURCE,
        expr=f"({recently})\nor ({usually})\nor ({lasting})",
        summary=f"{ROUTE}: no answer for longer than usual at this time{missed}.",
        description=f"ragwatch has read no answer on route {ROUTE}. Either the service answers nothing, or its answers "
        "carry another route or are no longer logged.",
        board="retrieval",
        labels=("job", "route"),
    )


def _coverage(plan: RulePlan) -> Iterator[Alert]:
    """Alerts on draws that are not judged, or judged without a score."""
    limits, window, stale = plan.limits, span(plan.window), span(plan.limits.stale)
    covered, settled = (
        pick(name, window=window)
        for name in ("route:ragwatch_coverage:ratio", "route:ragwatch_samples_settled:increase")
    )
    yield _unmeasured(
        name="RagwatchCoverageLow",
        meaning=f"Less than {100 * limits.coverage:g} % of the draws are judged.",
        delay=f"{in_words(plan.window)} window",
        expr=f"{covered} < {limits.coverage:g}\nand on (job, route, judge) {settled} >= {limits.samples}",
        summary=f"{ROUTE}: judge {JUDGE} judged only {PERCENT} of its draws in the last {window}.",
        description=f"Judge {JUDGE} judged {PERCENT} of its draws on route {ROUTE} in the last {window}.",
    )
    given = '{__name__=~"ragwatch_samples_(judged|unjudged)_total"}'
    # A score of any quantity counts. `increase` drops names: the recorded sums tell quantities apart by a label.
    scored = pick("route:ragwatch_quality_weight:increase", window=span(plan.windows[0]))
    series = f"increase({given}[{stale}])", f"max_over_time({scored}[{stale}])", given, f"{given} offset {stale}"
    grown, fresh, now, before = (f"sum by (job, route, judge) ({figure})" for figure in series)
    yield _unmeasured(
        name="RagwatchNoFreshSamples",
        meaning=f"A judge has scored no answer of a route for {in_words(limits.stale)}, although it read some.",
        delay=f"{in_words(limits.stale)} (`alerts.stale`) and {in_words(plan.windows[0])}",
        expr=f"{grown} >= {_MIN_COUNT}\nunless {fresh} > 0\n"
        f"and {now} + {before} >= 0",  # both are there: the judge has not just begun, and is still configured
        summary=f"{ROUTE}: judge {JUDGE} has scored no answer for {stale} or longer.",
        description=f"Judge {JUDGE} was given about {COUNT} answers on route {ROUTE} in {stale} and scored none of "
        "them. ragwatch_samples_unjudged_total and ragwatch_scores_unknown_total tell the reasons.",
        samples="",
    )
