"""Breakages of traffic as data, replayed against a real ragwatch, Prometheus and Alertmanager, one route each.

Every route answers healthily until its baselines are learnt, then all routes but the quiet ones break at the same time,
and are mended once everybody who should be told has been told.
"""

import math
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Self

from functional.daemon import RagwatchProcess

from support.oncall_stage import Stage, until
from support.oncall_traffic import BROKEN_TENANT, TENANTS, Breakage, Traffic

ONCALL, MORNING = "oncall", "morning"
QUANTITIES = ("faithfulness", "context_precision", "answer_relevancy")
OF_SCRAPES = frozenset({"RagwatchDown", "RagwatchAbsent"})
"""Not about answers. An hour is ten seconds here, so that a scrape that is a second late is an outage of minutes."""
LEARNT = 320
"""Answers of each route from which its baselines are learnt: a few more than the references need."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """What breaks on a route, and who must be told what."""

    route: str  # the route
    breakage: Breakage | None = None  # what is wrong with a share of its answers; None for a route that stays healthy
    share: float = 1.0  # that share
    alert: str = ""  # pattern of the names of the alerts that may tell of it; empty for none
    receiver: str = ONCALL  # who is told: `oncall` is paged, `morning` finds a ticket
    stage: str | None = None  # the stage that the text names; None where no stage is at fault
    max_answers: int = 0  # answers of the route after which it must have been told
    noise: float = 0.1  # share of its healthy answers with a sentence that no context supports
    cites: bool = False  # whether its healthy answers cite their context
    of_tenant: bool = False  # whether it breaks for one tenant of twenty


GROSS_SCENARIOS = (
    Scenario("refusals", Breakage.ABSTENTION, 1.0, "TrafficDrift", max_answers=400),
    Scenario("no-text", Breakage.NO_TEXT, 0.9, "TrafficDrift", max_answers=400),
    Scenario("german", Breakage.OTHER_LANGUAGE, 1.0, "TrafficDrift", max_answers=400),
    Scenario("repeated", Breakage.REPEATED, 0.9, "TrafficDrift", max_answers=400),
    Scenario("quiet"),
)
"""Failures that page whatever a judge says."""
QUALITY = ("RagwatchQualityDrift", "RagwatchQualityBad", "RagwatchSegmentDrift")
SCENARIOS = (
    Scenario("inventions", Breakage.INVENTION, 0.6, "QualityDrift|QualityBad", stage="generation", max_answers=400),
    Scenario("irrelevant", Breakage.IRRELEVANT, 0.6, "QualityDrift|QualityBad", stage="retrieval", max_answers=400),
    Scenario("abstentions", Breakage.ABSTENTION, 0.4, "TrafficDrift", MORNING, max_answers=600),
    Scenario("quiet"),
    Scenario("weak", noise=0.4),
)
MORE_SCENARIOS = (
    Scenario(
        "few-inventions", Breakage.INVENTION, 0.15, "QualityDrift|QualityBad", stage="generation", max_answers=800
    ),
    Scenario(
        "few-irrelevant", Breakage.IRRELEVANT, 0.1, "QualityDrift|QualityBad", stage="retrieval", max_answers=1500
    ),
    Scenario("top-swapped", Breakage.SWAPPED, 1.0, "QualityDrift|QualityBad", max_answers=400),
    Scenario("numbers", Breakage.SWAPPED_NUMBER, 0.2, "QualityDrift|QualityBad", stage="generation", max_answers=1000),
    Scenario("few-abstentions", Breakage.ABSTENTION, 0.2, "TrafficDrift", MORNING, max_answers=1000),
    Scenario("empty", Breakage.EMPTY, 0.05, "TrafficDrift", MORNING, max_answers=1000),
    Scenario("some-empty", Breakage.NO_TEXT, 0.3, "TrafficDrift", MORNING, max_answers=1000),
    Scenario("tenant", Breakage.INVENTION, 1.0, "SegmentDrift", MORNING, max_answers=1000, of_tenant=True),
    Scenario("silent", Breakage.SILENCE, 1.0, "RouteSilent", MORNING, max_answers=2000),
)
_DRIFT = "QualityDrift|QualityBad"
FURTHER_SCENARIOS = {
    "worse answers": (
        Scenario("added", Breakage.ADDED, 1.0, _DRIFT, stage="generation", max_answers=400),
        Scenario("negated", Breakage.NEGATED, 0.5, _DRIFT, stage="generation", max_answers=400),
        Scenario("of-another", Breakage.OF_ANOTHER, 0.5, _DRIFT, stage="generation", max_answers=400),
        Scenario("cached", Breakage.CACHED, 0.9, f"TrafficDrift|{_DRIFT}", max_answers=400),
        Scenario("architect", Breakage.ARCHITECT, 1.0, _DRIFT, stage="generation", max_answers=400),
        Scenario("quiet"),
    ),
    "other answers": (
        Scenario("hedged", Breakage.HEDGED, 0.5, _DRIFT, stage="generation", max_answers=400),
        Scenario("truncated", Breakage.TRUNCATED, 1.0, _DRIFT, max_answers=400),
        Scenario("half", Breakage.HALF, 1.0, _DRIFT, max_answers=400),
        Scenario("leaked", Breakage.LEAKED, 0.9, f"TrafficDrift|{_DRIFT}", max_answers=400),
        Scenario("tool-call", Breakage.TOOL_CALL, 0.9, f"TrafficDrift|{_DRIFT}", max_answers=400),
        Scenario("french", Breakage.FRENCH, 0.9, "TrafficDrift", max_answers=400),
        Scenario("quiet"),
    ),
    "worse contexts": (
        Scenario("neighbours", Breakage.NEIGHBOURS, 0.5, _DRIFT, max_answers=400),
        Scenario("cut", Breakage.CUT, 0.5, _DRIFT, max_answers=400),
        Scenario("reversed", Breakage.REVERSED, 1.0, _DRIFT, max_answers=400),
        Scenario("last-only", Breakage.LAST_ONLY, 0.5, _DRIFT, max_answers=400),
        Scenario("error-page", Breakage.ERROR_PAGE, 0.3, _DRIFT, stage="retrieval", max_answers=400),
        Scenario("quiet"),
    ),
    "citations": (
        Scenario("dangling", Breakage.DANGLING, 0.5, "TrafficDrift", MORNING, max_answers=600, cites=True),
        Scenario("uncited", Breakage.UNCITED, 0.5, "TrafficDrift", MORNING, max_answers=600, cites=True),
        Scenario("duplicates", Breakage.DUPLICATES, 0.5, "TrafficDrift", MORNING, max_answers=600),
        Scenario("quiet", cites=True),
    ),
    "old index": (
        Scenario("snapshot", Breakage.SNAPSHOT, 0.6, "TrafficDrift", MORNING, max_answers=600),
        Scenario("quiet"),
    ),
}
"""Further breakages."""
UNSEEN_SCENARIOS = (Scenario("stale", Breakage.STALE, 0.5), Scenario("topic", Breakage.TOPIC, 0.5), Scenario("quiet"))
"""Breakages that no signal of answers shows: nobody is told, and `check` names them as failures that do not page."""
_SIGNALS = (
    "abstentions, empty_retrievals, empty_answers, other_language, repeated_answers, duplicate_contexts, "
    "document_age_days"
)
REAL_SCENARIOS = {
    "real inventions": (
        Scenario("clapnq", Breakage.INVENTION, 0.15, "QualityDrift|QualityBad", stage="generation", max_answers=1500),
        Scenario("mtrag", Breakage.INVENTION, 0.15, "QualityDrift|QualityBad", stage="generation", max_answers=1500),
        Scenario("expertqa"),
    ),
    "real contexts": (
        Scenario("clapnq", Breakage.IRRELEVANT, 0.6, "QualityDrift|QualityBad", stage="retrieval", max_answers=400),
        Scenario("mtrag"),
        Scenario("expertqa", Breakage.IRRELEVANT, 0.6, "QualityDrift|QualityBad", stage="retrieval", max_answers=400),
    ),
    "real abstentions": (
        Scenario("clapnq", Breakage.ABSTENTION, 0.2, "TrafficDrift", MORNING, max_answers=1000),
        Scenario("mtrag"),
        Scenario("expertqa"),
    ),
}
"""Plays of real answers: a route gives the answers of the set of its name."""


@dataclass(frozen=True, slots=True)
class Told:
    """An alert that a receiver was told of."""

    receiver: str  # who was told
    alert: str  # name of the alert
    route: str  # its route
    started: str  # its start, as Alertmanager writes it: an alert that fires again has another
    text: str  # summary and description


class Writer:
    """Appends answers of all routes to a log, at a steady rate or in waves.

    Args:
        log: The file.
        scenarios: One for each route.
        rate: Answers of each route a second.
        learnt: Answers of each route from which baselines are learnt, written at once.
        day: Seconds of a day, in which the rate falls to a fifth and rises to nearly the double; 0 for a steady rate.
        traffic: Where answers come from; None for answers about places.

    Attributes:
        healthy_answers: Answers of each route while nothing was broken.
        broken_answers: The others.
    """

    def __init__(
        self,
        log: Path,
        scenarios: Sequence[Scenario],
        *,
        rate: float,
        learnt: int = LEARNT,
        day: float = 0.0,
        traffic: Traffic | None = None,
    ) -> None:
        self.healthy_answers, self.broken_answers = learnt, 0
        self._log = log
        self._scenarios = scenarios
        self._rate = rate
        self._day = day
        self._traffic = traffic or Traffic()
        self._broken = Event()
        self._ended = Event()
        self._thread = Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._append(scenario for scenario in self._scenarios for _ in range(self.healthy_answers))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def break_everything(self) -> None:
        """Break what the scenarios break."""
        self._broken.set()

    def mend(self) -> None:
        """Answer healthily again."""
        self._broken.clear()

    def _run(self) -> None:
        begin = time.monotonic()
        while not self._ended.wait(1.0 / (self._rate * self._wave(time.monotonic() - begin))):
            broken = self._broken.is_set()
            self._append(self._scenarios, broken=broken)
            self.healthy_answers += not broken
            self.broken_answers += broken

    def _wave(self, seconds: float) -> float:
        """Traffic at a time of the day, where 1 is usual."""
        return 1.0 + 0.8 * math.sin(2.0 * math.pi * seconds / self._day) if self._day else 1.0

    def _append(self, scenarios: Iterable[Scenario], *, broken: bool = False) -> None:
        with self._log.open("a", encoding="utf-8") as file:
            for scenario in scenarios:
                tenant = self._traffic.tenant() if scenario.of_tenant else ""
                broken_now = broken and tenant in ("", BROKEN_TENANT) and self._traffic.chance(scenario.share)
                breakage = scenario.breakage if broken_now else None
                if breakage is Breakage.SILENCE:
                    continue
                noise, cites = scenario.noise, scenario.cites
                file.write(self._traffic.row(scenario.route, breakage, noise=noise, cites=cites, tenant=tenant) + "\n")


def sections(scenarios: Sequence[Scenario], judge: str, learnt: int = LEARNT) -> dict[str, str]:
    """Sections of the configuration that watches such a log, with baselines of a few hundred answers."""
    routes = ", ".join(f"'{scenario.route}'" for scenario in scenarios)
    signals = f"{_SIGNALS}, uncited_answers, dangling_citations" if any(one.cites for one in scenarios) else _SIGNALS
    return {
        "segments": f"{{tenant: [{', '.join(TENANTS)}]}}" if any(one.of_tenant for one in scenarios) else "{}",
        "routes": f"[{routes}]",
        "judges": f"[{{name: {judge}, kind: lexical}}]",
        "estimates": "{windows: [15m], every: 500ms}",
        "drift": (
            f"{{reference: {learnt - 20}, reference_time: 10ms, quantities: [{', '.join(QUANTITIES)}], "
            f"traffic: {{requests: {learnt - 20}, reference: 10ms, signals: [{signals}]}}}}"
        ),
    }


def play(
    stage: Stage, ragwatch: RagwatchProcess, writer: Writer, scenarios: Sequence[Scenario], *, job: str, judge: str
) -> dict[str, float]:
    """Break and mend; what was told must be what the scenarios say. Returns the answers until each was told."""
    expected = len(scenarios) * len(QUANTITIES)
    until("all baselines", lambda: _count(ragwatch, "ragwatch_drift_alarm{") >= expected)
    until("baselines of signals", lambda: _count(ragwatch, "ragwatch_traffic_drift_alarm{") >= 2 * len(scenarios))
    named = [scenario.route for scenario in scenarios if scenario.stage is not None]
    before = f'count by (route) (ragwatch_stage_baseline_ratio{{job="{job}",route=~"{"|".join(named)}"}})'
    until("usual shares of stages", lambda: len(stage.ask(before)) == len(named))
    assert not told(stage, job), told(stage, job)
    waiting = {scenario.route: scenario for scenario in scenarios if scenario.alert}
    after: dict[str, float] = {}
    writer.break_everything()
    while waiting:
        until(f"alerts on {sorted(waiting)}", lambda: _matching(stage, job, waiting))
        series = ragwatch.series()
        for alert in _matching(stage, job, waiting):
            if scenario := waiting.pop(alert.route, None):
                judged = series[f'ragwatch_samples_judged_total{{judge="{judge}",route="{scenario.route}"}}']
                # Some of those that are written wait for the judge; signals of traffic do not.
                by_judge = alert.alert in QUALITY
                answers = judged - writer.healthy_answers if by_judge else float(writer.broken_answers)
                after[f"{scenario.route}: broken answers until {alert.alert}"] = answers
                assert alert.receiver == scenario.receiver, alert
                assert alert.text.startswith(f"{scenario.route}: "), alert
                assert answers <= scenario.max_answers, (scenario, answers)
    for scenario in scenarios:
        if scenario.stage is not None:  # an alert that comes with the first broken answers names it a little later
            until(f"the stage of {scenario.route}", lambda: _named(stage, job, scenario))  # noqa: B023 - called at once
    writer.mend()
    firing = f'ALERTS{{job="{job}",severity="critical",alertstate="firing"}}'
    until("the end of all pages", lambda: not stage.ask(firing))
    _check_once(stage, scenarios, job)
    return after


def told(stage: Stage, job: str) -> list[Told]:
    """Alerts that receivers were told of, each once, in order."""
    alerts: dict[tuple[str, str, str, str], Told] = {}
    for receiver, body in list(stage.heard):
        for alert in body["alerts"]:
            labels = alert["labels"]
            if labels["job"] == job and alert["status"] == "firing" and labels["alertname"] not in OF_SCRAPES:
                key = (receiver, labels["alertname"], labels.get("route", ""), alert["startsAt"])
                text = f"{alert['annotations']['summary']} {alert['annotations']['description']}"
                alerts.setdefault(key, Told(*key, text))
    return list(alerts.values())


def _matching(stage: Stage, job: str, scenarios: Mapping[str, Scenario]) -> list[Told]:
    """Alerts that scenarios, by route, are waiting for; the ticket of the standing alarm may come before the page."""
    return [
        alert
        for alert in told(stage, job)
        if alert.route in scenarios and alert.alert.removeprefix("Ragwatch") in scenarios[alert.route].alert.split("|")
    ]


def _count(ragwatch: RagwatchProcess, prefix: str) -> int:
    return sum(name.startswith(prefix) for name in ragwatch.series())


def _named(stage: Stage, job: str, scenario: Scenario) -> bool:
    """Whether an alert about a route names the stage, as Alertmanager knows it now."""
    found = f"Stage that changed: {scenario.stage},"
    shown = stage.alerts(job, scenario.route)
    return any(found in alert["annotations"]["description"] for alert in shown)


def _check_once(stage: Stage, scenarios: Sequence[Scenario], job: str) -> None:
    """Each broken route was told of once, healthy routes never, and nothing fires anew after the mend."""
    pages: dict[str, list[Told]] = defaultdict(list)
    end = time.monotonic() + 3.0
    while time.monotonic() < end:  # a fresh alert after the mend would come with the next evaluations
        pages.clear()
        for alert in told(stage, job):
            pages[alert.route].append(alert)
        time.sleep(0.5)
    for scenario in scenarios:
        alerts = pages.pop(scenario.route, [])
        assert scenario.alert or not alerts, alerts
        alerts = [alert for alert in alerts if alert.receiver == ONCALL]
        if scenario.of_tenant and len(alerts) == 1:  # a twentieth of the answers is bad, so that the route pages later
            continue
        assert len(alerts) == (scenario.receiver == ONCALL and bool(scenario.alert)), (scenario, alerts)
    assert not pages, pages
