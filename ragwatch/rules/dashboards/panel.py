"""Defines one panel of a Grafana dashboard as data, and what decides which panels are shown.

Schema 41 (Grafana 11.6); versions from 10 on read it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from string import ascii_uppercase
from types import MappingProxyType
from typing import TypeAlias

from ragwatch.model.quantities import Quantity
from ragwatch.rules.dashboards.page import OVERVIEW, Page
from ragwatch.rules.dashboards.query import Json, Query, SqlQuery, Style
from ragwatch.rules.yaml_writer import JsonValue

PLACEHOLDER = "https://ragwatch.example.com"
"""URL of the pages where none is known: a reserved domain, which no reader takes for a real address."""


class Feature(StrEnum):
    """Part of a configuration without which some panels can never show anything."""

    PAID = "a judge that costs money per call"
    BUDGET = "a judge with a budget"
    REPEAT = "a judge that reads some answers twice"
    KNOWN_BAD = "a judge that is tested with known-bad answers"
    ANCHORS = "anchor samples"
    CANARIES = "canaries"
    MIXED = "a source that skips lines"
    JOINED = "a source of kind join"
    TRACES = "a source of kind otlp"
    EXPORT = "an export of scores"
    SEGMENTS = "segments"
    CRITERIA = "criteria"
    LABELS = "labels by people"


@dataclass(frozen=True, slots=True)
class BoardPlan:
    """Everything that the dashboards are built from. The defaults build every panel."""

    pages: str = PLACEHOLDER  # URL of the ragwatch pages as users reach them, without a trailing slash
    judge: str = "embedded"  # judge that is selected when a dashboard is opened
    window: str = "1h"  # window that is selected when a dashboard is opened, as Prometheus writes it
    quantities: frozenset[Quantity] = frozenset(Quantity)  # quantities that a configured judge can score
    features: frozenset[Feature] = frozenset(Feature)  # other parts of the configuration that panels need
    # of these, those that may be missing: their panels stand in closed rows, which query nothing
    optional: frozenset[Feature] = frozenset()

    def fills(self, needs: Quantity | Feature | None) -> bool:
        """Whether a panel that needs this can show anything."""
        return needs is None or needs in self.quantities or needs in self.features


Rows: TypeAlias = Sequence[tuple[str, Sequence["Panel"]]]

COLUMNS = 24


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel; its description says how to read it."""

    title: str
    description: str
    unit: str  # Grafana unit
    queries: Sequence[Query | SqlQuery]
    page: Page = OVERVIEW  # page of ragwatch behind it, for the data links
    kind: str = "timeseries"  # timeseries, stat or table
    width: int = 8  # of 24 columns
    height: int = 8
    options: Mapping[str, JsonValue] = field(default_factory=dict)  # Grafana options of the panel type
    custom: Mapping[str, JsonValue] = field(default_factory=dict)  # Grafana field options of the lines
    line: float | None = None  # value of a fixed threshold, drawn as a dashed line
    # what a configuration must have for the panel to be filled; None if nothing
    needs: Quantity | Feature | None = None
    columns: Sequence[str] = ()  # columns of a table that are not shown

    def json(self, number: int, left: int, top: int) -> Json:
        """Renders the panel as Grafana JSON at a grid position."""
        hidden: JsonValue = {"excludeByName": dict.fromkeys(self.columns, True)}
        return {
            "id": number,
            "type": self.kind,
            "title": self.title,
            "description": self.description,
            "datasource": self.queries[0].source,
            "gridPos": {"h": self.height, "w": self.width, "x": left, "y": top},
            "fieldConfig": {"defaults": self._defaults(), "overrides": [*self._overrides()]},
            "options": dict(self.options),
            "targets": [
                {"refId": reference, "datasource": query.source, **query.json(self.kind)}
                for reference, query in zip(ascii_uppercase, self.queries, strict=False)
            ],
            **({"transformations": [{"id": "organize", "options": hidden}]} if self.columns else {}),
        }

    def _defaults(self) -> Json:
        shared = set(self.queries[0].labels).intersection(*(query.labels for query in self.queries))
        custom = dict(self.custom)
        thresholds: Json = {}
        if self.line is not None:
            steps: list[JsonValue] = [{"color": "green", "value": None}, {"color": "red", "value": self.line}]
            thresholds = {"thresholds": {"mode": "absolute", "steps": steps}, "color": {"mode": "palette-classic"}}
            custom["thresholdsStyle"] = {"mode": "dashed"}
        scale: Json = {"min": 0, "max": 1} if self.unit == "percentunit" else {}
        links: list[JsonValue] = [self._link(shared)]
        return {"unit": self.unit, "custom": custom, "links": links, **thresholds, **scale}

    def _link(self, labels: Iterable[str]) -> Json:
        url = self.page.url(frozenset(labels), cells=self.kind == "table")
        return {"title": self.page.title, "url": url, "targetBlank": True}

    def _overrides(self) -> Iterable[Json]:
        for reference, query in zip(ascii_uppercase, self.queries, strict=False):
            properties = list(_DRAWN.get(query.style, ()))
            link = self._link(query.labels)
            if [link] != self._defaults()["links"]:
                properties.append({"id": "links", "value": [link]})
            if properties:
                yield {"matcher": {"id": "byFrameRefID", "options": reference}, "properties": properties}


def _fixed(colour: str) -> JsonValue:
    return {"id": "color", "value": {"mode": "fixed", "fixedColor": colour}}


def _dashed(*dash: int) -> JsonValue:
    return {"id": "custom.lineStyle", "value": {"fill": "dash", "dash": list(dash)}}


_DRAWN: Mapping[Style, Sequence[JsonValue]] = MappingProxyType(
    {
        Style.LIMIT: (_dashed(2, 6),),
        Style.THRESHOLD: (_dashed(8, 8), _fixed("red")),
        **{style: (_fixed(style),) for style in (Style.GOOD, Style.DOUBTFUL, Style.BAD, Style.UNKNOWN)},
    }
)
"""Grafana properties that draw a query in a style."""
LOGARITHMIC: Mapping[str, JsonValue] = MappingProxyType({"scaleDistribution": {"type": "log", "log": 10}})
TILES: Mapping[str, JsonValue] = MappingProxyType(
    {
        "graphMode": "none",
        "colorMode": "background",
        "textMode": "value_and_name",
        "reduceOptions": {"calcs": ["lastNotNull"]},
    }
)


def placed(rows: Rows, plan: BoardPlan) -> list[JsonValue]:
    """Lays out rows of panels without those that can never be filled.

    Panels that may stay empty stand in a closed row of their own below the others.
    """
    groups: list[tuple[str, Sequence[Panel], bool]] = []
    for title, panels in rows:
        filled = [panel for panel in panels if plan.fills(panel.needs)]
        optional = [panel for panel in filled if panel.needs in plan.optional]
        needs = ", ".join(dict.fromkeys(str(panel.needs) for panel in optional))
        groups.append((title, [panel for panel in filled if panel not in optional], False))
        groups.append((f"{title}: with {needs}", optional, True))
    return laid_out(groups)


def laid_out(groups: Iterable[tuple[str, Sequence[Panel], bool]]) -> list[JsonValue]:
    """Lays out groups (heading, panels, whether their row is closed) from top to bottom without gaps."""
    placed_json: list[JsonValue] = []
    number, top = 1, 0
    for title, panels, closed in groups:
        if not panels:
            continue
        cells, height = _grid(panels, number + 1, top + 1)
        placed_json.append(
            {
                "id": number,
                "type": "row",
                "title": title,
                "collapsed": closed,
                "gridPos": {"h": 1, "w": COLUMNS, "x": 0, "y": top},
                "panels": cells if closed else [],
            }
        )
        placed_json += [] if closed else cells
        number, top = number + 1 + len(cells), top + 1 + (0 if closed else height)
    return placed_json


def _grid(panels: Iterable[Panel], number: int, top: int) -> tuple[list[JsonValue], int]:
    """Panels from left to right, in lines, from a number and a position on; and the height of all."""
    cells: list[JsonValue] = []
    first, left, height = top, 0, 0
    for panel in panels:
        if left + panel.width > COLUMNS:
            top, left, height = top + height, 0, 0
        cells.append(panel.json(number + len(cells), left, top))
        left, height = left + panel.width, max(height, panel.height)
    return cells, top + height - first
