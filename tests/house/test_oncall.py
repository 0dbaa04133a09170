"""The on-call kit as promtool and people read it. That every alert fires is played in tests/functional."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from support.oncall_cases import CASES, PLAN
from support.oncall_links import filled
from support.promtool import promtool

from ragwatch.rules import alerts, prometheus, yaml_text
from ragwatch.web.samples import query_of
from ragwatch.web.segments_page import SegmentRequest

FILLED = {"route": "search", "judge": "embedded", "quantity": "faithfulness"}


def test_promtool_finds_no_fault(tmp_path: Path) -> None:
    """Every lint is fatal."""
    for name, file in prometheus(PLAN).items():
        (tmp_path / name).write_text(yaml_text(file))
    code, text = promtool("check", "rules", "--lint=all", "--lint-fatal", *sorted(tmp_path.glob("*.yaml")))
    assert code == 0, text


def test_every_alert_has_cases() -> None:
    """No alert is shipped that was never seen to fire."""
    assert {case.alert for case in CASES} == {alert.name for alert in alerts(PLAN)}


def test_every_alert_says_what_is_needed_at_night() -> None:
    """Severity, area, summary, description with a figure or a name, runbook and dashboard."""
    for alert in alerts(PLAN):
        rule: Any = alert.rule(PLAN)
        told = rule["annotations"]
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
        about = next(label for label in ("route", "suite", "source", "judge", "job") if label in alert.labels)
        assert told["summary"].startswith(f"{{{{ $labels.{about} }}}}"), told["summary"]
        assert re.fullmatch(r"[^\n]*\.", told["summary"])
        assert "{{" in told["description"]
        assert told["runbook_url"] == f"{PLAN.links.runbooks}/{alert.name}.md"
        assert told["dashboard_url"].startswith(f"{PLAN.links.dashboards}/d/ragwatch-")
        if rule["labels"]["area"] == "quality":
            for page in ("samples", "causes"):
                assert filled(told[f"{page}_url"], FILLED).startswith(f"https://ragwatch.example.com/{page}?")


def test_the_ticket_of_a_segment_leads_to_its_page() -> None:
    """Every parameter of the link has a meaning there; a value of a label cannot add others of its own."""
    (rule,) = (each.rule(PLAN) for each in alerts(PLAN) if each.name == "RagwatchSegmentDrift")
    annotations: Any = rule["annotations"]
    address = urlsplit(filled(annotations["segments_url"], {**FILLED, "segment": "tenant"}))
    assert address.path == "/segments/tenant"
    asked = SegmentRequest.of(dict(parse_qsl(address.query, strict_parsing=True)))
    assert (asked.route, asked.judge, asked.quantity) == (FILLED["route"], FILLED["judge"], FILLED["quantity"])


def test_links_to_samples_ask_for_what_the_page_knows() -> None:
    """Every parameter of a link to `/samples`, its labels filled in, has a meaning there."""
    links = [rule["annotations"].get("samples_url") for rule in (each.rule(PLAN) for each in alerts(PLAN))]  # type: ignore[index, call-overload, union-attr]
    asked = [str(link) for link in links if link is not None and "/samples?" in str(link)]
    assert len(asked) > 5
    for link in asked:
        query_of(parse_qsl(urlsplit(filled(link, FILLED)).query, strict_parsing=True), now=0.0)
