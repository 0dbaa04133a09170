"""Which failures of a service page, open a ticket, or are not noticed, under a configuration.

The failures are a fixed list. `ragwatch check` and the overview name those that do not page on a route, why, and what
to configure; docs/alerts.md has the list.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from ragwatch.config import Config, JudgeConfig
from ragwatch.config.model import Settings
from ragwatch.model.quantities import Quantity
from ragwatch.model.sample import OTHER
from ragwatch.model.signals import Signal
from ragwatch.rules.alert import PREFIX
from ragwatch.statistics.drift.reference import FIRST_SCORES
from ragwatch.statistics.drift.shift import FIRST_REQUESTS
from ragwatch.statistics.estimators.level import CALIBRATED_LABELS


class Outcome(StrEnum):
    """What a failure leads to, the most urgent first."""

    PAGE = "page"
    TICKET = "ticket"
    NOTHING = "nothing"


PAGE, TICKET, NOTHING = Outcome
_OF_SEVERITY = {"critical": PAGE, "warning": TICKET, "info": NOTHING}


@dataclass(frozen=True, slots=True)
class Need:
    """A condition of a configuration."""

    text: str  # what to configure
    is_met: Callable[[Config, str], bool]  # whether a configuration does, on a route
    dated: bool = False  # whether it needs dates of documents in the log as well


@dataclass(frozen=True, slots=True)
class Way:
    """An alert that notices a failure, and what that needs."""

    outcome: Outcome  # what the alert leads to unless `alerts.severity` says otherwise
    alert: str  # name of the alert without its prefix
    need: Need  # what it needs
    extent: str = ""  # from which extent of the failure on; empty for any


def _watcher(config: Config) -> JudgeConfig:
    """The judge whose scores drift detection reads."""
    name = config.settings.drift.judge
    return next((one for one in config.judges if one.place.name == name), config.judges[0])


def _watched(quantity: Quantity) -> Need:
    def is_met(config: Config, route: str) -> bool:
        drift, judge = config.settings.drift, _watcher(config)
        scored = judge.place.quantities
        return (
            quantity in drift.quantities
            and judge.kind not in quantity.row.unread_by
            and (scored is None or quantity in scored)
            and route not in drift.controls
            and route not in drift.controls.values()
        )

    return Need(
        f"{quantity} in `drift.quantities`, a judge that scores it, and no control of the route in `drift.controls`",
        is_met,
    )


def _signal(*signals: Signal) -> Need:
    names = " and ".join(signals)
    return Need(
        f"{names} in `drift.traffic.signals`",
        lambda config, _: set(signals) <= set(config.settings.drift.traffic.signals),
    )


def _of_signal(signal: Signal) -> tuple[Way, ...]:
    """A page where far more answers have a signal than before, a ticket where more have."""
    rise = Need(
        f"{signal} in `drift.traffic.signals`, and a rise in `alerts.rises`",
        lambda config, _: (
            signal in config.settings.drift.traffic.signals and signal in config.settings.alerts.page_rises
        ),
    )
    return (
        Way(PAGE, "TrafficDrift", rise, "a rise by more than half of the answers"),
        Way(TICKET, "TrafficDrift", _signal(signal)),
    )


_DATED = Need(
    f"{Signal.DOCUMENT_AGE} in `drift.traffic.signals`, and `updated_at` in the contexts of the log",
    _signal(Signal.DOCUMENT_AGE).is_met,
    dated=True,
)
_ALWAYS = Need("", lambda _config, _route: True)
_CANARIES = Need("a suite in `canaries`", lambda config, _: bool(config.canaries))
_ANSWERED = Need(
    "a suite in `canaries` with a `judge`, whose questions need the current documents",
    lambda config, _: any(suite.place.judge for suite in config.canaries),
)
_MEANING = Need(
    "`answer_relevancy` in `drift.quantities`, read by a judge of the kind claude or openai: the others compare words",
    lambda config, route: (
        _watcher(config).kind in ("claude", "openai") and _watched(Quantity.ANSWER_RELEVANCY).is_met(config, route)
    ),
)
_CONTROL = Need(
    "a control in `drift.controls`",
    lambda config, route: route in config.settings.drift.controls and bool(config.settings.drift.quantities),
)
_SEGMENT = Need(
    "the key and the value in `segments`, and `drift.segments`",
    lambda config, _: bool(config.settings.segments) and config.settings.drift.segments,
)
_ROUTE = Need("a route of its own (`routes`)", lambda _config, _route: False)
_ANCHORS = Need("`anchors`", lambda config, _: config.settings.anchors is not None)

_STANDING = Way(TICKET, "QualityDriftStanding", _CONTROL)
_DEGRADED = Way(PAGE, "CanariesDegraded", _CANARIES, "more than half of a suite")
_WRONG = Way(PAGE, "CanaryAnswersWrong", _ANSWERED)
_OLD = Way(TICKET, "TrafficDrift", _DATED, "more than twice as old as before, and than 32 days")
_UNCITED = _signal(Signal.UNCITED_ANSWERS, Signal.DANGLING_CITATIONS)

FAILURES: Mapping[str, tuple[Way, ...]] = {
    "invention": (Way(PAGE, "QualityDrift", _watched(Quantity.FAITHFULNESS)), _STANDING),
    "wrong documents": (Way(PAGE, "QualityDrift", _watched(Quantity.CONTEXT_PRECISION)), _DEGRADED, _STANDING),
    "documents about another thing": (Way(PAGE, "QualityDrift", _MEANING), _DEGRADED),
    "duplicate contexts": (Way(TICKET, "TrafficDrift", _signal(Signal.DUPLICATE_CONTEXTS)),),
    "stale documents that the answer follows": (_WRONG, _OLD),
    "refusals": _of_signal(Signal.ABSTENTIONS),
    "empty answers": _of_signal(Signal.EMPTY_ANSWERS),
    "other language": _of_signal(Signal.OTHER_LANGUAGE),
    "wrong citations": (
        Way(PAGE, "QualityDrift", _watched(Quantity.CITATION_PRECISION)),
        Way(TICKET, "TrafficDrift", _UNCITED),
    ),
    "one tenant": (Way(TICKET, "SegmentDrift", _SEGMENT), Way(PAGE, "QualityDrift", _ROUTE)),
    "silence": (Way(TICKET, "RouteSilent", _ALWAYS), Way(TICKET, "SourceSilent", _ALWAYS)),
    "canaries": (_DEGRADED, _WRONG),
    "judge": (
        Way(TICKET, "JudgeFailing", _ALWAYS),
        Way(TICKET, "CoverageLow", _ALWAYS),
        Way(TICKET, "JudgeDrift", _ANCHORS),
    ),
    "source": (
        Way(PAGE, "SourceRejects", _ALWAYS, "a rise by more than half of the records"),
        Way(TICKET, "SourceLag", _ALWAYS),
    ),
}
"""The kinds of failures, and the alerts that notice them."""


def outcome_of(config: Config, failure: str, route: str, dated: Container[str] = ()) -> tuple[Outcome, str]:
    """What a failure on a route leads to under a configuration; `dated` are the routes whose log dates documents.

    The most urgent outcome, and why it does not page, and what to configure; empty where it does.
    """
    ranks = list(Outcome)
    ways = FAILURES[failure]
    met = {way: way.need.is_met(config, route) and (route in dated or not way.need.dated) for way in ways}
    outcome = min((_outcome(config, way) if is_met else NOTHING for way, is_met in met.items()), key=ranks.index)
    if outcome is PAGE:
        return outcome, ""
    missing: dict[str, str] = {}
    for way, is_met in met.items():
        if not is_met and ranks.index(_outcome(config, way)) < ranks.index(outcome):
            missing.setdefault(way.alert, f"{way.alert} needs {way.need.text}")
    lowered = {
        way.alert: config.settings.alerts.severity.get(PREFIX + way.alert) for way, is_met in met.items() if is_met
    }
    set_lower = [f"`alerts.severity` makes {alert} {severity}" for alert, severity in lowered.items() if severity]
    tickets = [f"`alerts.severity: {{{alert}: critical}}` makes it a page" for alert in lowered]
    return outcome, "; ".join([*missing.values(), *set_lower] or tickets[:1])


def unpaged(config: Config, dated: Container[str] = ()) -> tuple[str, ...]:
    """What does not page under a configuration, by failure and routes, with the key to change; see `outcome_of`."""
    failures = (f"{failure}; {why}" for failure, why in unpaged_failures(config, dated))
    settings = config.settings
    none = "no single route pages: `routes` is empty, so all answers have the route `other`"
    thresholds = {*settings.live_thresholds, *(name for own in settings.route_thresholds.values() for name in own)}
    watched = any(not quantity.row.own_alert for quantity in settings.drift.quantities)
    levels = _without_levels({*thresholds, *settings.alerts.slos}, "; drift can page" if watched else "")
    return (*failures, *([] if settings.routes else [none]), *levels, *_before_baselines(settings))


def unpaged_failures(config: Config, dated: Container[str] = ()) -> Iterator[tuple[str, str]]:
    """Kinds of failures that do not page, each with its routes and what it leads to, and why."""
    routes = (*config.settings.routes, OTHER)
    for failure in FAILURES:
        by_result: dict[tuple[Outcome, str], list[str]] = {}
        for route in routes:
            by_result.setdefault(outcome_of(config, failure, route, dated), []).append(route)
        for (outcome, why), where in by_result.items():
            if outcome is not PAGE:
                place = "" if len(where) == len(routes) else f" on {', '.join(where)}"
                yield f"{failure}{place}: {outcome}", why


def _before_baselines(settings: Settings) -> Iterator[str]:
    """What drift detection needs before it can raise an alarm."""
    drift, traffic = settings.drift, settings.drift.traffic
    scores, requests = min(FIRST_SCORES, drift.reference), min(FIRST_REQUESTS, traffic.requests)
    if drift.quantities:
        yield _before("answers", f"{scores} scores", drift.reference_time, "drift.reference_time")
    if traffic.signals:
        yield _before("traffic", f"{requests} requests", traffic.reference, "drift.traffic.reference")


def _before(what: str, count: str, seconds: float, key: str) -> str:
    return (
        f"no drift of {what} pages on a route before it has a baseline: {count}, and answers of "
        f"{seconds / 3600.0:g} h (`{key}`)"
    )


def _outcome(config: Config, way: Way) -> Outcome:
    severity = config.settings.alerts.severity.get(PREFIX + way.alert)
    return way.outcome if severity is None else _OF_SEVERITY[severity]


def _without_levels(limited: Iterable[Quantity], instead: str) -> Iterator[str]:
    """Thresholds and objectives are about levels, which are known as well as the judge is."""
    named = {quantity: quantity.row.question is not None for quantity in limited if not quantity.row.own_alert}
    labelled = [str(quantity) for quantity, has_question in named.items() if has_question]
    others = [str(quantity) for quantity, has_question in named.items() if not has_question]
    if labelled:
        yield (
            f"no threshold or objective of {', '.join(sorted(labelled))} pages on a route before about "
            f"{CALIBRATED_LABELS} of its answers are labelled (`ragwatch label`), unless nearly every answer is "
            f"bad{instead}"
        )
    if others:
        yield (
            f"no threshold or objective of {', '.join(sorted(others))} pages: its level is not known, because people "
            f"are not asked about it{instead}"
        )


def failures_table() -> str:
    """The list of failures for docs/alerts.md: what tells each, and what that needs."""
    rows = ["| failure | noticed by | needs |", "|---|---|---|"]
    for failure, ways in FAILURES.items():
        for number, way in enumerate(ways):
            name = "" if number else failure
            extent = f", {way.extent}" if way.extent else ""
            link = f"[{way.alert}](../deploy/runbooks/{PREFIX}{way.alert}.md)"
            rows.append(f"| {name} | {link}: {way.outcome}{extent} | {way.need.text or 'nothing'} |")
    return "\n".join(rows)
