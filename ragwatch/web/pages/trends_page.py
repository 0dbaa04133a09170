"""Serves the page of trends: every quantity of a route, its drift evidence, and the figures of canaries, over time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NotRequired, cast

from starlette.requests import Request
from starlette.routing import Route

from ragwatch import __version__
from ragwatch.errors import StoreError
from ragwatch.model.estimate import Addends, Estimate
from ragwatch.model.quantities import LOW_IS_GOOD, Quantity
from ragwatch.ports import RecordedEvent, Store, TrendQuery, TrendSums
from ragwatch.statistics.snapshot import Gauge, Snapshot
from ragwatch.statistics.trends import (
    RANGES,
    Range,
    TrendKind,
    estimate_of,
    evidence_level,
    evidence_words,
    mean_of,
    points,
    steps_of,
)
from ragwatch.web.json_values import check_names, chosen
from ragwatch.web.pages.canaries import suites_of
from ragwatch.web.pages.charts import Line, TimeAxis, bars, evidence_chart, marks, score_chart
from ragwatch.web.pages.figure_replies import Chart, Mean, TrendPoint, Trends
from ragwatch.web.pages.overview import routes_of
from ragwatch.web.pages.pages import Site, event_line
from ragwatch.web.pages.pages import clock as instant
from ragwatch.web.request_limit import MIB
from ragwatch.web.scope import PageScope

RESPONSE_SIZE = 4 * MIB  # approximate memory for one response
DEFAULT_RANGE = "7d"
MAX_LISTED_EVENTS = 50
_LOW_IS_GOOD = LOW_IS_GOOD | {"degraded"}
_NO_EVIDENCE = "no evidence is stored"
_EVIDENCE_GAUGES = {
    TrendKind.DRIFT: (Gauge.DRIFT_EVIDENCE, Gauge.DRIFT_THRESHOLD),
    TrendKind.TRAFFIC_DRIFT: (Gauge.TRAFFIC_DRIFT_EVIDENCE, Gauge.TRAFFIC_DRIFT_THRESHOLD),
}


@dataclass(frozen=True, slots=True)
class TrendRequest:
    """What to show; None selects the first one."""

    route: str | None = None
    suite: str | None = None
    judge: str | None = None
    range: str = DEFAULT_RANGE

    @classmethod
    def of(cls, parameters: Mapping[str, str]) -> TrendRequest:
        """Parses the parameters of a request. Raises ParameterError: a parameter is unknown or invalid."""
        check_names(parameters, cls.__slots__)
        wanted = cls(**{name: value for name, value in parameters.items() if value})
        chosen("range", wanted.range, RANGES)
        return wanted


def trend_routes(site: Site) -> list[Route]:
    """Routes of the page of trends and of its data as JSON."""

    def view(request: Request) -> tuple[Trends, int]:
        wanted = TrendRequest.of(request.query_params)
        return trends(wanted, site.store, site.board.latest(), site.scope(), now=site.clock())

    def data(request: Request) -> tuple[Mapping[str, object], int]:
        shown, status = view(request)
        fields = Chart.__annotations__
        charts = [{name: value for name, value in chart.items() if name in fields} for chart in shown["charts"]]
        return {**shown, "charts": charts}, status

    def invalid(_: Request, why: str) -> Trends:
        return {**trends(TrendRequest(), None, None, PageScope(), now=site.clock())[0], "error": why}

    return [
        site.page("/trends", "trends.html", view, RESPONSE_SIZE, invalid=invalid),
        site.reply("/api/v1/trends", data, RESPONSE_SIZE),
    ]


class DrawnChart(Chart):
    """A chart with its shapes in SVG, which are no part of the reply."""

    shapes: Mapping[str, object]
    columns: Sequence[Mapping[str, object]]
    labels: Sequence[str]
    marks: NotRequired[Sequence[Mapping[str, object]]]


def trends(
    wanted: TrendRequest, store: Store | None, snapshot: Snapshot | None, scope: PageScope, *, now: float
) -> tuple[Trends, int]:
    """Builds the data of the page, and the status of the response."""
    shown = snapshot or Snapshot(at=now)
    routes, suites = routes_of(shown, scope), list(suites_of(scope, snapshot))
    route = None if wanted.suite is not None else wanted.route or next(iter(routes), "other")
    judges = list(dict.fromkeys((*scope.judges, *shown.judges)))
    builder = _Trends(store, shown, scope, RANGES[wanted.range], now)
    charts: list[DrawnChart] = []
    events: list[RecordedEvent] = []
    error, status = None, 200 if wanted.suite in (None, *suites) and route in (None, *routes) else 404
    judge = wanted.judge or next(iter(judges), "")
    try:
        events = builder.events()
        charts = builder.of_suite(wanted.suite) if wanted.suite is not None else builder.of_route(route or "", judge)
    except StoreError as failure:
        error, status = f"the store cannot be read: {failure}", 503
    for chart in charts:
        place = {"suite": wanted.suite} if wanted.suite is not None else {"route": route or "", "judge": judge}
        chart["marks"] = marks(builder.axis, events, place)
    return {
        "version": __version__,
        "now": now,
        "error": error,
        "route": route,
        "suite": wanted.suite,
        "judge": judge if route is not None else None,
        "range": wanted.range,
        "since": builder.axis.since,
        "until": builder.axis.until,
        "step": builder.axis.step,
        "routes": routes,
        "suites": suites,
        "judges": judges,
        "ranges": list(RANGES),
        "charts": [chart for chart in charts if chart["n"]],
        "silent": [str(chart["name"]) for chart in charts if not chart["n"]],
        "events": [event_line(event) for event in reversed(events[-MAX_LISTED_EVENTS:])],
    }, status


class _Trends:
    def __init__(self, store: Store | None, snapshot: Snapshot, scope: PageScope, shown: Range, now: float) -> None:
        self._store = store
        self._snapshot = snapshot
        self._scope = scope
        self._range = shown
        self.axis = TimeAxis(steps_of(shown, now)[0], math.floor(now) + 1, shown.step)

    def events(self) -> list[RecordedEvent]:
        return [] if self._store is None else self._store.events(self.axis.since)

    def of_route(self, route: str, judge: str) -> list[DrawnChart]:
        """Charts of the quantities of a route by one judge, each followed by its drift evidence; then of traffic."""
        by_name = _by_name(row for row in self._sums(TrendKind.SCORE, route) if row.series.judge == judge)
        names = list(dict.fromkeys((*map(str, Quantity), *by_name)))
        evidence = self._evidence(TrendKind.DRIFT, route)
        charts = []
        for name in names:
            version = self._snapshot.judges.get(judge, ("", ""))[1]
            threshold = self._scope.threshold(name, route)
            charts.append(self._scores(name, by_name.get(name, {}), version, threshold, band=True))
            charts += [chart for chart in evidence if chart["of"] == name]
        charts += [chart for chart in evidence if chart["of"] not in names]
        return [*charts, *self._evidence(TrendKind.TRAFFIC_DRIFT, route)]

    def of_suite(self, suite: str) -> list[DrawnChart]:
        by_name = _by_name(self._sums(TrendKind.CANARY, suite))
        return [self._scores(name, by_name[name], "", None, band=False) for name in sorted(by_name)]

    def _query(self, kind: TrendKind, place: str) -> TrendQuery:
        return TrendQuery(kind, place, self._range.span, self._range.step, since=self.axis.since, until=self.axis.until)

    def _sums(self, kind: TrendKind, place: str) -> list[TrendSums]:
        return [] if self._store is None else self._store.trends(self._query(kind, place))

    def _scores(
        self, name: str, versions: dict[str, dict[int, Addends]], current: str, threshold: float | None, *, band: bool
    ) -> DrawnChart:
        """The chart of one quantity or figure, from sums by start, by version of the judge; a `band` is intervals."""
        confidence = self._scope.confidence if band else None
        newest = current if current in versions else max(versions, key=lambda one: max(versions[one]), default="")
        lines = [
            Line(version, points(versions[version], self.axis.starts, confidence), version == newest)
            for version in sorted(versions, key=lambda one: max(versions[one]))
        ]
        sums = Addends.total([versions[newest][start] for start in sorted(versions[newest])]) if versions else Addends()
        whole = (mean_of(sums) if confidence is None else estimate_of(sums, confidence)) if sums.n else None
        described = partial(self._described, unit="answers" if band else "runs", band=band)
        return {
            "kind": "score" if band else "canary",
            "name": name,
            "of": name,
            "lower_is_better": name in _LOW_IS_GOOD,
            "threshold": threshold,
            "n": sum(one.n for line in versions.values() for one in line.values()),
            "mean": _figures(whole, band=band),
            "versions": [line.name for line in lines],
            "points": [
                cast("TrendPoint", {"start": point.start, "version": line.name, **_figures(point.estimate, band=band)})
                for line in lines
                for point in line.points
                if point.estimate is not None
            ],
            "shapes": score_chart(self.axis, lines, threshold, band=band),
            "columns": bars(self.axis, [described(step, lines) for step in range(len(self.axis.starts))]),
            "labels": self.axis.labels(),
        }

    def _described(self, step: int, lines: Sequence[Line], *, unit: str, band: bool) -> tuple[int, str]:
        """Number of answers in a step, and what the chart says about it."""
        start = self.axis.starts[step]
        estimates = [one for line in lines if (one := line.points[step].estimate) is not None]
        count = sum(one.n for one in estimates)
        if not count:
            return 0, f"{instant(start)}: no {unit}"
        means = ", ".join(
            f"{one.value:.3f} ({one.low:.3f}–{one.high:.3f})" if band else f"{one.value:.3f}" for one in estimates
        )
        return count, f"{instant(start)}: {means} from {count:,} {unit}"

    def _evidence(self, kind: TrendKind, route: str) -> list[DrawnChart]:
        """Charts of the drift evidence on a route: the peaks of each bucket, and the present."""
        if self._store is None:
            return []
        values: dict[str, dict[int, float]] = {}
        thresholds: dict[str, float | None] = {}
        for peak in self._store.peaks(self._query(kind, route)):
            values.setdefault(peak.series.name, {})[peak.start] = peak.value
            thresholds[peak.series.name] = peak.threshold
        evidence, threshold = _EVIDENCE_GAUGES[kind]
        present: dict[str, float] = {}
        for (gauge, labels), value in self._snapshot.gauges.items():
            if gauge is evidence and labels[1] == route:
                name, last = labels[0], self.axis.starts[-1]
                present[name] = value
                stored = values.setdefault(name, {})
                stored[last] = max(value, stored.get(last, value))
                thresholds[name] = self._snapshot.gauges.get((threshold, labels), thresholds.get(name))
        charts = (
            self._evidence_chart(name, kind, values[name], limit, present.get(name))
            for name in values
            if (limit := thresholds.get(name))
        )
        return sorted(charts, key=lambda chart: str(chart["of"]))

    def _evidence_chart(
        self, name: str, kind: TrendKind, values: dict[int, float], threshold: float, present: float | None
    ) -> DrawnChart:
        highest = max(values.values())
        words = {start: evidence_words(value, threshold) for start, value in values.items()}
        texts = [(0, f"{instant(start)}: {words.get(start, _NO_EVIDENCE)}") for start in self.axis.starts]
        return {
            "kind": str(kind),
            "name": f"{name} drift evidence",
            "of": name,
            "n": len(values),
            "threshold": threshold,
            "present": present,
            "highest": highest,
            "level": str(evidence_level(highest, threshold)),
            "words": None if present is None else evidence_words(present, threshold),
            "highest_words": evidence_words(highest, threshold),
            "points": [{"start": start, "peak": values[start]} for start in sorted(values)],
            "shapes": evidence_chart(self.axis, values, threshold),
            "columns": bars(self.axis, texts),
            "labels": self.axis.labels(),
        }


def _by_name(rows: Iterable[TrendSums]) -> dict[str, dict[str, dict[int, Addends]]]:
    """Sums by start, by version of the judge, by name of the series."""
    by_name: dict[str, dict[str, dict[int, Addends]]] = {}
    for (_, _, name, _, version), start, sums in rows:
        by_name.setdefault(name, {}).setdefault(version, {})[start] = sums
    return by_name


def _figures(estimate: Estimate | None, *, band: bool) -> Mean:
    if estimate is None:
        return {"value": None, "low": None, "high": None, "n": 0}
    low, high = (estimate.low, estimate.high) if band else (None, None)
    return {"value": estimate.value, "low": low, "high": high, "n": estimate.n}
