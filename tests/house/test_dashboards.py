"""Dashboards: whose lines they draw, where their links lead, and the rules of Grafana's linter."""

import json
import re
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
import yaml
from house.test_imports import imports, within
from house.test_oncall_expressions import check, known, promql, records, selectors
from support.oncall_cases import PLAN

from ragwatch.daemon.changes import EventKind
from ragwatch.model.quantities import LOW_IS_GOOD, Quantity
from ragwatch.rules.dashboards import BoardPlan, boards
from ragwatch.rules.dashboards.query import PLACE
from ragwatch.web.samples import query_of
from tools.dashboard_linter import exclusions, left, panels, parsed

ROOT = Path(__file__).parents[2]
BOARDS: dict[str, Any] = dict(boards(BoardPlan(pages="https://rag.example.org/watch")))
PANELS = [(name, panel) for name, board in BOARDS.items() for panel in panels(board)]
TARGETS = [(name, panel, target) for name, panel in PANELS for target in panel["targets"]]
VARIABLES = ["datasource", "cluster", "namespace", "job", "instance", "route", "judge", "window", "pages"]
LATER = {"route:ragwatch_quality:threshold": {*PLACE, "route", "judge", "quantity", "window"}}
"""Series that the panels also read, where the rules record them."""


def test_the_linter_finds_no_fault() -> None:
    """Every rule of Grafana's dashboard-linter holds, except what `.lint` names: series without an instance."""
    excluded = exclusions(BOARDS.values())
    assert set(excluded["exclusions"]) == {"target-instance-rule"}
    for board in BOARDS.values():
        assert left(board, excluded) == []
    committed = yaml.safe_load((ROOT / "grafana/dashboards/.lint").read_text())
    for file in (ROOT / "grafana").glob("*/*.json"):
        assert left(json.loads(file.read_text()), committed) == []


def test_the_linter_finds_faults() -> None:
    """Each rule that can be broken in a panel or a variable is told when it is."""
    board = json.loads(json.dumps(BOARDS["operation.json"]))
    board["editable"] = True
    board["templating"]["list"] = [each for each in board["templating"]["list"] if each["name"] != "instance"]
    board["templating"]["list"][1]["query"]["query"] = "label_values(up{, job)"
    board["templating"]["list"][2]["refresh"] = 1
    first, second, third, *_ = panels(board)
    first |= {"title": "", "datasource": {"uid": "prometheus"}}
    first["fieldConfig"]["defaults"]["unit"] = "answers"
    second["targets"][0]["expr"] = 'rate(ragwatch_requests_seen_total{job="a"}[5m]) + ragwatch_requests_seen_total'
    third["targets"][0]["expr"] = "sum("
    assert {fault.rule for fault in left(board, {})} == {
        "uneditable-dashboard",
        "template-instance-rule",
        "template-label-promql-rule",
        "template-on-time-change-reload-rule",
        "panel-title-description-rule",
        "panel-datasource-rule",
        "panel-units-rule",
        "target-job-rule",
        "target-instance-rule",
        "target-rate-interval-rule",
        "target-counter-agg-rule",
        "target-promql-rule",
    }


def test_two_deployments_are_never_drawn_alike() -> None:
    """Job, cluster and namespace restrict every series, are left by every grouping, and are in every legend."""
    further = {*LATER["route:ragwatch_quality:threshold"], "alertname", "severity", "suite"}
    for _, panel, target in TARGETS:
        assert re.fullmatch(r"[^a-z].*\.|[a-z]+:.*\.", panel["description"]), panel["title"]
        check(target["expr"], LATER)
        for _, labels, _, _ in selectors(parsed(target["expr"])):
            assert set(PLACE) <= labels, target["expr"]
        outermost = _outermost(parsed(target["expr"]))
        assert set(PLACE) <= outermost, target["expr"]
        legend = re.findall(r"{{(\w+)}}", target["legendFormat"])
        assert legend[-3:] == list(PLACE), target["expr"]
        assert set(legend) <= outermost | further, target["expr"]


def _outermost(tree: Any) -> set[str]:
    """Labels that an expression leaves; the left side of an operator decides."""
    while True:
        if isinstance(tree, promql.AggregateExpr):
            return set(tree.modifier.labels)
        if isinstance(tree, promql.VectorSelector):
            return known().get(tree.name, {*PLACE})
        if isinstance(tree, promql.BinaryExpr):
            tree = tree.lhs if not isinstance(tree.lhs, promql.NumberLiteral) else tree.rhs
        elif isinstance(tree, promql.Call):
            tree = tree.args[1] if tree.func.name == "histogram_quantile" else tree.args[0]
        else:
            tree = tree.expr


def test_every_panel_links_to_what_is_behind_it() -> None:
    """A data link to a page of ragwatch, below the one URL of the dashboard; labels that its lines have."""
    for name, panel in PANELS:
        (link,) = panel["fieldConfig"]["defaults"]["links"]
        links = dict.fromkeys((target["refId"] for target in panel["targets"]), link)
        for override in panel["fieldConfig"]["overrides"]:
            for each in override["properties"]:
                if each["id"] == "links":
                    links[override["matcher"]["options"]] = each["value"][0]
        for target in panel["targets"]:
            url = links[target["refId"]]["url"]
            assert re.match(r"\$\{pages:raw\}/(samples\?|canaries$|drift$|$)", url), (name, url)
            used = set(re.findall(r"__(?:field\.labels|data\.fields)\.(\w+)", url))
            assert used <= set(re.findall(r"{{(\w+)}}", target["legendFormat"])), (name, url)
            assert ("__data" in url) <= (panel["type"] == "table"), (name, url)


def test_links_to_answers_ask_for_what_the_page_knows() -> None:
    """Every parameter of a link to `/samples`, its variables filled in, has a meaning there."""
    values = {
        "__from": "1700000000",
        "__to": "1700003600",
        "window": "1h",
        "stage": "retrieval",
        "quantity": "need_recall",
    }
    urls = {
        url for board in BOARDS.values() for url in re.findall(r"\$\{pages:raw\}/samples\?([^\"]+)", json.dumps(board))
    }
    assert len(urls) > 10
    for url in urls:
        filled = re.sub(r"\$\{(?:__[a-z]+\.\w+\.)?(\w+)[^}]*\}", lambda found: values.get(found[1], "x"), url)
        query_of(parse_qsl(filled, strict_parsing=True), now=1700003600.0)


def test_nothing_is_fixed_to_an_address() -> None:
    """The URL of the pages is in one constant, and no other host anywhere."""
    for board in BOARDS.values():
        text = json.dumps(board)
        assert set(re.findall(r"https?://[^/\"]+", text)) == {"https://rag.example.org"}
        (pages,) = (each for each in board["templating"]["list"] if each["name"] == "pages")
        assert (pages["type"], pages["query"], pages["skipUrlSync"]) == (
            "constant",
            "https://rag.example.org/watch",
            True,
        )
    for file in (ROOT / "grafana/dashboards").glob("*.json"):
        assert not re.search(r"127\.0\.0\.1|localhost", file.read_text())


def test_figures_of_now_are_of_now() -> None:
    """A single figure is asked for at one instant: over a span, Grafana shows the last one there was, however old."""
    shown = [panel for _, panel in PANELS if panel["type"] in {"stat", "table", "gauge"}]
    assert shown
    assert all(target["instant"] and not target["range"] for panel in shown for target in panel["targets"])


def test_quality_is_drawn_beside_its_threshold() -> None:
    """Every panel of a mean holds the threshold of its quantity, in the right direction."""
    for (_, panel), quantity in product(PANELS, Quantity):
        if not any(f'quantity="{quantity}"' in target["expr"] for target in panel["targets"]):
            continue
        if any("all:ragwatch_quality:low" in target["expr"] for target in panel["targets"]):
            (mark,) = (each["expr"] for each in panel["targets"] if "threshold" in each["legendFormat"])
            assert f'quantity="{quantity}"' in mark
        if panel["type"] == "stat":
            good = panel["targets"][0]["expr"]
            assert ("} <= (" in good) == (quantity in LOW_IS_GOOD)
    said = [rule["labels"] for rule in records() if rule["record"] == "ragwatch:quality_threshold"]
    assert {labels["job"] for labels in said} == {PLAN.job}


def test_drift_has_a_logarithmic_scale_and_its_threshold() -> None:
    """Evidence grows by factors; the alarm is at 1."""
    (panel,) = (panel for _, panel in PANELS if panel["title"] == "Drift evidence")
    defaults = panel["fieldConfig"]["defaults"]
    assert defaults["custom"]["scaleDistribution"] == {"type": "log", "log": 10}
    assert defaults["custom"]["thresholdsStyle"] == {"mode": "dashed"}
    assert defaults["thresholds"]["steps"][-1]["value"] == 1.0


@pytest.mark.parametrize("name", BOARDS)
def test_a_dashboard_is_well_made(name: str) -> None:
    """Variables and their defaults, annotations, unique panels that do not overlap."""
    board = BOARDS[name]
    variables = {each["name"]: each for each in board["templating"]["list"]}
    assert list(variables) == VARIABLES
    assert (variables["judge"]["current"]["value"], variables["window"]["current"]["value"]) == ("embedded", "1h")
    for each in ("job", "cluster", "namespace", "instance", "route"):
        assert variables[each]["current"]["value"] == ["$__all"]
    for each in variables.values():
        if each["type"] == "query":
            check(each["query"]["query"].removeprefix("label_values(").rpartition(",")[0], LATER)
    shown = {each["name"]: each["expr"] for each in board["annotations"]["list"] if "expr" in each}
    assert "ragwatch_last_event_timestamp_seconds" in shown["Deploys"]
    kinds = {kind for expression in shown.values() for kind in EventKind if re.search(rf'[|"]{kind}[|"]', expression)}
    assert kinds == {*EventKind} - {EventKind.RELOAD}, "loads of the configuration have a series of their own"
    for expression in shown.values():
        check(expression, LATER)
        assert all(set(PLACE) <= labels for _, labels, _, _ in selectors(parsed(expression)))
    numbers = [panel["id"] for panel in board["panels"]]
    assert len(set(numbers)) == len(numbers)
    cells = [
        (x, y)
        for panel in board["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24


def test_every_reference_is_unique() -> None:
    """Targets are told apart by their letters, which overrides name."""
    for _, panel in PANELS:
        letters = [target["refId"] for target in panel["targets"]]
        assert len(set(letters)) == len(letters)
        assert {each["matcher"]["options"] for each in panel["fieldConfig"]["overrides"]} <= set(letters)


def test_only_the_command_builds_dashboards() -> None:
    """Nothing that runs in the daemon imports them."""
    dashboards = "ragwatch.rules.dashboards"
    importers = {module for module, names in imports().items() if any(within(name, dashboards) for name in names)}
    assert {module for module in importers if not within(module, dashboards)} == {"ragwatch.commands.rules"}
