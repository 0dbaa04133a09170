"""Dashboards: `ragwatch rules --dashboards`, and every query as PromQL over two deployments that look alike."""

import json
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from support.command_line import command
from support.programs import expects, must_hold

from ragwatch.commands.rules import board_plan_of, plan_of
from ragwatch.config import parse
from ragwatch.exporter.catalogue import MetricType, with_criteria
from ragwatch.model.quantities import Criterion, Quantity
from ragwatch.rules import Links, RulePlan, prometheus
from ragwatch.rules.dashboards import PLACEHOLDER, BoardPlan, Feature, boards
from tools.dashboard_linter import panels

MINIMAL = {"sources": [{"kind": "tail", "name": "app", "path": "/var/log/x"}]}
EXAMPLE = Path(__file__).parents[3] / "config.example.yaml"
LLM = {"name": "claude", "kind": "claude", "model": "claude-haiku-5-5", "api_key": "x"}
# Every mean below is 0.5.
THRESHOLDS = {Quantity.FAITHFULNESS: 0.4, Quantity.ANSWER_RELEVANCY: 0.51, Quantity.CONTEXT_PRECISION: 0.9}
COLOURS = {"Faithfulness": "green", "Answer relevancy": "orange"}
COLOURS |= {"Context precision": "red", "Top ranked ignored": "blue"}
POLITE = Criterion("polite", "Is the tone of the answer polite?")
LINKS = Links("https://r", "https://d", "https://p")
WHOLE: Any = {"windows": (1800.0, 3600.0), "segments": True, "criteria": (POLITE.quantity,)}
PLAN = RulePlan("embedded", "ragwatch", LINKS, THRESHOLDS, **WHOLE)
# Of a counter in ten minutes; of other counters 1.
GROWTH = {"weighted_score": 0.5, "squared_weight_score": 0.5, "squared_weight_squared_score": 0.45}
VALUES = {
    "route": ("search", "support"),
    "judge": ("embedded",),
    "suite": ("docs",),
    "kind": ("release", "judge", "canary"),
    "stage": ("none", "retrieval"),
    "window": ("1h",),
    "corrected": ("yes",),
    "quantity": ("faithfulness", "answer_relevancy", "context_precision"),
}
OF_CANARIES = {"Canaries at the last run", "Recall", "Precision", "F1", "NDCG", "Reciprocal rank", "Health"}
OF_SOURCES = {"Skipped lines", "Parts", "Traced requests", "Traces without texts", "Scores sent", "Scores waiting"}
OF_CRITERIA = {"Own criteria", "Own criteria by route"}
OF_SEGMENTS = {
    *(f"{name} by segment" for name in ("Faithfulness", "Answer relevancy", "Context precision")),
    "Effective sample size by segment",
}


def plan(**parts: Any) -> BoardPlan:
    """The plan of the dashboards for a configuration."""
    config = parse({**MINIMAL, **parts}, folder=Path())
    return board_plan_of(config, plan_of(config))


def titles(shown: BoardPlan) -> set[str]:
    """Titles of all panels."""
    found: Any = boards(shown)
    return {panel["title"] for board in found.values() for panel in panels(board)}


def test_the_command_writes_dashboards(tmp_path: Path) -> None:
    """With the URL and the judge of the configuration; the rules only where they are asked for as well."""
    config = tmp_path / "ragwatch.yaml"
    web = {"external_url": "https://rag.example.org/watch/"}
    config.write_text(json.dumps({**MINIMAL, "web": web, "judges": [{"name": "reader", "kind": "lexical"}]}))
    places = [tmp_path / name for name in ("boards", "more", "rules")]
    shown = command("rules", "--config", config, "--dashboards", places[0])
    both = command("rules", "--config", config, "--dashboards", places[1], "--out", places[2])
    assert (shown.return_value, shown.stdout, both.return_value) == (0, "", 0)
    assert "external_url" not in shown.stderr
    written = {path.name: path.read_text() for path in places[0].iterdir()}
    assert len(written) == 5
    assert written == {path.name: path.read_text() for path in places[1].iterdir()}
    assert len(list(places[2].iterdir())) == 2
    for text in written.values():
        variables = {each["name"]: each for each in json.loads(text)["templating"]["list"]}
        assert variables["pages"]["query"] == "https://rag.example.org/watch"
        assert variables["judge"]["current"]["value"] == "reader"


def test_a_missing_url_is_told(tmp_path: Path) -> None:
    """Links then lead to a reserved domain, never to the machine of whoever opens them."""
    shown = command("rules", "--config", EXAMPLE, "--dashboards", tmp_path)
    assert f"web.external_url is not set: links of the dashboards lead to {PLACEHOLDER}" in shown.stderr
    assert PLACEHOLDER in (tmp_path / "overview.json").read_text()


def test_panels_of_sources_and_of_the_export() -> None:
    """Each is there for the kind of source that fills it, or for an export of scores."""
    tail = {"kind": "tail", "name": "app", "path": "app.jsonl"}
    join = {"kind": "join", "name": "app", "by": "id", "of": [{**tail, "name": "one"}, {**tail, "name": "two"}]}
    export = {"otlp": {"endpoint": "http://phoenix:6006"}}
    told: list[tuple[dict[str, Any], set[str]]] = [
        (tail, set()),
        ({**tail, "where": "a"}, {"Skipped lines"}),
        ({**tail, "prefix": "auto"}, {"Skipped lines"}),
        (join, {"Parts"}),
        ({"kind": "otlp", "name": "traces"}, {"Traced requests", "Traces without texts"}),
    ]
    for source, shown in told:
        assert titles(plan(sources=[source])) & OF_SOURCES == shown
    assert titles(plan(export=export)) & OF_SOURCES == {"Scores sent", "Scores waiting"}


def test_panels_of_segments_and_criteria() -> None:
    """They are there where a configuration has some."""
    polite = {"name": "polite", "question": "Is the tone of the answer polite?"}
    shown = (plan(), plan(segments={"release": ["v1", "v2"]}), plan(criteria=[polite], judges=[LLM]))
    assert [titles(one) & (OF_SEGMENTS | OF_CRITERIA) for one in shown] == [set(), OF_SEGMENTS, OF_CRITERIA]


def test_panels_that_cannot_be_filled_are_left_out() -> None:
    """Those of quantities that no judge scores, of cost without an LLM, of self-tests that are off."""
    everything, embedded = titles(BoardPlan()) - OF_SOURCES - OF_SEGMENTS - OF_CRITERIA, titles(plan())
    assert everything - embedded == {
        *OF_CANARIES,
        *("Contradiction", "Need recall", "Cost per day", "Tokens", "Budget remaining"),
        *("Repeatability", "Known-bad accepted", "Padding preferred", "Changed verdicts"),
    }
    lexical = {"name": "embedded", "kind": "lexical"}
    paid = plan(judges=[lexical, {**LLM, "repeat": 0.1, "known_bad": 0.1, "budget": {"usd_per_day": 5.0}}])
    assert everything - titles(paid) == {"Changed verdicts", *OF_CANARIES}
    assert "Faithfulness" not in titles(plan(judges=[{**lexical, "quantities": ["context_precision"]}]))
    assert "Contradiction" in titles(plan(judges=[{"name": "reader", "kind": "local"}]))


def test_windows_and_judges_of_alerts_are_selected() -> None:
    """The window and the judge that page are those that a dashboard opens with."""
    other = {"name": "second", "kind": "lexical"}
    shown = plan(judges=[{"name": "first", "kind": "lexical"}, other], alerts={"judge": "second", "window": "6h"})
    assert (shown.judge, shown.window, shown.features) == ("second", "6h", frozenset({Feature.LABELS}))


def _labels(names: tuple[str, ...]) -> Iterator[str]:
    """Label sets of two deployments that differ in their cluster only."""
    for cluster, *values in product(("east", "west"), *(VALUES.get(name, ("a",)) for name in names)):
        inner = ",".join(f'{name}="{value}"' for name, value in zip(names, values, strict=True))
        yield f'job="ragwatch",instance="{cluster}",cluster="{cluster}",namespace="rag"{"," * bool(inner)}{inner}'


def _input() -> Iterator[dict[str, str]]:
    """Two hours of every series of the catalogue, and of alerts."""
    for row in with_criteria((POLITE,)):
        growth = next((by for end, by in GROWTH.items() if row.name.endswith(f"_{end}_total")), 1.0)
        values = f"0+{growth}x12" if row.kind in {MetricType.COUNTER, MetricType.HISTOGRAM} else "0.5x12"
        if row.kind is MetricType.HISTOGRAM:
            for labels, bound in product(_labels(row.labels), ("0.3", "0.6", "0.9", "+Inf")):
                yield {"series": f'{row.name}_bucket{{{labels},le="{bound}"}}', "values": values}
            yield from ({"series": f"{row.name}_count{{{labels}}}", "values": values} for labels in _labels(row.labels))
        else:
            yield from ({"series": f"{row.name}{{{labels}}}", "values": values} for labels in _labels(row.labels))
    for labels in _labels(("route",)):
        alert = 'alertname="RagwatchDown",alertstate="firing",severity="critical"'
        yield {"series": f"ALERTS{{{alert},{labels}}}", "values": "1x12"}


def _filled(expression: str) -> str:
    """An expression with the selection of somebody who looks at one namespace in all clusters."""
    selected = {"__rate_interval": "30m", "job": "ragwatch", "instance": ".+", "cluster": ".*", "namespace": "rag"}
    selected |= {"route": "search|support", "judge": "embedded", "window": "1h"}
    return re.sub(r"\$\{?(\w+)\}?", lambda found: selected[found[1]], expression)


def _asked() -> Iterator[tuple[str, float]]:
    """Expressions that tell how many lines a query has, and expected values; -1 for two lines of one legend."""
    found: Any = boards(BoardPlan())
    for board in found.values():
        for panel in (panel for panel in board["panels"] if panel["type"] != "row"):
            colour = COLOURS.get(panel["title"].removesuffix(" now")) if panel["type"] == "stat" else None
            colours = [
                each["properties"][0]["value"]["fixedColor"] for each in panel["fieldConfig"]["overrides"] if colour
            ]
            for index, target in enumerate(panel["targets"]):
                expression = _filled(target["expr"])
                legend = ",".join(re.findall(r"{{(\w+)}}", target["legendFormat"]))
                unique = f"count({expression}) == count(count by ({legend}) ({expression}))"
                clusters = f"count(count by (cluster) ({expression} and on () ({unique}))) or vector(0)"
                is_threshold = "threshold" in target["legendFormat"]
                if colour is not None:
                    yield clusters, 2.0 * (colours[index] == colour)
                elif is_threshold:
                    has = any(f'quantity="{quantity}"' in expression for quantity in THRESHOLDS)
                    yield f"count({expression}) > bool 0 or vector(0)", float(has)
                else:
                    yield clusters, 2.0
        for each in board["annotations"]["list"]:
            if "expr" in each:
                yield f"count(count by (cluster) ({_filled(each['expr'])}))", 2.0


@pytest.mark.uncounted
def test_every_query_tells_two_deployments_apart(tmp_path: Path) -> None:
    """Each finds both, draws no two lines with the same legend, and colours means by their thresholds."""
    asked = list(dict.fromkeys(_asked()))
    assert len(asked) > 90
    test = {
        "interval": "10m",
        "input_series": list(_input()),
        "promql_expr_test": [expects(expression, "110m", value) for expression, value in asked],
    }
    must_hold(tmp_path, prometheus(PLAN)["ragwatch-recording.yaml"], test, evaluation_interval="10m")


def test_panels_that_may_stay_empty_stand_in_closed_rows() -> None:
    """What a configuration may lack is not shown as an empty panel; everything else is open."""
    some = frozenset({Feature.CANARIES, Feature.LABELS})
    shown: Any = boards(BoardPlan(optional=some))
    closed = {
        panel["title"]: row["title"]
        for board in shown.values()
        for row in board["panels"]
        if row["type"] == "row" and row["collapsed"]
        for panel in row["panels"]
    }
    assert closed["Agreement with people"] == "Reliability: with labels by people"
    assert closed["Recall"] == closed["Canaries at the last run"] == "Canaries (known queries): with canaries"
    assert set(closed) < titles(BoardPlan()) == titles(BoardPlan(optional=some))
    open_ones: Any = boards(BoardPlan())
    assert not any(row["collapsed"] for board in open_ones.values() for row in board["panels"] if row["type"] == "row")


def test_change_and_level_stand_side_by_side() -> None:
    """In one line, each half as wide as the board."""
    board: Any = boards(BoardPlan())["overview.json"]
    places = {panel["title"]: panel["gridPos"] for panel in panels(board)}
    change, level = places["Faithfulness"], places["Faithfulness: level"]
    assert (change["y"], change["x"], change["w"]) == (level["y"], 0, level["x"])
