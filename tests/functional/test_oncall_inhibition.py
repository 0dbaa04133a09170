"""What is held back while its cause stands, and what is not: the committed Alertmanager configuration, really run."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from functional.daemon import asked
from support.oncall_cases import PLAN
from support.oncall_stage import get, manager, running, until
from support.programs import free_port

from ragwatch.rules import alerts

HERE = {"job": "ragwatch"}
ROUTE = {**HERE, "route": "search"}
JUDGED = {**ROUTE, "judge": "embedded"}
LABELS = {
    "RagwatchQualityBad": JUDGED,
    "RagwatchQualityDrift": JUDGED,
    "RagwatchErrorBudgetBurn": JUDGED,
    "RagwatchTopContextIgnored": JUDGED,
    "RagwatchQualityDriftStanding": {**JUDGED, "quantity": "faithfulness"},
    "RagwatchCoverageLow": JUDGED,
    "RagwatchNoFreshSamples": JUDGED,
    "RagwatchJudgeFailing": {**HERE, "judge": "embedded"},
    "RagwatchJudgeCircuitOpen": {**HERE, "judge": "embedded"},
    "RagwatchJudgeDrift": {**HERE, "judge": "embedded"},
    "RagwatchSourceSilent": {**HERE, "source": "app"},
    "RagwatchRouteSilent": ROUTE,
    "RagwatchSourceLag": {**HERE, "source": "app"},
    "RagwatchAbsent": HERE,
    "RagwatchDown": HERE,
    "RagwatchCanariesDegraded": {**HERE, "suite": "docs"},
}
SEVERITY = {each.name: str(each.severity) for each in alerts(PLAN)} | {"RagwatchErrorBudgetBurn": "warning"}
TICKETS = {"RagwatchErrorBudgetBurn", "RagwatchTopContextIgnored", "RagwatchQualityDriftStanding"}
HELD_BACK = {
    "RagwatchJudgeFailing": TICKETS,
    "RagwatchJudgeCircuitOpen": TICKETS | {"RagwatchJudgeFailing", "RagwatchCoverageLow", "RagwatchNoFreshSamples"},
    "RagwatchJudgeDrift": TICKETS,
    "RagwatchSourceSilent": TICKETS | {"RagwatchRouteSilent"},
    "RagwatchSourceLag": TICKETS | {"RagwatchRouteSilent"},
    "RagwatchQualityDrift": {"RagwatchQualityBad", "RagwatchErrorBudgetBurn"},
    "RagwatchQualityBad": {"RagwatchErrorBudgetBurn"},
    "RagwatchCanariesDegraded": set(),
    "RagwatchDown": set(),
    "RagwatchAbsent": set(LABELS) - {"RagwatchAbsent"},
}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An Alertmanager."""
    folder, port = tmp_path_factory.mktemp("manager"), free_port()
    with running(folder / "log", *manager(folder, port, free_port())):
        found = f"http://127.0.0.1:{port}/api/v2/alerts"
        until("an Alertmanager", lambda: get(found)[0] == 200)
        yield found


def tell(address: str, fired: list[dict[str, str]]) -> list[dict[str, Any]]:
    """Alerts by their labels, as Prometheus sends them; what Alertmanager makes of them.

    It looks at alerts one after the other, behind the scenes: a pair that comes last shows when it has seen them all.
    """
    area = {each.name: str(each.area) for each in alerts(PLAN)}
    last = {"job": f"after {fired[0]['job']}"}
    told = [*fired, *({**last, "alertname": name} for name in ("RagwatchAbsent", "RagwatchDown"))]
    whole = [
        {"area": area[labels["alertname"]], "severity": SEVERITY[labels["alertname"]], **labels} for labels in told
    ]
    body = json.dumps([{"labels": labels, "annotations": {}} for labels in whole]).encode()
    assert asked(address, body, {"Content-Type": "application/json"}).status == 200
    jobs = {labels["job"] for labels in fired}

    def known() -> list[dict[str, Any]]:
        shown = json.loads(get(address)[1])
        if not any(_held(each) for each in shown if each["labels"]["job"] == last["job"]):
            return []
        return [each for each in shown if each["labels"]["job"] in jobs]

    found: list[dict[str, Any]] = until("all alerts", known)
    assert len(found) == len(fired)
    return found


def test_a_cause_holds_back_what_it_explains_and_nothing_else(address: str) -> None:
    """Every cause with every other alert, each pair in a job of its own."""
    pairs = [(cause, name) for cause in HELD_BACK for name in LABELS if name != cause]
    fired = [
        {**LABELS[name], "alertname": name, "job": f"{cause} {other}"}
        for cause, other in pairs
        for name in (cause, other)
    ]
    tell(address, fired)
    expected = {f"{cause} {name}": name for cause, name in pairs if name in HELD_BACK[cause]}
    expected |= {f"{cause} {name}": cause for cause, name in pairs if cause in HELD_BACK.get(name, set())}

    def held() -> dict[str, str]:
        shown = json.loads(get(address)[1])
        return {
            each["labels"]["job"]: each["labels"]["alertname"]
            for each in shown
            if _held(each) and each["labels"]["job"] in jobs
        }

    jobs = {labels["job"] for labels in fired}
    until("those and no others", lambda: held() == expected)  # it marks them one after the other, behind the scenes


def test_what_it_does_not_explain_is_told(address: str) -> None:
    """Another judge, route or job is another matter."""
    fired = []
    for cause, name, elsewhere in (
        ("RagwatchJudgeFailing", "RagwatchQualityDriftStanding", {"judge": "claude"}),
        ("RagwatchQualityDrift", "RagwatchQualityBad", {"route": "support"}),
        ("RagwatchQualityBad", "RagwatchErrorBudgetBurn", {"route": "support"}),
        ("RagwatchSourceSilent", "RagwatchRouteSilent", {"job": "another"}),
        ("RagwatchAbsent", "RagwatchQualityBad", {"job": "a third"}),
    ):
        about = {"job": f"elsewhere {cause}"}
        fired += [
            {**LABELS[cause], "alertname": cause, **about, **elsewhere},
            {**LABELS[name], "alertname": name, **about},
        ]
    assert not any(map(_held, tell(address, fired)))


def test_a_warning_mutes_no_page(address: str) -> None:
    """One of several sources may be quiet, and a budget may burn while a judge fails. Other pages: the pairs above."""
    page = {**LABELS["RagwatchErrorBudgetBurn"], "alertname": "RagwatchErrorBudgetBurn", "severity": "critical"}
    causes = ("RagwatchSourceSilent", "RagwatchSourceLag", "RagwatchJudgeFailing", "RagwatchJudgeDrift")
    pairs = [({**LABELS[cause], "alertname": cause}, page) for cause in causes]
    found = tell(address, [{**one, "job": f"a page beside {pair[0]['alertname']}"} for pair in pairs for one in pair])
    assert not any(map(_held, found))


def test_a_judge_whose_alert_pages_mutes_its_own_pages(address: str) -> None:
    """With `alerts.severity: {JudgeDrift: critical}` the judge is told, and what it says is not."""
    here = {"job": "a judge that pages"}
    cause = {**LABELS["RagwatchJudgeDrift"], "alertname": "RagwatchJudgeDrift", "severity": "critical", **here}
    page = {**LABELS["RagwatchQualityDrift"], "alertname": "RagwatchQualityDrift", **here}
    found = tell(address, [cause, page, {**page, "judge": "claude"}])
    assert [each["labels"]["judge"] for each in found if _held(each)] == ["embedded"]


@pytest.mark.parametrize(
    ("signal", "held"),
    [
        ("abstentions", {"ticket", "QualityDrift", "QualityDriftStanding"}),
        ("empty_retrievals", {"ticket", "abstentions", "QualityDrift", "QualityDriftStanding"}),
        ("dangling_citations", {"ticket"}),
    ],
)
def test_a_signal_that_pages_is_one_notification(signal: str, held: set[str], address: str) -> None:
    """What follows from it on its route is held back, and what does not follow is told."""
    here = {"job": f"a page about {signal}"}
    drift = {**ROUTE, **here, "alertname": "RagwatchTrafficDrift", "area": "retrieval"}
    page = {**drift, "signal": signal, "severity": "critical", "told": "page"}
    found = tell(
        address,
        [
            page,
            {**page, "severity": "warning", "told": "ticket"},
            *([{**page, "signal": "abstentions", "told": "abstentions"}] if signal == "empty_retrievals" else []),
            {**page, "route": "faq", "severity": "warning", "told": "another route"},
            *(
                {**LABELS[f"Ragwatch{name}"], "alertname": f"Ragwatch{name}", "told": name, **here}
                for name in ("QualityDrift", "QualityDriftStanding", "CanariesDegraded")
            ),
        ],
    )
    assert {alert["labels"]["told"] for alert in found if _held(alert)} == held


def test_a_break_of_all_routes_is_one_notification(address: str) -> None:
    """Pages of a job are one group, whatever they are about; tickets are a group by area."""
    here = {"job": "all routes"}
    pages = [
        {**JUDGED, "alertname": "RagwatchQualityDrift", "route": route, **here} for route in ("search", "faq", "other")
    ]
    pages.append({"suite": "docs", "alertname": "RagwatchCanariesDegraded", "severity": "critical", **here})
    tickets = [{**ROUTE, "signal": signal, "alertname": "RagwatchTrafficDrift", **here} for signal in ("a", "b")]
    tickets = [{**each, "severity": "warning"} for each in tickets]
    tell(address, [*pages, *tickets])
    groups = json.loads(get(f"{address}/groups")[1])
    told = [(each["receiver"]["name"], len(each["alerts"])) for each in groups if each["labels"]["job"] == here["job"]]
    assert sorted(told) == [("morning", 2), ("oncall", 4)]


def _held(alert: dict[str, Any]) -> bool:
    return bool(alert["status"]["inhibitedBy"])
