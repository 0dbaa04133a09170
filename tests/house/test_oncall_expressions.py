"""Every expression of the rules speaks of series that exist, with labels that they have."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from support.oncall_cases import PLAN

from ragwatch.exporter.catalogue import CATALOGUE, MetricType
from ragwatch.rules import alerts, prometheus
from tools.kit import files

promql = pytest.importorskip("promql_parser")
from tools.dashboard_linter import nodes, parsed  # noqa: E402 - it imports the parser

ROOT = Path(__file__).parents[2]
TARGET = {"job", "instance", "cluster", "namespace"}
OF_ALERTS = {"alertname", "alertstate", "severity", "route", "quantity", "signal", "window", *TARGET}
OF_PROMETHEUS = {"up": TARGET, "ALERTS": OF_ALERTS}
NEWER_THAN_2_42 = {"info", "mad_over_time", "double_exponential_smoothing", "sort_by_label", "sort_by_label_desc"}


@cache
def known() -> dict[str, set[str]]:
    """Labels by name, as Prometheus stores them."""
    found = dict(OF_PROMETHEUS)
    for row in CATALOGUE:
        labels = {*row.labels, *TARGET}
        if row.kind is MetricType.HISTOGRAM:
            found[f"{row.name}_bucket"] = {*labels, "le"}
            found |= {} if row.signed else {f"{row.name}_count": labels, f"{row.name}_sum": labels}
        else:
            found[row.name] = labels
    levels = {
        "route": {"route", "judge"},
        "all": {"judge"},
        "suite": {"suite"},
        "judge": {"judge"},
        "segment": {"segment", "value", "judge"},
        "ragwatch": set(),
    }
    for rule in records():
        labels = {*rule.get("labels", {}), "job", "cluster", "namespace", "window"}
        labels |= levels[rule["record"].partition(":")[0]]
        labels |= {"quantity"} if "quality" in rule["record"] else set()
        labels |= {"stage"} if "stage" in rule["record"] else set()
        labels |= {"objective"} if "budget" in rule["record"] else set()
        found[rule["record"]] = labels
    return found


def records() -> list[dict[str, Any]]:
    """All recording rules."""
    files = prometheus(replace(PLAN, segments=True))
    groups: Any = [group for file in files.values() for group in file["groups"]]
    return [rule for group in groups for rule in group["rules"] if "record" in rule]


def selectors(tree: Any) -> Iterator[tuple[list[str], set[str], Any, tuple[Any, ...]]]:
    """Names that each selector may find, and the labels it asks for."""
    for node, above in nodes(tree):
        if isinstance(node, promql.VectorSelector):
            matchers = {each.name: each.value for each in node.matchers.matchers}
            pattern = matchers.pop("__name__", None)
            names = [node.name] if node.name else [name for name in known() if re.fullmatch(str(pattern), name)]
            yield names, set(matchers), node, above


def check(expression: str, later: Mapping[str, set[str]] = MappingProxyType({})) -> None:
    """Series (also `later` ones) and labels of an expression exist, and it uses nothing that Prometheus 2.42 lacks."""
    tree, series = parsed(expression), {**later, **known()}
    used = set()
    for names, labels, _, _ in selectors(tree):
        assert names, expression
        for name in names:
            assert name in series, f"{name} is no series: {expression}"
            assert labels <= series[name], f"{name} lacks {labels - series[name]}: {expression}"
            used |= series[name]
    for node, _ in nodes(tree):
        if isinstance(node, promql.AggregateExpr) and node.modifier is not None:
            assert set(node.modifier.labels) <= used, f"{node.modifier.labels}: {expression}"
        if isinstance(node, promql.Call):
            assert node.func.name not in NEWER_THAN_2_42


def test_rules_speak_of_series_that_exist() -> None:
    """Recording rules and alerts."""
    for rule in records():
        check(rule["expr"])
    for alert in alerts(PLAN):
        check(alert.expr)


def test_templates_ask_for_series_that_exist() -> None:
    """Queries inside annotations parse as well, once their labels are filled in."""
    asked = 0
    for alert in alerts(PLAN):
        texts: Any = alert.rule(PLAN)["annotations"]
        for text in texts.values():
            for query in re.findall(r'printf "([^"]+)"[^|}]* \| query', text):
                check(query.replace("%s", "x").replace("%q", '"x"'))
                asked += 1
    assert asked > 5


def test_queries_of_runbooks_can_be_pasted() -> None:
    """Every piece of code that names a series of ragwatch is an expression that Prometheus evaluates."""
    for page in (ROOT / "deploy" / "runbooks").glob("*.md"):
        code = re.findall(r"`([^`\n]+)`", page.read_text())
        queries = [each for each in code if re.search(r"ragwatch[_:]\w|up\{", each)]
        assert queries, page.name
        for query in queries:
            check(query)


def test_links_of_an_alert_use_its_own_labels() -> None:
    """A template asks only for labels that are left in the expression."""
    for alert in alerts(PLAN):
        texts: Any = alert.rule(PLAN)["annotations"]
        asked = {label for text in texts.values() for label in re.findall(r"\$labels\.(\w+)", text)}
        assert asked <= {*alert.labels, *_left(alert.expr)}, alert.name


def _left(expression: str) -> set[str]:
    tree = parsed(expression)
    while isinstance(tree, promql.BinaryExpr | promql.ParenExpr):
        tree = tree.lhs if isinstance(tree, promql.BinaryExpr) and hasattr(tree, "lhs") else tree.expr
    return set(tree.modifier.labels) if isinstance(tree, promql.AggregateExpr) else set()


def test_what_is_committed_is_what_is_generated() -> None:
    """tools/kit.py would write nothing new."""
    for file, text in files().items():
        assert (ROOT / file).read_text() == text, f"{file}: run tools/kit.py"
    shown = json.loads((ROOT / "grafana/dashboards/overview.json").read_text())
    assert shown["uid"] == "ragwatch-overview"
