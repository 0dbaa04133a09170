"""Tools about figures: how answers are, what alarms, how figures move, and what nobody would be paged for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ragwatch.web.mcp import replies
from ragwatch.web.mcp.calls import MOST, Call, Line, RefusedCallError
from ragwatch.web.pages.headline import STATES

_RANK = {state: rank for rank, state in enumerate((*STATES, "silent"))}
_NO_LEVEL = "no level is known of this judge and quantity"
_LEARNING = "its baseline is being learnt"
MAX_DRIFT = 10  # names in one line of a route


async def status(call: Call) -> Line:
    """Return the overview: routes, judges and sources, then figures, the worst first."""
    route, window = await call.route(), call.arguments.get("window")
    view = await call.read("/snapshot", call.given("window"))
    if window not in (None, view["window"]):
        raise RefusedCallError("window: is not configured; write one of these:", ", ".join(view["windows"]))
    routes = sorted(
        (one for one in view["routes"] if route in (None, one["route"])), key=lambda one: _RANK[one["state"]]
    )
    figures = [line for one in routes for line in _figures(call, one)]
    figures.sort(key=lambda line: (line["value"] is None, _RANK[line["state"]]))
    rows = [
        *(
            ("routes", call.line(replies.RouteLine, one, drift=one["drift"][:MAX_DRIFT], sampled=one["drawn"]))
            for one in routes
        ),
        *(("judges", call.line(replies.JudgeLine, one, waiting=one["pending"])) for one in view["judges"]),
        *(("sources", call.line(replies.SourceLine, one)) for one in view["sources"]),
        *(("figures", line) for line in figures),
    ]
    page, problems = call.link("", {"window": window}), view["problems"][:MOST]
    head = {**view, "page": page, "alarms": len(view["drift"]), "problems": problems}
    return call.reply(replies.Status, head, rows, ("routes", "judges", "sources", "figures"))


def _figures(call: Call, route: Line) -> Iterator[Line]:
    """Yield the figures of a route; a quantity without one says why, and so does a judge without any."""
    for judge in route["judges"]:
        figures = judge["figures"] if judge["why"] is None else [{"state": "silent", "why": judge["why"]}]
        for figure in figures:
            level = figure.get("corrected")
            why = _NO_LEVEL if "value" in figure and level is None else figure["why"]
            place = {"route": route["route"], "judge": judge["judge"]}
            yield call.line(replies.FigureLine, {"n": 0, **figure}, **place, level=level, why=why)


async def alarms(call: Call) -> Line:
    """Return what alarms: drift of answers, segments, traffic and judges, thresholds, canaries; then events."""
    route = await call.route()
    drift, view = await call.read("/drift", {}), await call.read("/snapshot", {})
    suites = await call.read("/canaries", {})
    active = [*_drifts(drift), *_crossed(view), *_degraded(suites)]
    rows = [
        *(
            (
                "alarms",
                call.line(replies.AlarmLine, {"judge_moved": False, "kind": kind, **fields}, name=name, route=place),
            )
            for kind, name, place, fields in active
            if None in (route, place) or place == route
        ),
        *_events(call, drift["events"]),
    ]
    head = {"page": call.link("drift"), "at": drift["at"], "headline": view["headline"]}
    return call.reply(replies.Alarms, head, rows, ("alarms", "events"))


Alarm = tuple[str, str, str | None, Line]
"""Kind, name, route and other fields; alarms of judges and suites have no route and concern all."""


def _drifts(drift: Line) -> Iterator[Alarm]:
    """Yield the active drift alarms."""
    for row in (row for row in drift["answers"] if row["alarm"]):
        band = row["band"] or {}
        now = {"now": band.get("value"), "low": band.get("low"), "high": band.get("high"), "n": band.get("scores")}
        more = {"before": row["baseline"], "stage": row["changed_stage"], "judge_moved": row["judge_moved"]}
        yield "answers", row["quantity"], row["route"], {"since": row["since"], **now, **more}
    for row in drift["segments"]:
        figures = {"since": row["began"], "before": row["before"], "now": row["mean"], "n": row["answers"]}
        yield "segment", row["quantity"], row["route"], {**figures, "segment": row["segment"], "value": row["value"]}
    for row in (row for row in drift["traffic"] if row["alarm"]):
        above = "" if row["cut"] in (None, "yes") else f", counted above {row['cut']}"
        words = f"{row['direction'] or 'changed'}{above}"
        yield "traffic", row["signal"], row["route"], {"since": row["since"], "words": words}
    for row in (row for row in drift["judges"] if row["alarm"]):
        yield "judge", row["judge"], None, {"now": row["flips"], "n": row["read"]}


def _crossed(view: Line) -> Iterator[Alarm]:
    """Yield the levels that are worse than their threshold."""
    for route in view["routes"]:
        for row in (row for judge in route["judges"] for row in judge["figures"] if row["state"] == "bad"):
            level = row["corrected"]
            now = {"now": level["value"], **{name: level[name] for name in ("low", "high", "n")}}
            yield "threshold", row["quantity"], route["route"], {"before": row["threshold"], **now}


def _degraded(canaries: Line) -> Iterator[Alarm]:
    """Yield the suites of canaries that are degraded."""
    for suite in (suite for suite in canaries["suites"] if suite["state"] == "bad"):
        words = f"{len(suite['degraded'])} degraded, {len(suite.get('wrong', ()))} answered wrongly"
        now = {"since": suite["at"], "n": suite["canaries"], "now": suite.get("health"), "words": words}
        yield "canaries", suite["suite"], None, now


def _events(call: Call, events: Iterable[Line]) -> Iterator[tuple[str, Line]]:
    return (("events", call.line(replies.EventLine, event)) for event in events)


async def trend(call: Call) -> Line:
    """Return the trends of a route or a suite, or the steps of one quantity, the newest first."""
    await call.route()
    query = call.given("route", "suite", "judge", "range")
    view = await call.read("/trends", query)
    if not view or view["error"] is not None:
        names = ", ".join(name for key in ("suites", "judges", "ranges") for name in view.get(key, ()))
        raise RefusedCallError("suite, judge or range: there is none of this name; leave it out, or see:", names)
    quantity = call.arguments.get("quantity")
    charts = [chart for chart in view["charts"] if chart["kind"] in ("score", "canary")]
    if quantity is not None:
        charts = [chart for chart in charts if chart["name"] == quantity]
        if not charts:
            names = ", ".join(dict.fromkeys(chart["name"] for chart in view["charts"]))
            advice = "write one of these:" if names else "give a longer range or another route"
            raise RefusedCallError(f"quantity: has no score in this range; {advice}", names)
    points = [[{**point, "at": point["start"]} for point in chart["points"]] for chart in charts]
    steps = [] if quantity is None else [point for chart in points for point in reversed(chart)]
    rows = [
        *(
            ("trends", call.line(replies.TrendLine, chart, last=steps[-1] if steps else None))
            for chart, steps in zip(charts, points, strict=True)
        ),
        *(("points", call.line(replies.PointLine, point)) for point in steps),
        *_events(call, view["events"]),
    ]
    head = {**view, "page": call.link("trends", query), "step_seconds": view["step"]}
    return call.reply(replies.Trend, head, rows, ("trends", "points", "events"))


async def compare_windows(call: Call) -> Line:
    """Return every quantity of a route before and after an instant."""
    await call.route()
    query = call.given("at", "route", "span", "judge")
    view = await call.read("/changes", query)
    if view["error"] is not None:
        raise RefusedCallError("ragwatch cannot compare now; try again later:", view["error"])
    rows = [
        *(("rows", call.line(replies.ComparedLine, row)) for row in view["rows"]),
        *_events(call, (*view["events"], *reversed(view["others"]))),
    ]
    sides = {"begin": view["sides"]["before"], "end": view["sides"]["after"]}
    return call.reply(
        replies.Compared, {**view, **sides, "page": call.link("changes", query)}, rows, ("rows", "events")
    )


async def what_cannot_page(call: Call) -> Line:
    """Return failures that page nobody, and what has no baseline yet."""
    view, drift = await call.read("/snapshot", {}), await call.read("/drift", {})
    silent = [
        *((row["quantity"], row) for row in drift["answers"] if row["learning"] or row["paused"]),
        *((row["signal"], row) for row in drift["traffic_paused"]),
    ]
    rows = [
        *(("failures", call.fence(text, 400)) for text in view["unpaged"]),
        *(
            ("unwatched", call.line(replies.SilentLine, row, name=name, why=row["paused"] or _LEARNING))
            for name, row in silent
        ),
    ]
    return call.reply(replies.CannotPage, {"page": call.link("")}, rows, ("failures", "unwatched"))
