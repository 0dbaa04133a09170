"""Which failures page, open a ticket or are not told: each kind of a fixed list, on each route, with its key."""

from pathlib import Path
from typing import Any

import pytest
from support.oncall_cases import PLAN

from ragwatch.config import Config, parse
from ragwatch.config.paging import FAILURES, Outcome, failures_table, outcome_of, unpaged
from ragwatch.rules import alerts
from ragwatch.rules.alert import PREFIX

PROBE = {"kind": "http", "url": "http://127.0.0.1:1", "contexts": "hits", "params": {"q": "{{ query }}"}}
SUITE = {"suite": "docs", "items": [{"query": "?", "expected": ["a"]}], "probe": PROBE}
PAGE, TICKET, NOTHING = Outcome


def a_config(**settings: Any) -> Config:
    """A configuration with one source and one judge."""
    source = {"kind": "tail", "name": "app", "path": "/x"}
    judges = [{"kind": "lexical", "name": "embedded"}]
    return parse({"sources": [source], "judges": judges, "routes": ["faq"], **settings}, folder=Path())


def outcomes(config: Config, route: str = "faq") -> dict[str, Outcome]:
    """What each failure leads to."""
    return {failure: outcome_of(config, failure, route)[0] for failure in FAILURES}


def test_what_pages_by_default() -> None:
    """Where users would call first, whatever the judge says; a route with a control opens tickets."""
    assert outcomes(a_config()) == {
        **dict.fromkeys(
            ("invention", "wrong documents", "refusals", "empty answers", "other language", "source"), PAGE
        ),
        **dict.fromkeys(("duplicate contexts", "wrong citations", "silence", "judge"), TICKET),
        **dict.fromkeys(("documents about another thing", "one tenant", "canaries"), NOTHING),
        "stale documents that the answer follows": NOTHING,
    }
    config = a_config(routes=["new", "old", "faq"], drift={"controls": {"new": "old"}})
    by_route = {"new": TICKET, "old": NOTHING, "faq": PAGE}
    assert {route: outcomes(config, route)["invention"] for route in by_route} == by_route
    named = [reason.partition(":")[0] for reason in unpaged(config) if reason.startswith("invention")]
    assert named == ["invention on new", "invention on old"]


@pytest.mark.parametrize(
    ("settings", "failure", "outcome", "key"),
    [
        ({"canaries": [SUITE]}, "canaries", PAGE, ""),
        ({"drift": {"quantities": []}}, "invention", NOTHING, "faithfulness in `drift.quantities`"),
        ({"drift": {"quantities": []}, "canaries": [SUITE]}, "wrong documents", PAGE, ""),
        ({"drift": {"traffic": {"signals": ["contexts"]}}}, "refusals", NOTHING, "`drift.traffic.signals`"),
        ({"alerts": {"rises": {"empty_answers": None}}}, "empty answers", TICKET, "`alerts.rises`"),
        ({"alerts": {"severity": {"QualityDrift": "info"}}}, "invention", NOTHING, "makes QualityDrift info"),
        ({"alerts": {"severity": {"RouteSilent": "critical"}}}, "silence", PAGE, ""),
        ({"drift": {"quantities": ["citation_precision"]}}, "wrong citations", PAGE, ""),
        ({}, "silence", TICKET, "`alerts.severity: {RouteSilent: critical}`"),
        ({}, "one tenant", NOTHING, "`segments`"),
        ({"segments": {"tenant": ["acme"]}}, "one tenant", TICKET, "a route of its own"),
        ({"segments": {"tenant": ["acme"]}, "drift": {"segments": False}}, "one tenant", NOTHING, "`drift.segments`"),
    ],
)
def test_each_failure_names_its_key(settings: dict[str, Any], failure: str, outcome: Outcome, key: str) -> None:
    """Where it does not page; and with the key it does."""
    led_to, why = outcome_of(a_config(**settings), failure, "faq")
    assert led_to is outcome
    assert key in why
    assert (why == "") == (outcome is PAGE)


def test_reasons_say_what_to_log_and_what_to_write() -> None:
    """Without dates of documents, on each route; before labels drift is what can page."""
    config = a_config(routes=["faq", "docs"])
    reasons = [reason for reason in unpaged(config, {"docs"}) if reason.startswith("stale documents")]
    without, dated = sorted(reasons, key=lambda reason: " on docs" in reason)
    assert ": nothing; " in without
    assert "`updated_at` in the contexts" in without
    assert dated.startswith("stale documents that the answer follows on docs: ticket; CanaryAnswersWrong needs")
    reasons = unpaged(a_config())
    assert any("no threshold or objective of answer_relevancy, faithfulness pages" in reason for reason in reasons)
    assert all("drift can page" in reason for reason in reasons if "threshold" in reason)
    baselines = [reason for reason in reasons if "before it has a baseline" in reason]
    for number, needed in zip(("100 scores", "500 requests"), baselines[:2], strict=True):
        assert f"{number}, and answers of 24 h" in needed
    assert any("`routes` is empty" in reason for reason in unpaged(a_config(routes=[])))


def test_what_a_list_names_exists() -> None:
    """Every alert is one that is shipped, and pages or not as the list says."""
    severities: dict[str, set[str]] = {}
    for alert in alerts(PLAN):
        severities.setdefault(alert.name, set()).add(str(alert.severity))
    level = {PAGE: "critical", TICKET: "warning"}
    for ways in FAILURES.values():
        for way in ways:
            assert level[way.outcome] in severities[PREFIX + way.alert], way
            assert way.alert in failures_table()
