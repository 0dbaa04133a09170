"""Serves the page of a segment: its values by change and level, each beside what the whole route does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.routing import Route

from ragwatch import __version__
from ragwatch.errors import StoreError
from ragwatch.model.quantities import Quantity
from ragwatch.model.sample import OTHER
from ragwatch.ports import SegmentQuery, SegmentSums, Store
from ragwatch.statistics.segments import STEP, StepMeasure, period_of
from ragwatch.statistics.snapshot import Gauge, Snapshot
from ragwatch.web.pages.charts import Scale, TimeAxis, step_path
from ragwatch.web.pages.overview import routes_of, window_of, windows_of
from ragwatch.web.pages.pages import REFRESH, Site
from ragwatch.web.pages.segment_values import SIDE, Sort, Values
from ragwatch.web.replies.drift_replies import Segment, SegmentNames, SegmentPoint
from ragwatch.web.request_limit import MIB, RequestLimit
from ragwatch.web.samples import ParameterError, span_of
from ragwatch.web.scope import PageScope

RESPONSE_SIZE = 8 * MIB  # approximate memory for one response
MAX_ANSWERS, MAX_STEP_ANSWERS = 100_000, 20_000
"""The newest answers that are added up, by the database and one by one."""
PAGE_ROWS = 50


@dataclass(frozen=True, slots=True)
class SegmentRequest:
    """What to show; empty selects the first one. The quantity of retrieval steps is a `StepMeasure`."""

    route: str = ""
    judge: str = ""
    window: str = ""
    quantity: str = ""
    sort: Sort = Sort.CHANGE
    page: int = 1

    @classmethod
    def of(cls, parameters: Mapping[str, str]) -> SegmentRequest:
        """Parses the parameters of a request. Raises ParameterError: a parameter is unknown or invalid."""
        given = {name: value for name, value in parameters.items() if value and name != REFRESH}
        if unknown := set(given) - set(cls.__slots__):
            raise ParameterError(f"{min(unknown)}: is not known; use {', '.join(cls.__slots__)}")
        sort, page = given.pop("sort", Sort.CHANGE), given.pop("page", "1")
        if sort not in set(Sort):
            raise ParameterError(f"sort: {sort!r} is not known; use one of: {', '.join(Sort)}")
        if not (page.isascii() and page.isdecimal() and len(page) <= 6 and int(page) >= 1):
            raise ParameterError("page: not a whole number from 1")
        return cls(**given, sort=Sort(sort), page=int(page))


def segment_routes(site: Site) -> list[Route]:
    """Routes of the page of a segment and of its data as JSON. They have a thread of their own."""
    own = replace(site, limit=RequestLimit(threads=1, total=4 * RESPONSE_SIZE, seconds=10.0))

    def view(request: Request) -> tuple[Segment, int]:
        wanted, key = SegmentRequest.of(request.query_params), request.path_params["segment"]
        return segment(wanted, key, own.store, own.board.latest(), own.scope(), now=own.clock())

    def drawn_page(request: Request) -> tuple[Mapping[str, object], int]:
        shown, status = view(request)
        return page_of(shown), status

    def invalid(request: Request, why: str) -> Mapping[str, object]:
        key = request.path_params["segment"]
        shown, _ = segment(SegmentRequest(), key, None, own.board.latest(), own.scope(), now=own.clock())
        return page_of({**shown, "error": why})

    path = "/segments/{segment:path}"
    return [
        own.page(path, "segment.html", drawn_page, RESPONSE_SIZE, invalid=invalid, refreshes=True),
        own.reply(f"/api/v1{path}", view, RESPONSE_SIZE),
    ]


def page_of(shown: Segment) -> dict[str, object]:
    """The data with lines in SVG on one scale, and the addresses of other views of the page."""
    means = [point["mean"] for row in shown["values"] for point in row["points"] if point["mean"] is not None]
    scale, axis = Scale.around(means), TimeAxis(0, 2 * SIDE, 1)
    kept = {name: shown[name] for name in ("route", "judge", "window", "quantity", "sort")}

    def line(points: Sequence[SegmentPoint]) -> str:
        heights = (None if point["mean"] is None else scale.height(point["mean"]) for point in points)
        return step_path(axis, range(2 * SIDE), list(heights))

    def address(**changes: object) -> str:
        return f"?{urlencode({**kept, **changes}, errors='replace')}"

    depth = 1 + shown["segment"].count("/")
    return {**shown, "line": line, "scale": scale, "address": address, "root": "../" * depth, "side": SIDE}


def _chosen(
    wanted: SegmentRequest, key: str, snapshot: Snapshot | None, scope: PageScope, now: float
) -> tuple[SegmentNames, SegmentQuery]:
    """What a request selects, with what there is to select from; and what to read."""
    latest = snapshot or Snapshot(at=now)
    is_step = key == STEP
    quantities = list(map(str, StepMeasure)) if is_step else [*map(str, Quantity), *scope.criteria]
    routes, windows = routes_of(latest, scope), list(windows_of(snapshot, scope))
    judges = list(dict.fromkeys((*scope.judges, *latest.judges)))
    route, judge = _one_of("route", wanted.route, routes) or OTHER, _one_of("judge", wanted.judge, judges)
    window = _one_of("window", wanted.window, windows) or window_of(snapshot, scope, None)
    active = (labels for (gauge, labels), on in latest.gauges.items() if gauge is Gauge.SEGMENT_DRIFT_ALARM and on)
    alarms = sorted(labels for labels in active if labels[1:3] == (route, key))
    quantity = _one_of("quantity", wanted.quantity or (alarms[0][0] if alarms else ""), quantities)
    begin, until = period_of(latest.at, span_of(window) or 3600.0)
    query = SegmentQuery(
        key=key,
        quantity=quantity,
        route=route,
        judge=judge,
        version=latest.judges.get(judge, ("", ""))[1],
        since=2 * begin - until,
        until=until,
        steps=2 * SIDE,
        limit=MAX_STEP_ANSWERS if is_step else MAX_ANSWERS,
    )
    return {
        "version": __version__,
        "known": is_step or key in scope.segments,
        "segment": key,
        "segments": list(dict.fromkeys((*scope.segments, STEP))),
        "route": route,
        "routes": routes,
        "window": window,
        "windows": windows,
        "judge": judge,
        "judges": judges,
        "quantity": quantity,
        "quantities": quantities,
        "since": query.since,
        "begin": begin,
        "until": until,
        "alarms": [{"quantity": labels[0], "value": labels[3]} for labels in alarms],
    }, query


def segment(
    wanted: SegmentRequest, key: str, store: Store | None, snapshot: Snapshot | None, scope: PageScope, *, now: float
) -> tuple[Segment, int]:
    """Builds the data of the page, and the status of the response.

    Raises:
        ParameterError: There is no such route, judge, window or quantity.
    """
    names, query = _chosen(wanted, key, snapshot, scope, now)
    rows: list[SegmentSums] = []
    error, status = None, 200 if names["known"] else 404
    try:
        rows = store.segments(query) if store is not None and names["known"] else []
    except StoreError as failure:
        error, status = f"the store cannot be read: {failure}", 503
    limit = None if key == STEP else scope.threshold(query.quantity, query.route)
    values = Values(rows, query, limit, scope.confidence)
    pages = max(1, -(-len(values.values) // PAGE_ROWS))
    page = min(wanted.page, pages)
    shown = values.sorted(wanted.sort)[(page - 1) * PAGE_ROWS : page * PAGE_ROWS]
    alarmed = {alarm["value"] for alarm in names["alarms"]}
    return {
        **names,
        "error": error,
        "at": None if snapshot is None else snapshot.at,
        "now": now,
        "lower_is_better": values.low_is_good,
        "threshold": values.threshold,
        "sort": str(wanted.sort),
        "mean": values.whole_figure(),
        "complete": key == STEP or sum(row.answers for row in rows) < query.limit,
        "count": len(values.values),
        "page": page,
        "pages": pages,
        "values": [values.line(one, alarmed=alarmed) for one in shown],
    }, status


def _one_of(name: str, wanted: str, names: Sequence[str]) -> str:
    if wanted and wanted not in names:
        raise ParameterError(f"{name}: {wanted!r:.100} is not known; use one of: {', '.join(names)}")
    return wanted or next(iter(names), "")
