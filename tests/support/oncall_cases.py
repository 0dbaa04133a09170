"""Cases for promtool: for every alert, series that set it off, series just short of that, and series that end it."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import sqrt

from ragwatch.model.quantities import Quantity
from ragwatch.rules import BurnRate, Limits, Links, RulePlan
from ragwatch.rules.plan import BURNS

STEP = 300
STEPS = 24  # two hours of each phase

PLAN = RulePlan(
    judge="embedded",
    job="ragwatch",
    links=Links("https://runbooks.example.com", "https://grafana.example.com", "https://ragwatch.example.com"),
    thresholds={Quantity.FAITHFULNESS: 0.85, Quantity.CONTRADICTION: 0.2},
    objectives={Quantity.FAITHFULNESS: 0.95, Quantity.CONTRADICTION: 0.95},
    burns=(*BURNS[:2], BurnRate(21600.0, 3600.0, 0.025, "warning")),
    windows=(900.0, 3600.0, 21600.0),
    limits=Limits(stale=3600.0),
    rare={"nightly": 86400.0},
    drift_quantities=(Quantity.FAITHFULNESS, Quantity.CONTRADICTION, Quantity.TOP_RANKED_IGNORED),
)


@dataclass(frozen=True)
class Flat:
    """A gauge that stands still."""

    value: float


@dataclass(frozen=True)
class Climb:
    """A counter that grows by so much a step."""

    by: float


@dataclass(frozen=True)
class Behind:
    """A time so many seconds ago."""

    seconds: float


Shape = Flat | Climb | Behind | None
Phase = Mapping[str, Shape]


@dataclass(frozen=True)
class Case:
    """One alert's cases. A shape of None is a series that is not there."""

    alert: str
    labels: Mapping[str, str]
    bad: Phase
    short: Phase
    good: Phase
    before: Phase = field(default_factory=dict)
    after: int = STEPS - 1  # steps of the bad phase after which it must fire


def _next(shape: Flat | Climb | Behind, last: float, at: int) -> float:
    match shape:
        case Flat(value):
            return value
        case Climb(by):
            return last + by
        case Behind(seconds):
            return max(at - seconds, 0.0)


def series(phases: Iterable[Phase], instances: Iterable[str] = ("a",)) -> list[dict[str, str]]:
    """Input series of promtool, phases one after the other, for every instance alike."""
    told = [dict(each) for each in phases if each]
    names = sorted({name for each in told for name in each})
    found = []
    for name in names:
        values, last, at = [], 0.0, 0
        for phase in told:
            for _ in range(STEPS):
                shape = phase.get(name)
                last = last if shape is None else _next(shape, last, at)
                values.append("_" if shape is None else f"{last:.15g}")
                at += STEP
        for instance in instances:
            metric, _, labels = name.partition("{")
            own = f'job="ragwatch",instance="{instance}"'
            inner = f"{own},{labels}" if labels else f"{own}}}"
            found.append({"series": f"{metric}{{{inner}", "values": " ".join(values)})
    return found


def scores(quantity: str, mean: float, count: float = 5, judge: str = "embedded") -> dict[str, Shape]:
    """Counters of a quantity whose answers score 1 or 0, `count` a step, and a level that is as sure as the mean."""
    place = f'{{route="search",judge="{judge}"}}'
    sums = {
        "weight": count,
        "squared_weight": count,
        **dict.fromkeys(("weighted_score", "squared_weight_score", "squared_weight_squared_score"), mean * count),
    }
    level = f'{{route="search",judge="{judge}",window="1h",corrected="yes"}}'
    half = 1.96 * sqrt(max(mean * (1.0 - mean), 0.01) / (12.0 * count))
    ends: dict[str, Shape] = {
        f"ragwatch_{quantity}_ratio{end}{level}": Flat(min(max(mean + side * half, 0.0), 1.0))
        for end, side in (("", 0), ("_low", -1), ("_high", 1))
    }
    return {f"ragwatch_{quantity}_{each}_total{place}": Climb(by) for each, by in sums.items()} | ends


def _drift(quantity: str, baseline: float, alarm: int = 1) -> dict[str, Shape]:
    """A drift alarm and its baseline."""
    place = f'{{quantity="{quantity}",route="search"}}'
    return {f"ragwatch_drift_alarm{place}": Flat(alarm), f"ragwatch_drift_baseline_ratio{place}": Flat(baseline)}


def _canaries(severity: str, *, degraded: int, short: int) -> Case:
    """A suite of four canaries, so many of which are degraded."""
    suite: dict[str, Shape] = {f'ragwatch_canary_success{{suite="docs",canary="{n}"}}': Flat(0) for n in range(4)}
    bad, close, good = ({**suite, 'ragwatch_canary_degraded{suite="docs"}': Flat(n)} for n in (degraded, short, 0))
    return Case("RagwatchCanariesDegraded", {"suite": "docs", "severity": severity}, bad, close, good)


def _level(alert: str, name: str, own: str, *values: float, severity: str | None = None) -> Case:
    """An alert on a gauge: values that are bad, just short of it, and good."""
    bad, short, good = values
    labels = dict(each.split("=") for each in own.split(",") if each)
    inner = ",".join(f'{label}="{value}"' for label, value in labels.items())
    metric = f"{name}{{{inner}}}" if inner else name
    labels |= {} if severity is None else {"severity": severity}
    return Case(alert, labels, {metric: Flat(bad)}, {metric: Flat(short)}, {metric: Flat(good)})


def _rates(
    alert: str,
    labels: Mapping[str, str],
    names: tuple[str, ...],
    *steps: tuple[float, ...],
    of: type[Flat | Climb | Behind] = Climb,
) -> Case:
    """An alert on counters: by how much each grows in a step that is bad, just short of it, good, and before."""
    bad, short, good, *before = ({name: of(by) for name, by in zip(names, step, strict=True)} for step in steps)
    return Case(alert, labels, bad, short, good, before[0] if before else {})


def _scores(alert: str, own: str, quantity: str, *means: float, count: float = 5) -> Case:
    """An alert on a quantity: means that are bad, just short of it, and good."""
    labels = {**_SEARCH, **dict(each.split("=") for each in own.split(",") if each)}
    bad, short, good = (scores(quantity, mean, count) for mean in means)
    return Case(alert, labels, bad, short, good)


def _answers(contexts: str, bad: float, short: float, *, before: float | None) -> Case:
    """Mean correctness of the answers to a suite, which is .9 at its best, after another one or from the beginning."""
    own = f"suite=docs,quantity=correctness,contexts={contexts}"
    case = _level("RagwatchCanaryAnswersWrong", "ragwatch_canary_answer_ratio", own, bad, short, 0.9)
    return case if before is None else replace(case, before=dict.fromkeys(case.good, Flat(before)))


_DOCS = {"suite": "docs"}
_SEARCH = {"route": "search", "judge": "embedded"}
_BURN = "RagwatchErrorBudgetBurn"
_TENANT = '{quantity="faithfulness",route="search",segment="tenant",value="O\'Neil"}'
_SEEN = 'ragwatch_requests_seen_total{source="app"}'
_OF_CANARIES = 'ragwatch_requests_of_canaries_total{source="app"}'
_JOINED, _ORPHANED = (
    f'ragwatch_source_parts_total{{source="app",outcome="{outcome}"}}' for outcome in ("joined", "orphaned")
)
_ASSEMBLED, _ROOTLESS = (
    f'ragwatch_otlp_requests_total{{source="app",outcome="{outcome}"}}' for outcome in ("assembled", "incomplete")
)
_REJECTED = 'ragwatch_requests_rejected_total{source="app",reason="torn_json"}'
_FOOLED = 'ragwatch_judge_probes_fooled_total{judge="claude",version="v"}'
_PROBES = 'ragwatch_judge_probes_total{judge="claude",version="v"}'
_PROBED = (_FOOLED, _PROBES, 'ragwatch_judge_info{judge="claude",kind="claude",version="v"}')
_CALLS = 'ragwatch_judge_calls_total{judge="claude",model="m"}'
_FAILED = 'ragwatch_judge_call_failures_total{judge="claude",model="m",reason="timeout"}'
_JUDGED = 'ragwatch_samples_judged_total{route="search",judge="embedded"}'
_UNJUDGED = 'ragwatch_samples_unjudged_total{route="search",judge="embedded",reason="timeout"}'
_UNQUOTED = 'ragwatch_judge_unquoted_cells_total{judge="embedded"}'
_CHECKED = 'ragwatch_judge_checked_readings_total{judge="embedded"}'
_SPOKEN = 'ragwatch_judge_instructions_total{judge="claude",place="context"}'
_SCORED = 'ragwatch_answer_relevancy_weight_total{route="search",judge="embedded"}'
_RUN = 'ragwatch_canary_last_run_timestamp_seconds{suite="docs"}'
_WHOLE = 'ragwatch_canary_last_success_timestamp_seconds{suite="docs"}'
_ASKED = 'ragwatch_canary_failures_total{suite="docs",reason="timeout"}'
_STEPS = 'ragwatch_step_failures_total{loop="judge embedded"}'
_ANSWERS = 'ragwatch_traffic_contexts_count{route="search"}'
_UNSENT = 'ragwatch_export_failures_total{reason="connection",signal="spans"}'
_SENT = 'ragwatch_export_records_total{outcome="sent",signal="spans"}'
_WEB_FILE = "ragwatch_web_config_failures_total"
_TRAFFIC = "ragwatch_traffic_drift_alarm"
_LAW = 'ragwatch_invariant_violations_total{law="seen"}'
_BUILD = 'ragwatch_build_info{version="1",python_version="3"}'
_DIGEST = "ragwatch_last_digest_timestamp_seconds"
_LEAST = PLAN.limits

# 60 answers an hour: an interval's upper end reaches 0.85 from a mean of 0.7335 on, and a lower end 0.2 from 0.3210
CASES: tuple[Case, ...] = (
    _scores("RagwatchQualityBad", "", "faithfulness", 0.70, 0.76, 0.99),
    _scores("RagwatchQualityBad", "", "contradiction", 0.36, 0.26, 0.0),
    Case(  # nothing is good, but only 24 scores an hour say so
        *("RagwatchQualityBad", _SEARCH, scores("faithfulness", 0.0, 3)),
        *(scores("faithfulness", 0.0, 2), scores("faithfulness", 0.99, 3)),
    ),
    _scores(_BURN, "quantity=faithfulness,window=1h", "faithfulness", 0.1, 0.24, 0.99, count=20),
    _scores(_BURN, "quantity=contradiction,window=6h,severity=critical", "contradiction", 0.5, 0.32, 0.0, count=20),
    # no error budget of this size is gone: 14.4 times 5 % needs 72 %, 6 times 30 %
    _scores(_BURN, "quantity=faithfulness,window=6h,severity=warning", "faithfulness", 0.8, 0.87, 0.99, count=20),
    Case(  # with the alarm, whatever the hour says
        "RagwatchQualityDrift",
        {**_SEARCH, "severity": "critical"},
        {**scores("faithfulness", 0.99), **_drift("faithfulness", 0.95)},
        {**scores("faithfulness", 0.80), **_drift("faithfulness", 0.95, alarm=0)},
        {**scores("faithfulness", 0.80), **_drift("faithfulness", 0.95, alarm=0)},
    ),
    Case(
        "RagwatchSegmentDrift",
        {**_SEARCH, "segment": "tenant", "value": "O'Neil", "severity": "warning"},
        {f"ragwatch_segment_drift_alarm{_TENANT}": Flat(1), **_drift("faithfulness", 0.95, alarm=0)},
        {f"ragwatch_segment_drift_alarm{_TENANT}": Flat(1), **_drift("faithfulness", 0.95)},  # its whole route has
        {f"ragwatch_segment_drift_alarm{_TENANT}": Flat(0), **_drift("faithfulness", 0.95, alarm=0)},
    ),
    _level("RagwatchQualityDriftStanding", "ragwatch_drift_alarm", "quantity=faithfulness,route=search", 1, 0, 0),
    _level("RagwatchTopContextIgnored", "ragwatch_drift_alarm", "quantity=top_ranked_ignored,route=search", 1, 0, 0),
    _level("RagwatchTrafficDrift", _TRAFFIC, "signal=contexts,route=s", 1, 0, 0, severity="info"),
    _level("RagwatchTrafficDrift", _TRAFFIC, "signal=abstentions,route=s", 1, 0, 0, severity="warning"),
    _canaries("warning", degraded=2, short=0),
    _canaries("critical", degraded=3, short=2),
    _answers("retrieved", 0.69, 0.71, before=0.9),
    _answers("gold", 0.49, 0.51, before=None),  # wrong from the first run on: there is no fall
    # it stays until the route answers again
    _rates("RagwatchRouteSilent", {"route": "search"}, (_ANSWERS,), (0,), (1,), (11,), (11,)),
    _rates("RagwatchCanariesStale", _DOCS, (_RUN,), (_LEAST.canaries + 1,), (_LEAST.canaries,), (0,), of=Behind),
    Case(
        "RagwatchCanariesFailing",
        {**_DOCS, "reason": "timeout"},
        {_ASKED: Climb(1), _RUN: Behind(0), _WHOLE: Behind(400)},
        {_ASKED: Climb(1), _RUN: Behind(0), _WHOLE: Behind(0)},
        {_ASKED: Climb(0), _RUN: Behind(0), _WHOLE: Behind(0)},
    ),
    _rates("RagwatchJudgeFailing", {"judge": "claude"}, (_CALLS, _FAILED), (50, 26), (50, 25), (50, 0)),
    _level("RagwatchJudgeCircuitOpen", "ragwatch_judge_breaker_open", "judge=claude", 1, 0, 0),
    _level("RagwatchJudgeFallback", "ragwatch_judge_fallback", "judge=embedded", 1, 0, 0),
    _level("RagwatchJudgeBudgetLow", "ragwatch_judge_budget_remaining_ratio", "judge=claude", 0.09, 0.1, 0.5),
    _level("RagwatchJudgeDrift", "ragwatch_judge_drift_alarm", "judge=claude", 1, 0, 0),
    _rates("RagwatchJudgeUnverifiedQuotes", {"judge": "embedded"}, (_UNQUOTED, _CHECKED), (3, 10), (2, 10), (0, 10)),
    _rates("RagwatchJudgeFooled", {"judge": "claude"}, _PROBED, (6, 100, 1), (5, 100, 1), (0, 100, 1), of=Flat),
    # too few to say
    _rates("RagwatchJudgeFooled", {"judge": "claude"}, _PROBED, (10, 20, 1), (10, 19, 1), (0, 20, 1), of=Flat),
    _rates("RagwatchPromptInjection", {"judge": "claude", "place": "context"}, (_SPOKEN,), (1,), (0,), (0,)),
    _rates("RagwatchSourceSilent", {"source": "app"}, (_SEEN, _OF_CANARIES), (1, 1), (2, 1), (2, 1), (2, 1)),
    _level("RagwatchSourceLag", "ragwatch_source_lag_seconds", "source=app", 901, 900, 0),
    _level("RagwatchSourceUnreadable", "ragwatch_source_unreadable_files", "source=app", 1, 0, 0),
    _rates("RagwatchSourceRejects", {"source": "app"}, (_SEEN, _REJECTED), (100, 6), (100, 5), (100, 0)),
    _rates("RagwatchSourceIncomplete", {"source": "app"}, (_JOINED, _ORPHANED), (94, 6), (95, 5), (100, 0)),
    _rates("RagwatchSourceIncomplete", {"source": "app"}, (_ASSEMBLED, _ROOTLESS), (94, 6), (95, 5), (100, 0)),
    _rates("RagwatchCoverageLow", {**_SEARCH, "window": "1h"}, (_JUDGED, _UNJUDGED), (79, 21), (80, 20), (100, 0)),
    _rates("RagwatchNoFreshSamples", _SEARCH, (_SCORED, _UNJUDGED), (0, 1), (0.1, 1), (1, 1)),
    # too few draws to say
    _rates("RagwatchNoFreshSamples", _SEARCH, (_SCORED, _JUDGED), (0, 0.5), (0, 0.4), (1, 1)),
    Case("RagwatchAbsent", {}, {_BUILD: None}, {_BUILD: Flat(1)}, {_BUILD: Flat(1)}, before={_BUILD: Flat(1)}),
    _level("RagwatchDown", "up", "", 0, 1, 1),
    _rates("RagwatchFiguresStale", {}, (_DIGEST,), (_LEAST.lag + 1,), (_LEAST.lag,), (5,), of=Behind),
    _level("RagwatchReloadFailed", "ragwatch_config_last_reload_successful", "", 0, 1, 1),
    _level("RagwatchDiskLow", "ragwatch_state_free_bytes", "", _LEAST.free - 1, _LEAST.free, 2 * _LEAST.free),
    _rates("RagwatchStepsFailing", {"loop": "judge embedded"}, (_STEPS,), (2,), (1,), (0,)),
    _rates("RagwatchExportFailing", {"signal": "spans"}, (_UNSENT, _SENT), (1, 0), (1, 1), (0, 1)),
    _rates("RagwatchWebConfigRefused", {}, (_WEB_FILE,), (1,), (0,), (0,)),
    _rates("RagwatchInvariantViolated", {"law": "seen"}, (_LAW,), (1,), (0,), (0,)),
)


_CHOICE = re.compile(r"\{\{ if match [^}]*\}\}above\{\{ else \}\}below\{\{ end \}\}")
_OTHERWISE = re.compile(r"\{\{ else \}\}[^{]*(?=\{\{ end \}\})")


def filled(
    link: str,
    labels: dict[str, str],
    *,
    value: str = "0.9",
    at: str = "1000",
    pages: str = "https://ragwatch.example.com",
) -> str:
    """A link about the worst quantity `labels["quantity"]`, whose queries found something; low values are bad."""
    link = _OTHERWISE.sub("", _CHOICE.sub("below", link))
    for name, text in labels.items():
        link = link.replace(f"{{{{ $labels.{name} }}}}", text)
    known = {
        "{{ $worst }}": labels["quantity"],
        '{{ . | first | value | printf "%.4g" }}': value,
        '{{ . | first | value | printf "%.0f" }}': at,
        '{{ $pages = . | first | label "external_url" }}': "",
        '{{ . | first | label "external_url" }}': pages,
        "{{ $pages }}": pages,
    }
    for template, text in known.items():
        link = link.replace(template, text)
    return re.sub(r"\{\{ (?:with|end|\$worst :=|\$pages :=)[^}]*(?:\{[^}]*\}[^}]*)*\}\}", "", link)
