"""The on-call kit as promtool and people read it, and what lies in deploy/ as the tools read it that will use it.

That every alert fires is played in tests/functional.
"""

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import yaml
from support.oncall_cases import CASES, PLAN, filled
from support.programs import tool

from ragwatch.model.signals import Signal
from ragwatch.rules import alerts, prometheus, yaml_text
from ragwatch.web.pages.segments_page import SegmentRequest

FILLED = {"route": "search", "judge": "embedded", "quantity": "faithfulness"}


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


ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
ALERTMANAGER = DEPLOY / "alertmanager" / "alertmanager.yaml"
NAMES = sorted({alert.name for alert in alerts(PLAN)})
SECTIONS = ["Mitigation", "Diagnosis", "Meaning", "Confirm recovery"]
PLACEHOLDER = re.compile(
    r"(?<![$\w])(?:FILE|STATE|SUITE|ROUTE|QUANTITY|SIGNAL|JUDGE|NAME|PATH|LOG|INSTANCE|POD)\b(?!=)"
)


def test_every_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    """One page per alert, named like it, with the same sections in the same order, none of them empty."""
    pages = sorted((DEPLOY / "runbooks").glob("*.md"))
    assert [page.stem for page in pages] == NAMES
    for page in pages:
        title, *sections = re.split(r"(?m)^#+ ", page.read_text().removeprefix("# "))
        assert title.strip() == page.stem
        assert [section.partition("\n")[0] for section in sections] == SECTIONS, page.name
        texts = dict(zip(SECTIONS, (section.partition("\n")[2].strip() for section in sections), strict=True))
        assert all(texts.values()), page.name
        assert re.match(r"1\. [A-Z]", texts["Diagnosis"]), f"{page.name}: number the steps of the diagnosis"


def test_runbooks_share_no_block() -> None:
    """What holds for all alerts stands in docs/alerts.md; whoever is paged reads only what is about this alert."""
    read: dict[str, str] = {}
    for page in sorted((DEPLOY / "runbooks").glob("*.md")):
        for block in re.split(r"\n\s*\n|\n(?=- |\d+\. )", page.read_text()):
            text = " ".join(block.split())
            if len(text) > 80:
                assert read.setdefault(text, page.name) == page.name, f"{page.name} repeats {read[text]}: {text}"


def test_commands_of_runbooks_run_as_printed() -> None:
    """No word in capitals has to be replaced; shell variables are set in the same block."""
    for page in (DEPLOY / "runbooks").glob("*.md"):
        code = re.findall(r"(?s)```sh\n(.*?)```|`([^`\n]+)`", page.read_text())
        for block, span in code:
            assert not PLACEHOLDER.search(block or span), f"{page.name}: {block or span}"
            for name in re.findall(r"\$([A-Z]+)", block or span):
                assert name == "USER" or f"{name}=" in block, f"{page.name}: {name} is not set"


def test_alerts_md_tells_how_to_silence() -> None:
    """Every silence needs an end."""
    text = (ROOT / "docs" / "alerts.md").read_text()
    assert "amtool silence add" in text
    assert "--duration" in text
    for name in NAMES:
        assert f"(../deploy/runbooks/{name}.md)" in text


def test_rules_and_their_configuration_are_valid(tmp_path: Path) -> None:
    """Promtool reads the scrape configuration and the rules beside it, and those of a plan with everything."""
    tool("promtool", "check", "config", DEPLOY / "prometheus" / "prometheus.yaml", package="prometheus")
    rules = sorted((DEPLOY / "prometheus").glob("ragwatch-*.yaml"))
    assert len(rules) == 2
    for name, file in prometheus(PLAN).items():
        rules.append(tmp_path / name)
        rules[-1].write_text(yaml_text(file))
    tool("promtool", "check", "rules", "--lint=all", "--lint-fatal", *rules, package="prometheus")


def test_alertmanager_reads_its_example() -> None:
    """Amtool finds no fault."""
    tool("amtool", "check-config", ALERTMANAGER, package="prometheus-alertmanager")


RECEIVERS = {"critical": "oncall", "warning": "morning", "info": "nobody"}


def test_alerts_find_their_receiver() -> None:
    """Critical wakes somebody, a warning waits for the morning, info notifies nobody.

    Routes read no labels but severity and one name, so that one alert of each severity stands for all others.
    """
    routes = json.dumps(yaml.safe_load(ALERTMANAGER.read_text())["route"])
    assert {*re.findall(r"(\w+)[=!]", routes)} == {"alertname", "severity"}
    told = {(alert.name if alert.name in routes else "", str(alert.severity)): alert for alert in alerts(PLAN)}
    assert len(told) == len(RECEIVERS) + 1
    for (_, severity), alert in told.items():
        labels = {"alertname": alert.name, "severity": severity, "area": alert.area, **dict.fromkeys(alert.labels, "x")}
        wanted = [f"--config.file={ALERTMANAGER}", f"--verify.receivers={RECEIVERS[severity]}"]
        given = [f"{label}={value}" for label, value in labels.items()]
        tool("amtool", "config", "routes", "test", *wanted, *given, package="prometheus-alertmanager")


def test_what_is_inhibited_exists() -> None:
    """Names in inhibition rules are names of alerts: a renamed alert would silently inhibit nothing."""
    rules = yaml.safe_load(ALERTMANAGER.read_text())["inhibit_rules"]
    text = " ".join(
        matcher for rule in rules for side in ("source_matchers", "target_matchers") for matcher in rule[side]
    )
    said = {word for part in text.replace('"', " ").replace("|", " ").split() for word in [part.partition("=")[0]]}
    named = {word for word in said if word.startswith("Ragwatch") and word.isalpha()}
    assert named
    assert named <= set(NAMES)


def test_the_sidecar_holds_nothing_up_and_may_nothing() -> None:
    """A native sidecar without readiness or startup probe, not root, on a read-only root."""
    spec = yaml.safe_load((DEPLOY / "kubernetes" / "sidecar.yaml").read_text())["spec"]["template"]["spec"]
    (sidecar,) = spec["initContainers"]
    assert sidecar["restartPolicy"] == "Always"
    assert not {"readinessProbe", "startupProbe"} & set(sidecar)
    allowed = sidecar["securityContext"]
    assert allowed["runAsNonRoot"]
    assert allowed["readOnlyRootFilesystem"]
    assert not allowed["allowPrivilegeEscalation"]
    assert allowed["capabilities"] == {"drop": ["ALL"]}


def test_the_unit_is_hardened() -> None:
    """Exposure as systemd measures it stays below 2 of 10."""
    unit = DEPLOY / "systemd" / "ragwatch.service"
    tool("systemd-analyze", "security", "--offline=true", "--threshold=20", unit, package="systemd")


def test_dashboards_are_where_grafana_looks() -> None:
    """Dashboards are where the provisioning file looks, in the composed container."""
    provided = yaml.safe_load((ROOT / "grafana/provisioning/dashboards/ragwatch.yaml").read_text())
    mounts = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["grafana"]["volumes"]
    path = provided["providers"][0]["options"]["path"]
    assert f"../grafana/dashboards:{path}:ro" in mounts
    assert len(list((ROOT / "grafana/dashboards").glob("*.json"))) == 5


def test_alertmanager_knows_the_signals_that_quality_repeats() -> None:
    """A new signal whose answers score otherwise holds back the alerts on quality, as its row says."""
    rules = yaml.safe_load(ALERTMANAGER.read_text(encoding="utf-8"))["inhibit_rules"]
    (named,) = (
        matcher.removeprefix('signal=~"').removesuffix('"').split("|")
        for rule in rules
        if rule["target_matchers"] == ['area="quality"']
        for matcher in rule["source_matchers"]
        if matcher.startswith("signal=~")
    )
    assert set(named) == {str(signal) for signal in Signal if signal.row.explains}
