"""Serves the page of a segment: its values by change and level, each beside what the whole route does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.routing import Route

from ragwatch import __version__
from ragwatch.core.sample import OTHER
from ragwatch.core.segments import STEP, StepMeasure, period_of
from ragwatch.core.snapshot import Gauge, Snapshot
from ragwatch.errors import StoreError
from ragwatch.model.quantities import Quantity
from ragwatch.ports import SegmentQuery, SegmentSums, Store
from ragwatch.web.charts import Scale, TimeAxis, step_path
from ragwatch.web.figure_replies import Segment, SegmentPoint
from ragwatch.web.overview import routes_of, window_of, windows_of
from ragwatch.web.pages import REFRESH, Site
from ragwatch.web.request_limit import MIB, RequestLimit
from ragwatch.web.samples import ParameterError, span_of
from ragwatch.web.scope import PageScope
from ragwatch.web.segment_values import SIDE, Sort, Values

RESPONSE_SIZE = 8 * MIB  # approximate memory for one response
MAX_ANSWERS, MAX_STEP_ANSWERS = 100_000, 20_000
"""The newest answers that are added up, by the database and one by one."""
PAGE_ROWS = 50
_NOT_FOUND, _SERVICE_UNAVAILABLE = 404, 503


@dataclass(frozen=True, slots=True)
class SegmentRequest:
    """What to show; empty selects the first one.

    Attributes:
        route: The route.
        judge: The judge.
        window: Name of the window.
        quantity: The score; of retrieval steps a `StepMeasure`.
        sort: Order of the values.
        page: Number of the page, from 1.
    """

    route: str = ""
    judge: str = ""
    window: str = ""
    quantity: str = ""
    sort: Sort = Sort.CHANGE
    page: int = 1

    @classmethod
    def of(cls, parameters: Mapping[str, str]) -> SegmentRequest:
        """Parses the parameters of a request.

        Raises:
            ParameterError: A parameter is unknown or invalid.
        """
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


def segment(
    wanted: SegmentRequest, key: str, store: Store | None, snapshot: Snapshot | None, scope: PageScope, *, now: float
) -> tuple[Segment, int]:
    """Builds the data of the page, and the status of the response.

    Args:
        wanted: What to show.
        key: Key of the segment, or `step`.
        store: Store of the verdicts; None for none.
        snapshot: The latest, None before the first digest.
        scope: Names in the configuration.
        now: Seconds since the epoch.

    Raises:
        ParameterError: There is no such route, judge, window or quantity.
    """
    latest = snapshot or Snapshot(at=now)
    routes, windows = routes_of(latest, scope), list(windows_of(snapshot, scope))
    is_step = key == STEP and STEP not in scope.segments
    quantities = list(StepMeasure) if is_step else [*map(str, Quantity), *scope.criteria]
    known = is_step or key in scope.segments
    route = _chosen("route", wanted.route, routes) or OTHER
    window = _chosen("window", wanted.window, windows) or window_of(snapshot, scope, None)
    alarms = [labels for gauge, labels in _alarms(latest) if gauge and labels[1:3] == (route, key)]
    first = alarms[0][0] if alarms else ""
    quantity = _chosen("quantity", wanted.quantity or first, quantities)
    judges = list(dict.fromkeys((*scope.judges, *latest.judges)))
    judge = _chosen("judge", wanted.judge, judges)
    version = latest.judges.get(judge, ("", ""))[1]
    begin, until = period_of(latest.at, span_of(window) or 3600.0)
    limit = MAX_STEP_ANSWERS if is_step else MAX_ANSWERS
    since = 2 * begin - until
    query = SegmentQuery(key, quantity, route, judge, version, since, until, 2 * SIDE, limit)
    rows: list[SegmentSums] = []
    error, status = None, 200 if known else _NOT_FOUND
    try:
        rows = [] if store is None or not known else store.segments(query)
    except StoreError as failure:
        error, status = f"the store cannot be read: {failure}", _SERVICE_UNAVAILABLE
    values = Values(rows, query, None if is_step else scope.threshold(quantity, route), scope.confidence)
    pages = max(1, -(-len(values.values) // PAGE_ROWS))
    page = min(wanted.page, pages)
    shown = values.sorted(wanted.sort)[(page - 1) * PAGE_ROWS : page * PAGE_ROWS]
    return {
        "version": __version__,
        "known": known,
        "error": error,
        "segment": key,
        "segments": [*scope.segments, *([] if STEP in scope.segments else [STEP])],
        "at": None if snapshot is None else snapshot.at,
        "now": now,
        "route": route,
        "routes": routes,
        "window": window,
        "windows": windows,
        "judge": judge,
        "judges": judges,
        "quantity": quantity,
        "quantities": list(map(str, quantities)),
        "lower_is_better": values.low_is_good,
        "threshold": values.threshold,
        "sort": str(wanted.sort),
        "mean": values.whole_figure(),
        "since": since,
        "begin": begin,
        "until": until,
        "complete": sum(row.answers for row in rows) < limit or is_step,
        "alarms": [{"quantity": labels[0], "value": labels[3]} for labels in alarms],
        "count": len(values.values),
        "page": page,
        "pages": pages,
        "values": [values.line(one, alarmed={labels[3] for labels in alarms}) for one in shown],
    }, status


def _chosen(name: str, wanted: str, names: Sequence[str]) -> str:
    if wanted and wanted not in names:
        raise ParameterError(f"{name}: {wanted!r:.100} is not known; use one of: {', '.join(names)}")
    return wanted or next(iter(names), "")


def _alarms(snapshot: Snapshot) -> list[tuple[bool, tuple[str, ...]]]:
    gauges = snapshot.gauges.items()
    return sorted((bool(value), labels) for (gauge, labels), value in gauges if gauge is Gauge.SEGMENT_DRIFT_ALARM)
