"""What each tool returns: figures and alarms, how they move, single answers, canaries, and what would page nobody."""

from collections.abc import Iterator, Mapping, Sequence

from ragwatch.model.quantities import LOW_IS_GOOD, Quantity
from ragwatch.statistics.causes.slices import METADATA_PREFIX
from ragwatch.web.mcp import replies
from ragwatch.web.mcp.calls import MOST, Call, Line, RefusedCallError
from ragwatch.web.pages.headline import STATES
from ragwatch.web.samples import KEY

_RANK = {state: rank for rank, state in enumerate((*STATES, "silent"))}
_NO_LEVEL = "no level is known of this judge and quantity"
_LEARNING = "its baseline is being learnt"
MAX_DRIFT = 10  # names in one line of a route
MAX_LIMIT, DEFAULT_LIMIT = 20, 5
ASKED = ("route", "quantity", "judge", "window", "since", "until")
FILTERS = ("route", "judge", "stage", "until", "metadata", "context", "top_context", "text")
_PROBLEMS = ("degraded", "failed", "wrong")
_SEARCHED = 100  # answers that are searched for: pages of the reply are parts of these


async def status(call: Call) -> Line:
    """Return the overview: routes, judges and sources, then figures, the worst first."""
    route, window = await call.route(), call.arguments.get("window")
    view = await call.read("/snapshot", call.given("window"))
    routes = sorted(
        (one for one in view["routes"] if route in (None, one["route"])), key=lambda one: _RANK[one["state"]]
    )
    figures = [figure for one in routes for figure in _figures(one)]
    figures.sort(key=lambda figure: ("value" not in figure, _RANK[figure["state"]]))
    page, problems = call.link("", {"window": window}), view["problems"][:MOST]
    return call.reply(
        replies.Status,
        {**view, "page": page, "alarms": len(view["drift"]), "problems": problems},
        routes=[{**one, "drift": one["drift"][:MAX_DRIFT], "sampled": one["drawn"]} for one in routes],
        judges=[{**one, "waiting": one["pending"]} for one in view["judges"]],
        sources=view["sources"],
        figures=figures,
    )


def _figures(route: Line) -> Iterator[Line]:
    """Yield the figures of a route; a quantity without one says why, and so does a judge without any."""
    for judge in route["judges"]:
        figures = judge["figures"] if judge["why"] is None else [{"state": "silent", "why": judge["why"]}]
        for figure in figures:
            level = figure.get("corrected")
            why = _NO_LEVEL if "value" in figure and level is None else figure["why"]
            place = {"route": route["route"], "judge": judge["judge"]}
            yield {"n": 0, **figure, **place, "level": level, "why": why}


async def alarms(call: Call) -> Line:
    """Return what alarms: drift of answers, segments, traffic and judges, thresholds, canaries; then events."""
    route = await call.route()
    drift, view = await call.read("/drift", {}), await call.read("/snapshot", {})
    suites = await call.read("/canaries", {})
    return call.reply(
        replies.Alarms,
        {"page": call.link("drift"), "at": drift["at"], "headline": view["headline"]},
        alarms=[
            {"judge_moved": False, **alarm}
            for alarm in (*_drifts(drift), *_crossed(view), *_degraded(suites))
            if None in (route, alarm["route"]) or alarm["route"] == route
        ],
        events=drift["events"],
    )


def _drifts(drift: Line) -> Iterator[Line]:
    """Yield the active drift alarms. Those of judges have no route, and concern all."""
    for row in (row for row in drift["answers"] if row["alarm"]):
        band = row["band"] or {}
        now = {"now": band.get("value"), "low": band.get("low"), "high": band.get("high"), "n": band.get("scores")}
        more = {"before": row["baseline"], "stage": row["changed_stage"], "judge_moved": row["judge_moved"]}
        place = {"kind": "answers", "name": row["quantity"], "route": row["route"]}
        yield {**place, "since": row["since"], **now, **more}
    for row in drift["segments"]:
        now = {"since": row["began"], "now": row["mean"], "n": row["answers"]}
        place = {name: row[name] for name in ("route", "segment", "value", "before")}
        yield {"kind": "segment", "name": row["quantity"], **place, **now}
    for row in (row for row in drift["traffic"] if row["alarm"]):
        above = "" if row["cut"] in (None, "yes") else f", counted above {row['cut']}"
        words, place = f"{row['direction'] or 'changed'}{above}", {"name": row["signal"], "route": row["route"]}
        yield {"kind": "traffic", **place, "since": row["since"], "words": words}
    for row in (row for row in drift["judges"] if row["alarm"]):
        yield {"kind": "judge", "name": row["judge"], "route": None, "now": row["flips"], "n": row["read"]}


def _crossed(view: Line) -> Iterator[Line]:
    """Yield the levels that are worse than their threshold."""
    for route in view["routes"]:
        for row in (row for judge in route["judges"] for row in judge["figures"] if row["state"] == "bad"):
            level, place = row["corrected"], {"name": row["quantity"], "route": route["route"]}
            now = {"now": level["value"], **{name: level[name] for name in ("low", "high", "n")}}
            yield {"kind": "threshold", **place, "before": row["threshold"], **now}


def _degraded(canaries: Line) -> Iterator[Line]:
    """Yield the suites of canaries that are degraded. They have no route, and concern all."""
    for suite in (suite for suite in canaries["suites"] if suite["state"] == "bad"):
        words = f"{len(suite['degraded'])} degraded, {len(suite.get('wrong', ()))} answered wrongly"
        now = {"since": suite["at"], "n": suite["canaries"], "now": suite.get("health"), "words": words}
        yield {"kind": "canaries", "name": suite["suite"], "route": None, **now}


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
    shown = [] if quantity is None else [point for chart in points for point in reversed(chart)]
    return call.reply(
        replies.Trend,
        {**view, "page": call.link("trends", query), "step_seconds": view["step"]},
        trends=[{**chart, "last": steps[-1] if steps else None} for chart, steps in zip(charts, points, strict=True)],
        points=shown,
        events=view["events"],
    )


async def compare_windows(call: Call) -> Line:
    """Return every quantity of a route before and after an instant."""
    await call.route()
    query = call.given("at", "route", "span", "judge")
    view = await call.read("/changes", query)
    if view["error"] is not None:
        raise RefusedCallError("ragwatch cannot compare now; try again later:", view["error"])
    sides = {"begin": view["sides"]["before"], "end": view["sides"]["after"]}
    return call.reply(
        replies.Compared,
        {**view, **sides, "page": call.link("changes", query)},
        rows=view["rows"],
        events=(*view["events"], *reversed(view["others"])),
    )


async def what_cannot_page(call: Call) -> Line:
    """Return failures that page nobody, and what has no baseline yet."""
    view, drift = await call.read("/snapshot", {}), await call.read("/drift", {})
    silent = [
        *((row["quantity"], row) for row in drift["answers"] if row["learning"] or row["paused"]),
        *((row["signal"], row) for row in drift["traffic_paused"]),
    ]
    return call.reply(
        replies.CannotPage,
        {"page": call.link("")},
        failures=view["unpaged"],
        unwatched=[{**row, "name": name, "why": row["paused"] or _LEARNING} for name, row in silent],
    )


async def causes(call: Call) -> Line:
    """Return what failing answers have in common."""
    await call.route()
    query = call.given(*ASKED)
    view = await call.read("/causes", query)
    why = None
    if not view["causes"]:
        why = "no slice of the answers fails more than the rest, beyond chance"
        if not view["answers"]:
            why = "no judged answer of this time is stored: give an earlier since or a longer window"
    more = {"page": call.link("causes", query), "slices": view["looked_at"], "why": why}
    return call.reply(replies.Causes, {**view, **more}, causes=[_cause(call, cause) for cause in view["causes"]])


def _cause(call: Call, cause: Line) -> Line:
    attribute = cause["attribute"]
    return {
        **cause,
        "attribute": call.fence(attribute) if attribute.startswith(METADATA_PREFIX) else attribute,
        "examples": cause["examples"][:3],
        "explains_too": [f"{one['attribute']} {one['value']}" for one in cause["folded"][:MOST]],
    }


async def worst_answers(call: Call) -> Line:
    """Return the answers with the worst scores of a quantity, the worst first."""
    await call.route()
    quantity = call.arguments.get("quantity", str(Quantity.FAITHFULNESS))
    bound = {"above": "0"} if quantity in LOW_IS_GOOD else {"below": "1"}
    filters = call.given(*FILTERS)
    query = {**filters, **bound, "quantity": quantity, "sort": "worst", "since": call.arguments.get("since", "24h")}
    view = await call.read("/samples", {**query, "limit": str(_SEARCHED)})
    answers = []
    for row in view["samples"]:
        sample, verdict = row["sample"] or {}, row["verdict"]
        texts = {name: sample.get(name) for name in ("question", "answer")}
        answers.append({**_place(call, verdict), **texts, "score": (verdict["scores"] or {}).get(quantity)})
    head, most = {"page": call.link("samples", query), "quantity": quantity}, call.arguments.get("limit")
    return call.reply(replies.WorstAnswers, head, most=int(most or DEFAULT_LIMIT), answers=answers)


def _place(call: Call, verdict: Line) -> Line:
    """A verdict with what leads to its answer."""
    key = verdict["key"]
    is_key = KEY.fullmatch(key) is not None
    page = call.link(f"samples/{key}") if is_key else None
    return {**verdict, "key": key if is_key else call.fence(key), "judge": verdict["judge_name"], "page": page}


async def answer(call: Call) -> Line:
    """Return one answer: its texts, the claims with their verdicts, and the contexts."""
    key = call.arguments["key"]
    view = await call.read(f"/samples/{key}", {}) if KEY.fullmatch(key) else {}
    if not view:
        raise RefusedCallError("key: no answer is stored under it; write a key that worst_answers or causes returned")
    judges = [verdict["judge_name"] for verdict in view["verdicts"]]
    judge = call.arguments.get("judge", judges[0])
    if judge not in judges:
        raise RefusedCallError("judge: has not read this answer; write one of these:", ", ".join(judges))
    verdict = view["verdicts"][judges.index(judge)]
    sample = view["sample"] or {}
    first = "more" not in call.arguments
    scores = verdict["scores"] if first else None
    head = {
        **_place(call, verdict),
        "user_score": (view["feedback"] or {}).get("user_score"),
        "scores": {str(call.name(name)): score for name, score in (scores or {}).items()},
        **{name: sample.get(name) if first else None for name in ("question", "answer")},
        "why": None if sample else "its texts are not kept, or cannot be read",
        "missing": verdict.get("missing", ())[:MOST] if first else (),
    }
    return call.reply(
        replies.AnswerInFull,
        head,
        metadata=[{"name": name, "value": value} for name, value in (sample.get("metadata") or {}).items()],
        claims=verdict.get("claims", ()),
        contexts=list(_contexts(verdict.get("contexts", ()), sample.get("contexts", ()))),
    )


def _contexts(readings: Sequence[Line], contexts: Sequence[object]) -> Iterator[Line]:
    """Yield the contexts with what the judge says of them; lines of older versions have fewer readings."""
    for rank, context in enumerate(contexts):
        read = readings[rank] if rank < len(readings) else {}
        given = context if isinstance(context, Mapping) else {"text": context}
        score = given.get("score")
        shown = {"rank": rank, "score": score if isinstance(score, int | float) else None}
        yield {**given, **shown, "relevant": read.get("relevant"), "used": read.get("used")}


async def canaries(call: Call) -> Line:
    """Return the suites, and canaries with a problem."""
    view, wanted = await call.read("/canaries", {}), call.arguments.get("suite")
    names = [suite["suite"] for suite in view["suites"]]
    if wanted is not None and wanted not in names:
        raise RefusedCallError(
            "suite: there is none of this name; write one of these, or leave it out:", ", ".join(names)
        )
    suites = [suite for suite in view["suites"] if wanted in (None, suite["suite"])]
    return call.reply(
        replies.Canaries,
        {**view, "page": call.link("canaries")},
        suites=[
            {**suite, "n": suite["canaries"]} | {name: len(suite.get(name, ())) for name in _PROBLEMS}
            for suite in suites
        ],
        canaries=[line for suite in suites for line in _canaries(call, suite)],
    )


def _canaries(call: Call, suite: Line) -> Iterator[Line]:
    """Yield the canaries with a problem, what it is, and in how many characters that is said."""

    def line(canary: Line, problem: str, detail: str | None, limit: int, **more: object) -> Line:
        place = {"suite": suite["suite"], "problem": problem, "detail": call.fence(detail, limit)}
        return {"missing": (), "came": (), **canary, **more, **place}

    for one in suite["degraded"]:
        came = [hit["context"] for hit in one["came"][:MOST]]
        yield line(one, "degraded", one["reason"], 200, missing=one["missing"][:MOST], came=came)
    for one in suite.get("wrong", ()):
        yield line(one, "wrong answer", f"{one['fault']}: {one['retrieved']} instead of {one['reference']}", 400)
    for one in suite["failed"]:
        yield line(one, "failed", f"{one['reason']}: {one['detail']}", 200)
