"""Defines one panel of a Grafana dashboard as data. Schema 41 (Grafana 11.6); newer versions migrate it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ragwatch.rules.yaml_writer import JsonValue

Json: TypeAlias = dict[str, JsonValue]

SOURCE: Mapping[str, JsonValue] = {"type": "prometheus", "uid": "$datasource"}
COLUMNS = 24
JOB = 'job=~"$job"'
ROUTE = f'{JOB},route=~"$route"'
JUDGED = f'{ROUTE},judge="$judge"'
RATE = "$__rate_interval"


@dataclass(frozen=True, slots=True)
class Query:
    """A PromQL expression and the legend of its lines."""

    expr: str
    legend: str


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel.

    Attributes:
        title: Title.
        description: How to read it.
        unit: Grafana unit.
        queries: Queries.
        kind: timeseries, stat, table or heatmap.
        width: Of 24 columns.
        bands: Pairs of legends (upper, lower) with the area between them shaded.
        marks: Legends of reference lines, such as thresholds, drawn dashed.
        options: Grafana options of the panel type.
        custom: Grafana field options of the lines.
    """

    title: str
    description: str
    unit: str
    queries: Sequence[Query]
    kind: str = "timeseries"
    width: int = 8
    height: int = 8
    bands: Sequence[tuple[str, str]] = ()
    marks: Sequence[str] = ()
    options: Mapping[str, JsonValue] = field(default_factory=dict)
    custom: Mapping[str, JsonValue] = field(default_factory=dict)

    def json(self, number: int, left: int, top: int) -> Json:
        """Renders the panel as Grafana JSON at a grid position."""
        return {
            "id": number,
            "type": self.kind,
            "title": self.title,
            "description": self.description,
            "datasource": SOURCE,
            "gridPos": {"h": self.height, "w": self.width, "x": left, "y": top},
            "fieldConfig": {"defaults": self._defaults(), "overrides": [*self._overrides()]},
            "options": self.options,
            "targets": [self._target(index, query) for index, query in enumerate(self.queries)],
        }

    def _defaults(self) -> Json:
        defaults: Json = {"unit": self.unit, "custom": dict(self.custom)}
        return {**defaults, "min": 0, "max": 1} if self.unit == "percentunit" else defaults

    def _overrides(self) -> Iterable[Json]:
        for upper, lower in self.bands:
            shade: list[JsonValue] = [
                {"id": "custom.fillBelowTo", "value": lower},
                {"id": "custom.fillOpacity", "value": 15},
            ]
            for name, properties in ((upper, shade), (lower, [])):
                edge: list[JsonValue] = [{"id": "custom.lineWidth", "value": 0}]
                yield {"matcher": {"id": "byName", "options": name}, "properties": [*edge, *properties]}
        for name in self.marks:
            dashed: Json = {"id": "custom.lineStyle", "value": {"fill": "dash", "dash": [8, 8]}}
            red: Json = {"id": "color", "value": {"mode": "fixed", "fixedColor": "red"}}
            yield {"matcher": {"id": "byName", "options": name}, "properties": [dashed, red]}

    def _target(self, index: int, query: Query) -> Json:
        shape: Json = {"format": "heatmap"} if self.kind == "heatmap" else {}
        instant: Json = {"instant": True, "range": False} if self.kind in {"table", "stat"} else {}  # the present value
        instant = {**instant, "format": "table"} if self.kind == "table" else instant
        return {
            "refId": chr(ord("A") + index),
            "datasource": SOURCE,
            "expr": query.expr,
            "legendFormat": query.legend,
            **shape,
            **instant,
        }


def stacked() -> Mapping[str, JsonValue]:
    """Field options for stacked areas."""
    return {"fillOpacity": 40, "stacking": {"mode": "normal", "group": "A"}}


def placed(rows: Iterable[tuple[str, Sequence[Panel]]]) -> list[JsonValue]:
    """Lays out rows of panels from top to bottom without gaps."""
    panels_json: list[JsonValue] = []
    top = 0
    for title, panels in rows:
        panels_json.append(_row(title, len(panels_json) + 1, top))
        top, left, height = top + 1, 0, 0
        for panel in panels:
            if left + panel.width > COLUMNS:
                top, left, height = top + height, 0, 0
            panels_json.append(panel.json(len(panels_json) + 1, left, top))
            left, height = left + panel.width, max(height, panel.height)
        top += height
    return panels_json


def _row(title: str, number: int, top: int) -> Json:
    place: Json = {"h": 1, "w": COLUMNS, "x": 0, "y": top}
    return {"id": number, "type": "row", "title": title, "collapsed": False, "gridPos": place, "panels": []}


def line(title: str, description: str, unit: str, expr: str, legend: str, *, width: int = 8) -> Panel:
    """Builds a panel with one query."""
    return Panel(title, description, unit, (Query(expr, legend),), width=width)


def quality(title: str, quantity: str, description: str, *, width: int = 12) -> Panel:
    """Builds a panel of a quantity: mean with confidence band, mean per route, threshold."""
    chosen = f'{JOB},judge="$judge",quantity="{quantity}",window="$window"'
    return Panel(
        title,
        f"{description} The band is the confidence interval over all routes, valid for a single look.",
        "percentunit",
        (
            Query(f"all:ragwatch_quality:mean{{{chosen}}}", "all routes"),
            Query(f"all:ragwatch_quality:high{{{chosen}}}", "upper end"),
            Query(f"all:ragwatch_quality:low{{{chosen}}}", "lower end"),
            Query(f'route:ragwatch_quality:mean{{{chosen},route=~"$route"}}', "{{route}}"),
            Query(f'max(ragwatch:quality_threshold{{{JOB},quantity="{quantity}"}})', "threshold"),
        ),
        width=width,
        bands=(("upper end", "lower end"),),
        marks=("threshold",),
    )


def rate(counter: str, by: str, chosen: str = JOB) -> str:
    """Builds the per-second rate of a counter, summed by labels."""
    return f"sum by ({by}) (rate({counter}{{{chosen}}}[{RATE}]))"


def spread(histogram: str, chosen: str, share: float) -> str:
    """Builds a quantile of a histogram."""
    return f"histogram_quantile({share}, {rate(f'{histogram}_bucket', 'le', chosen)})"
