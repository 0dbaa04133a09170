"""Checks dashboards by the rules of Grafana's dashboard-linter, a Go program; the names are those of its rules.

`python tools/dashboard_linter.py FILE...` prints what is wrong, and ends with 1 if anything is. Exceptions are read
from a file `.lint` beside each dashboard, as the linter reads them.
"""

import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import promql_parser as promql
import yaml

UNITS = frozenset(
    [
        "none",
        "string",
        "short",
        "percent",
        "percentunit",
        "bytes",
        "decbytes",
        "Bps",
        "s",
        "ms",
        "m",
        "h",
        "d",
        "dtdurations",
        "ops",
        "reqps",
        "rps",
        "iops",
        "cpm",
        "currencyUSD",
        "dateTimeAsIso",
        "dateTimeFromNow",
        "bool",
        "bool_yes_no",
        "bool_on_off",
    ]
)
"""The part of the linter's list that a monitoring dashboard needs."""
QUERIED = frozenset({"singlestat", "graph", "table", "stat", "state-timeline", "timeseries"})
WITH_UNITS = frozenset({"stat", "singlestat", "graph", "table", "timeseries", "gauge"})
SQL = "grafana-postgresql-datasource"
SOURCES = frozenset({"$datasource", "${datasource}"})
QUERY_FUNCTION = re.compile(r"(label_names|label_values|metrics|query_result)\((.+)\)")
_NO_INSTANCE = "Recorded series and alerts are summed over replicas, so they have no label instance."


class Fault(NamedTuple):
    """A rule that is broken, and where; panel and target are empty for rules of the whole dashboard."""

    rule: str
    what: str
    panel: str = ""
    target: int | None = None


def faults(board: dict[str, Any]) -> Iterator[Fault]:
    """Every rule that a dashboard breaks, without regard to exceptions. Those about PromQL do not apply to SQL."""
    sql = any(variable.get("query") == SQL for variable in board["templating"]["list"])
    yield from () if sql else _templates(board)
    if board.get("editable"):
        yield Fault("uneditable-dashboard", "editable should be false")
    for panel in panels(board):
        yield from _panel(panel)
        if sql:
            continue
        for index, target in enumerate(panel.get("targets", ())):
            for rule, what in _target(target["expr"]):
                yield Fault(rule, f"{what}: {target['expr']}", panel["title"], index)


def panels(board: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Panels without rows, those inside of collapsed rows included."""
    for panel in board["panels"]:
        if panel["type"] == "row":
            yield from panel["panels"]
        else:
            yield panel


def parsed(expression: str) -> object:
    """The tree of an expression; Grafana's variables are filled in as the linter fills them in.

    Raises:
        ValueError: It is not PromQL.
    """
    return promql.parse(re.sub(r"\$\{?window\}?", "1h", re.sub(r"\$\{?__(rate_)?interval\}?", "5m", expression)))


def nodes(tree: object, above: tuple[object, ...] = ()) -> Iterator[tuple[object, tuple[object, ...]]]:
    """Every node with those above it."""
    yield tree, above
    for name in ("lhs", "rhs", "expr", "vector_selector", "param"):
        inner = getattr(tree, name, None)
        if inner is not None:
            yield from nodes(inner, (*above, tree))
    for inner in getattr(tree, "args", None) or ():
        yield from nodes(inner, (*above, tree))


def _templates(board: dict[str, Any]) -> Iterator[Fault]:
    variables = {variable["name"]: variable for variable in board["templating"]["list"]}
    sources = [variable for variable in variables.values() if variable["type"] == "datasource"]
    names = [(source["name"], source["label"], source["query"]) for source in sources]
    if names != [("datasource", "Data source", "prometheus")]:
        yield Fault("template-datasource-rule", f"data sources {names}")
    for name in ("job", "instance"):
        variable = variables.get(name, {})
        expected = {"type": "query", "label": name.capitalize(), "multi": True, "includeAll": True, "allValue": ".+"}
        wrong = [f"{key} should be {value}" for key, value in expected.items() if variable.get(key) != value]
        if variable.get("datasource", {}).get("uid") not in SOURCES:
            wrong.append("datasource should be $datasource")
        yield from (Fault(f"template-{name}-rule", what) for what in wrong)
    for variable in variables.values():
        if variable["type"] == "query":
            yield from _query_variable(variable)


def _query_variable(variable: dict[str, Any]) -> Iterator[Fault]:
    if variable["refresh"] != 2:
        yield Fault("template-on-time-change-reload-rule", f"{variable['name']}: refresh should be 2")
    call = QUERY_FUNCTION.fullmatch(variable["query"]["query"])
    if call is None:
        yield Fault("template-label-promql-rule", variable["name"])
        return
    try:
        parsed(call[2].rpartition(",")[0] if call[1] == "label_values" else call[2])
    except ValueError as error:
        yield Fault("template-label-promql-rule", f"{variable['name']}: {error}")


def _panel(panel: dict[str, Any]) -> Iterator[Fault]:
    title = panel["title"]
    if not title or not panel.get("description"):
        yield Fault("panel-title-description-rule", "title or description is missing", title)
    if panel["datasource"]["uid"] not in SOURCES:
        yield Fault("panel-datasource-rule", panel["datasource"]["uid"], title)
    if panel["type"] in QUERIED and not panel.get("targets"):
        yield Fault("panel-no-targets-rule", "no targets", title)
    if panel["type"] in WITH_UNITS and panel["fieldConfig"]["defaults"].get("unit") not in UNITS:
        yield Fault("panel-units-rule", str(panel["fieldConfig"]["defaults"].get("unit")), title)


def _target(expression: str) -> Iterator[tuple[str, str]]:
    try:
        tree = parsed(expression)
    except ValueError as error:
        yield "target-promql-rule", str(error)
        return
    for node, above in nodes(tree):
        if isinstance(node, promql.VectorSelector):
            for name in ("job", "instance"):
                matchers = [(str(m.op), m.value) for m in node.matchers.matchers if m.name == name]
                if matchers != [("MatchOp.Re", f"${name}")]:
                    yield f"target-{name}-rule", f'{node.name} needs {name}=~"${name}"'
            if (node.name or "").endswith("_total") and not _is_rate(above):
                yield "target-counter-agg-rule", f"{node.name} needs rate, irate or increase"
        is_rate = isinstance(node, promql.Call) and node.func.name in {"rate", "irate"}
        if is_rate and "$__rate_interval" not in expression:
            yield "target-rate-interval-rule", "rate needs $__rate_interval"


def _is_rate(above: tuple[Any, ...]) -> bool:
    """Whether a selector is the range of a rate."""
    calls = [node.func.name for node in above if isinstance(node, promql.Call)]
    ranged = any(isinstance(node, promql.MatrixSelector) for node in above)
    return ranged and bool(calls) and calls[-1] in {"rate", "irate", "increase"}


def exclusions(boards: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Content of `.lint` for generated dashboards: their targets that have no matcher for `instance`."""
    entries = [
        {"dashboard": board["title"], "panel": fault.panel, "targetIdx": fault.target}
        for board in boards
        for fault in dict.fromkeys(fault._replace(what="") for fault in faults(board))
        if fault.rule == "target-instance-rule"
    ]
    return {"exclusions": {"target-instance-rule": {"reason": _NO_INSTANCE, "entries": entries}}}


def left(board: dict[str, Any], excluded: dict[str, Any]) -> list[Fault]:
    """Rules that a dashboard breaks and `.lint` does not exclude."""
    rules = excluded.get("exclusions", {})
    return [fault for fault in faults(board) if not _is_excluded(fault, board["title"], rules)]


def _is_excluded(fault: Fault, title: str, rules: dict[str, Any]) -> bool:
    if fault.rule not in rules:
        return False
    entries = (rules[fault.rule] or {}).get("entries")
    place = {"dashboard": title, "panel": fault.panel, "targetIdx": fault.target}
    return not entries or any(all(place[key] == value for key, value in entry.items()) for entry in entries)


def main(files: list[str]) -> int:
    """Print what is wrong with the dashboards; the exit code."""
    wrong = 0
    for file in map(Path, files):
        lint = file.with_name(".lint")
        excluded = yaml.safe_load(lint.read_text(encoding="utf-8")) if lint.exists() else {}
        for fault in left(json.loads(file.read_text(encoding="utf-8")), excluded):
            print(f"{file.name}: {fault.rule}: {fault.panel}: {fault.what}")
            wrong += 1
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
