"""Tools about single answers: what failing ones have in common, the worst ones, one in full, and canaries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ragwatch.model.quantities import LOW_IS_GOOD, Quantity
from ragwatch.statistics.causes.slices import METADATA_PREFIX
from ragwatch.web.mcp import replies
from ragwatch.web.mcp.calls import MOST, Call, Line, RefusedCallError
from ragwatch.web.samples import KEY

MAX_LIMIT, DEFAULT_LIMIT = 20, 5
ASKED = ("route", "quantity", "judge", "window", "since", "until")
FILTERS = ("route", "judge", "stage", "until", "metadata", "context", "top_context", "text")
_SEARCHED = 100  # answers that are searched for: pages of the reply are parts of these
_LOW_IS_GOOD = frozenset(map(str, LOW_IS_GOOD))


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
    rows = [("causes", _cause(call, cause)) for cause in view["causes"]]
    return call.reply(replies.Causes, {**view, **more}, rows, ("causes",))


def _cause(call: Call, cause: Line) -> Line:
    attribute = cause["attribute"]
    more = {
        "attribute": call.fence(attribute) if attribute.startswith(METADATA_PREFIX) else attribute,
        "examples": cause["examples"][:3],
        "explains_too": [f"{one['attribute']} {one['value']}" for one in cause["folded"][:MOST]],
    }
    return call.line(replies.CauseLine, cause, **more)


async def worst_answers(call: Call) -> Line:
    """Return the answers with the worst scores of a quantity, the worst first."""
    await call.route()
    quantity = call.arguments.get("quantity", str(Quantity.FAITHFULNESS))
    bound = {"above": "0"} if quantity in _LOW_IS_GOOD else {"below": "1"}
    filters = call.given(*FILTERS)
    query = {**filters, **bound, "quantity": quantity, "sort": "worst", "since": call.arguments.get("since", "24h")}
    view = await call.read("/samples", {**query, "limit": str(_SEARCHED)})
    rows = []
    for row in view["samples"]:
        sample, verdict = row["sample"] or {}, row["verdict"]
        texts = {name: sample.get(name) for name in ("question", "answer")}
        score = (verdict["scores"] or {}).get(quantity)
        rows.append(("answers", call.line(replies.AnswerLine, _place(call, verdict), **texts, score=score)))
    head, most = {"page": call.link("samples", query), "quantity": quantity}, call.arguments.get("limit")
    return call.reply(replies.WorstAnswers, head, rows, ("answers",), most=int(most or DEFAULT_LIMIT))


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
    parts = list(_parts(call, verdict, sample))
    return call.reply(replies.AnswerInFull, head, parts, ("metadata", "claims", "contexts"))


def _parts(call: Call, verdict: Line, sample: Line) -> Iterator[tuple[str, Line]]:
    metadata = sample.get("metadata")
    for name, value in metadata.items() if isinstance(metadata, Mapping) else ():
        yield "metadata", call.line(replies.PairLine, {"name": name, "value": value})
    for claim in verdict.get("claims", ()):
        yield "claims", call.line(replies.ClaimLine, claim)
    lines = verdict.get("contexts", ())
    for rank, context in enumerate(sample.get("contexts", ())):
        read = lines[rank] if rank < len(lines) else {}
        given = context if isinstance(context, Mapping) else {"text": context}
        score = given.get("score")
        more = {
            "rank": rank,
            "score": score if isinstance(score, int | float) else None,
            **{name: read.get(name) for name in ("relevant", "used")},
        }
        yield "contexts", call.line(replies.ContextLine, given, **more)


async def canaries(call: Call) -> Line:
    """Return the suites, and canaries with a problem."""
    view, wanted = await call.read("/canaries", {}), call.arguments.get("suite")
    names = [suite["suite"] for suite in view["suites"]]
    if wanted is not None and wanted not in names:
        raise RefusedCallError(
            "suite: there is none of this name; write one of these, or leave it out:", ", ".join(names)
        )
    suites = [suite for suite in view["suites"] if wanted in (None, suite["suite"])]
    rows = [
        *(("suites", _suite(call, suite)) for suite in suites),
        *(("canaries", line) for suite in suites for line in _canaries(call, suite)),
    ]
    return call.reply(replies.Canaries, {**view, "page": call.link("canaries")}, rows, ("suites", "canaries"))


def _suite(call: Call, suite: Line) -> Line:
    counts = {name: len(suite.get(name, ())) for name in ("degraded", "failed", "wrong")}
    return call.line(replies.SuiteLine, suite, n=suite["canaries"], **counts)


def _canaries(call: Call, suite: Line) -> Iterator[Line]:
    """Yield the canaries with a problem, what it is, and in how many characters that is said."""

    def line(canary: Line, problem: str, detail: str | None, limit: int, **more: object) -> Line:
        more = {"missing": (), "came": (), **more, "suite": suite["suite"], "detail": call.fence(detail, limit)}
        return call.line(replies.CanaryLine, {**canary, **more}, problem=problem)

    for one in suite["degraded"]:
        came = [hit["context"] for hit in one["came"][:MOST]]
        yield line(one, "degraded", one["reason"], 200, missing=one["missing"][:MOST], came=came)
    for one in suite.get("wrong", ()):
        yield line(one, "wrong answer", f"{one['fault']}: {one['retrieved']} instead of {one['reference']}", 400)
    for one in suite["failed"]:
        yield line(one, "failed", f"{one['reason']}: {one['detail']}", 200)
