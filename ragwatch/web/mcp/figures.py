"""Tools about figures: how answers are, what alarms, how figures move, and what nobody would be paged for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ragwatch.web.headline import STATES
from ragwatch.web.mcp.calls import Call, RefusedCallError, time_of

_RANK = {state: rank for rank, state in enumerate((*STATES, "silent"))}
_NO_LEVEL = "no level is known of this judge and quantity"
_LEARNING = "its baseline is being learnt"
MAX_DRIFT = 10  # names in one line of a route

Line = Mapping[str, Any]


async def status(call: Call) -> Line:
    """Return the overview: routes, judges and sources, then figures, the worst first."""
    route, window = await call.route(), call.arguments.get("window")
    view = await call.read("/snapshot", call.given("window"))
    if window not in (None, view["window"]):
        raise RefusedCallError("window: is not configured; write one of these:", ", ".join(view["windows"]))
    routes = sorted(
        (one for one in view["routes"] if route in (None, one["route"])), key=lambda one: _RANK[one["state"]]
    )
    head = {
        "page": call.link("", {"window": window}),
        "at": time_of(view["at"]),
        **{name: view[name] for name in ("window", "windows", "state")},
        "headline": call.fence(view["headline"], 200),
        "alarms": len(view["drift"]),
        "problems": call.texts(view["problems"], limit=200),
    }
    figures = [line for one in routes for line in _figures(call, one)]
    figures.sort(key=lambda line: (line["value"] is None, _RANK[line["state"]]))
    rows = [
        *(("routes", _route(call, one)) for one in routes),
        *(("judges", _judge(call, one)) for one in view["judges"]),
        *(("sources", _source(call, one)) for one in view["sources"]),
        *(("figures", line) for line in figures),
    ]
    return call.reply(head, ("routes", "judges", "sources", "figures"), rows)


def _route(call: Call, route: Line) -> Line:
    return {
        "route": call.fence(route["route"]),
        "state": route["state"],
        "drift": [call.name(name) for name in route["drift"][:MAX_DRIFT]],
        "sampled": route["drawn"],
        "stages": [{name: one[name] for name in ("stage", "share", "usual")} for one in route["stages"]],
    }


def _judge(call: Call, judge: Line) -> Line:
    return {
        "judge": call.fence(judge["judge"]),
        "judged": judge["judged"],
        "waiting": judge["pending"],
        "unjudged": judge["unjudged"],
    }


def _source(call: Call, source: Line) -> Line:
    counts = {name: source[name] for name in ("seen", "rejected", "lag_seconds", "unreadable_files")}
    return {"source": call.fence(source["source"]), **counts}


def _figures(call: Call, route: Line) -> Iterator[Line]:
    """Yield the figures of a route; a quantity without one says why, and so does a judge without any."""
    for judge in route["judges"]:
        figures = judge["figures"] if judge["why"] is None else [{"quantity": None, "why": judge["why"]}]
        for figure in figures:
            level = figure.get("corrected")
            yield {
                "route": call.fence(route["route"]),
                "judge": call.fence(judge["judge"]),
                "quantity": None if figure["quantity"] is None else call.name(figure["quantity"]),
                "state": figure.get("state", "silent"),
                **{name: figure.get(name) for name in ("value", "low", "high")},
                "n": figure.get("n", 0),
                "level": None if level is None else _level(level),
                **{name: figure.get(name) for name in ("change", "threshold", "lower_is_better")},
                "why": _NO_LEVEL if "value" in figure and level is None else figure["why"],
            }


def _level(level: Line) -> Line:
    return {name: level[name] for name in ("value", "low", "high", "n", "labels", "calibrated")}


async def alarms(call: Call) -> Line:
    """Return what alarms: drift of answers, segments, traffic and judges, thresholds, canaries; then events."""
    route = await call.route()
    drift, view = await call.read("/drift", {}), await call.read("/snapshot", {})
    suites = await call.read("/canaries", {})
    active = [*_drifts(call, drift), *_crossed(call, view), *_degraded(call, suites)]
    lines = [line for place, line in active if route is None or place in ("", route)]
    head = {
        "page": call.link("drift"),
        "at": time_of(drift["at"]),
        "headline": call.fence(view["headline"], 200),
    }
    rows = [*(("alarms", line) for line in lines), *(("events", event(call, one)) for one in drift["events"])]
    return call.reply(head, ("alarms", "events"), rows)


def _drifts(call: Call, drift: Line) -> Iterator[tuple[str, Line]]:
    """Yield the active drift alarms."""
    for row in (row for row in drift["answers"] if row["alarm"]):
        band = row["band"] or {}
        now = {"now": band.get("value"), "low": band.get("low"), "high": band.get("high"), "n": band.get("scores")}
        more = {"before": row["baseline"], "stage": row["changed_stage"], "judge_moved": row["judge_moved"]}
        yield _alarm(call, "answers", row["quantity"], row["route"], {"since": row["since"], **now, **more})
    for row in drift["segments"]:
        place = {"segment": call.fence(row["segment"]), "value": call.fence(row["value"])}
        figures = {"since": row["began"], "before": row["before"], "now": row["mean"], "n": row["answers"]}
        yield _alarm(call, "segment", row["quantity"], row["route"], {**place, **figures})
    for row in (row for row in drift["traffic"] if row["alarm"]):
        above = "" if row["cut"] in (None, "yes") else f", counted above {row['cut']}"
        words = call.fence(f"{row['direction'] or 'changed'}{above}")
        yield _alarm(call, "traffic", row["signal"], row["route"], {"since": row["since"], "words": words})
    for row in (row for row in drift["judges"] if row["alarm"]):
        yield _alarm(call, "judge", row["judge"], "", {"now": row["flips"], "n": row["read"]})


def _crossed(call: Call, view: Line) -> Iterator[tuple[str, Line]]:
    """Yield the levels that are worse than their threshold."""
    for route in view["routes"]:
        for row in (row for judge in route["judges"] for row in judge["figures"] if row["state"] == "bad"):
            level = row["corrected"]
            now = {"now": level["value"], **{name: level[name] for name in ("low", "high", "n")}}
            yield _alarm(call, "threshold", row["quantity"], route["route"], {"before": row["threshold"], **now})


def _degraded(call: Call, canaries: Line) -> Iterator[tuple[str, Line]]:
    """Yield the suites of canaries that are degraded."""
    for suite in (suite for suite in canaries["suites"] if suite["state"] == "bad"):
        words = call.fence(f"{len(suite['degraded'])} degraded, {len(suite.get('wrong', ()))} answered wrongly")
        now = {"since": suite["at"], "n": suite["canaries"], "now": suite.get("health"), "words": words}
        yield _alarm(call, "canaries", suite["suite"], "", now)


def _alarm(call: Call, kind: str, name: str, route: str, fields: Line) -> tuple[str, Line]:
    """An alarm behind its route; those of judges and suites have none and concern all routes."""
    unknown = dict.fromkeys(("segment", "value", "since", "before", "now", "low", "high", "n", "stage", "words"))
    return route, {
        "kind": kind,
        "name": call.fence(name) if kind in ("judge", "canaries") else call.name(name),
        "route": call.fence(route) if route else None,
        **unknown,
        "judge_moved": False,
        **fields,
        "since": time_of(fields.get("since")),
    }


def event(call: Call, line: Line) -> Line:
    """Return an event."""
    return {"at": time_of(line["at"]), "kind": call.fence(line["kind"]), "detail": call.fence(line["detail"], 200)}


async def trend(call: Call) -> Line:
    """Return the trends of a route or a suite, or the steps of one quantity, the newest first."""
    await call.route()
    view = await call.read("/trends", call.given("route", "suite", "judge", "range"))
    if not view or view["error"] is not None:
        raise RefusedCallError("suite, judge or range: there is none of this name; leave it out, or see:", _names(view))
    quantity = call.arguments.get("quantity")
    charts = [chart for chart in view["charts"] if chart["kind"] in ("score", "canary")]
    if quantity is not None:
        charts = [chart for chart in charts if chart["name"] == quantity]
        if not charts:
            names = ", ".join(dict.fromkeys(chart["name"] for chart in view["charts"]))
            advice = "write one of these:" if names else "give a longer range or another route"
            raise RefusedCallError(f"quantity: has no score in this range; {advice}", names)
    head = {
        "page": call.link("trends", call.given("route", "suite", "judge", "range")),
        **{name: call.fence(view[name]) for name in ("route", "suite")},
        "range": view["range"],
        **{name: time_of(view[name]) for name in ("since", "until")},
        "step_seconds": view["step"],
    }
    steps = [] if quantity is None else [_point(point) for chart in charts for point in reversed(chart["points"])]
    rows = [
        *(("trends", _trend(call, chart)) for chart in charts),
        *(("points", point) for point in steps),
        *(("events", event(call, one)) for one in view["events"]),
    ]
    return call.reply(head, ("trends", "points", "events"), rows)


def _names(view: Line) -> str:
    return ", ".join((*view.get("suites", ()), *view.get("judges", ()), *view.get("ranges", ())))


def _point(point: Line) -> Line:
    return {"at": time_of(point["start"]), **{name: point.get(name) for name in ("value", "low", "high", "n")}}


def _trend(call: Call, chart: Line) -> Line:
    return {
        "name": call.name(chart["name"]),
        "kind": chart["kind"],
        "mean": chart.get("mean"),
        "threshold": chart["threshold"],
        "lower_is_better": chart.get("lower_is_better"),
        "last": _point(chart["points"][-1]) if chart["points"] else None,
    }


async def compare_windows(call: Call) -> Line:
    """Return every quantity of a route before and after an instant."""
    await call.route()
    query = call.given("at", "route", "span", "judge")
    view = await call.read("/changes", query)
    if view["error"] is not None:
        raise RefusedCallError("ragwatch cannot compare now; try again later:", view["error"])
    sides = view["sides"]
    head = {
        "page": call.link("changes", query),
        "at": time_of(view["at"]),
        "route": call.fence(view["route"]),
        "begin": time_of(sides["before"]),
        "end": time_of(sides["after"]),
        **{name: view[name] for name in ("span", "state", "headline")},
    }
    fields = ("lower_is_better", "before", "after", "difference", "conclusion", "why")
    rows = [
        *(("rows", {"name": call.name(row["name"]), **{name: row[name] for name in fields}}) for row in view["rows"]),
        *(("events", event(call, one)) for one in (*view["events"], *reversed(view["others"]))),
    ]
    return call.reply(head, ("rows", "events"), rows)


async def what_cannot_page(call: Call) -> Line:
    """Return failures that page nobody, and what has no baseline yet."""
    view, drift = await call.read("/snapshot", {}), await call.read("/drift", {})
    rows = [
        *(("failures", call.fence(text, 400)) for text in view["unpaged"]),
        *(("unwatched", line) for line in _unwatched(call, drift)),
    ]
    return call.reply({"page": call.link("")}, ("failures", "unwatched"), rows)


def _unwatched(call: Call, drift: Line) -> Iterable[Line]:
    for row in drift["answers"]:
        if row["learning"] or row["paused"]:
            yield {
                "name": call.name(row["quantity"]),
                "route": call.fence(row["route"]),
                "why": row["paused"] or _LEARNING,
            }
    for row in drift["traffic_paused"]:
        yield {"name": call.name(row["signal"]), "route": call.fence(row["route"]), "why": row["paused"]}
