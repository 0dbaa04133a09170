"""Tools about single answers: what failing ones have in common, the worst ones, one in full, and canaries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ragwatch.core.causes.slices import METADATA_PREFIX
from ragwatch.model.quantities import LOW_IS_GOOD, Quantity
from ragwatch.web.mcp.calls import Call, RefusedCallError, time_of
from ragwatch.web.samples import KEY

QUESTION_CHARS, ANSWER_CHARS, CONTEXT_CHARS, CLAIM_CHARS = 400, 1000, 300, 240
EXCERPT_CHARS = 160
MAX_LIMIT, DEFAULT_LIMIT = 20, 5
ASKED = ("route", "quantity", "judge", "window", "since", "until")
FILTERS = ("route", "judge", "stage", "until", "metadata", "context", "top_context", "text")
_SEARCHED = 100  # answers that are searched for: pages of the reply are parts of these
_LOW_IS_GOOD = frozenset(map(str, LOW_IS_GOOD))

Line = Mapping[str, Any]


async def causes(call: Call) -> Line:
    """Return what failing answers have in common."""
    await call.route()
    query = call.given(*ASKED)
    view = await call.read("/causes", query)
    head = {
        "page": call.link("causes", query),
        **{name: call.fence(view[name]) for name in ("route", "judge")},
        "quantity": None if view["quantity"] is None else call.name(view["quantity"]),
        **{name: time_of(view[name]) for name in ("since", "until")},
        **{name: view[name] for name in ("answers", "failing", "share", "complete")},
        "slices": view["looked_at"],
        "why": _why_no_cause(view),
    }
    return call.reply(head, ("causes",), [("causes", _cause(call, cause)) for cause in view["causes"]])


def _why_no_cause(view: Line) -> str | None:
    if view["causes"]:
        return None
    if not view["answers"]:
        return "no judged answer of this time is stored: give an earlier since or a longer window"
    return "no slice of the answers fails more than the rest, beyond chance"


def _cause(call: Call, cause: Line) -> Line:
    attribute = cause["attribute"]
    return {
        "attribute": call.fence(attribute) if attribute.startswith(METADATA_PREFIX) else attribute,
        "value": call.fence(cause["value"]),
        "text": call.fence(cause["text"], 300),
        **{name: cause[name] for name in ("failing", "low", "high", "others", "n", "explains")},
        **{name: time_of(cause[name]) for name in ("since", "until", "ended")},
        "examples": cause["examples"][:3],
        "explains_too": call.texts(f"{one['attribute']} {one['value']}" for one in cause["folded"]),
    }


async def worst_answers(call: Call) -> Line:
    """Return the answers with the worst scores of a quantity, the worst first."""
    await call.route()
    quantity = call.arguments.get("quantity", str(Quantity.FAITHFULNESS))
    bound = {"above": "0"} if quantity in _LOW_IS_GOOD else {"below": "1"}
    filters = call.given(*FILTERS)
    query = {**filters, **bound, "quantity": quantity, "sort": "worst", "since": call.arguments.get("since", "24h")}
    view = await call.read("/samples", {**query, "limit": str(_SEARCHED)})
    rows = [("answers", _answer(call, row, quantity)) for row in view["samples"]]
    head = {"page": call.link("samples", query), "quantity": call.name(quantity)}
    return call.reply(head, ("answers",), rows, int(call.arguments.get("limit", DEFAULT_LIMIT)))


def _answer(call: Call, row: Line, quantity: str) -> Line:
    verdict, sample = row["verdict"], row["sample"] or {}
    return {
        **_place(call, verdict),
        **{name: verdict[name] for name in ("stage", "fault")},
        "score": (verdict["scores"] or {}).get(quantity),
        **{name: call.fence(sample.get(name), EXCERPT_CHARS) for name in ("question", "answer")},
        "page": _page(call, verdict["key"]),
    }


def _place(call: Call, verdict: Line) -> Line:
    key = verdict["key"]
    return {
        "key": key if KEY.fullmatch(key) else call.fence(key),
        "at": time_of(verdict["at"]),
        "route": call.fence(verdict["route"]),
        "judge": call.fence(verdict["judge_name"]),
    }


def _page(call: Call, key: str) -> str | None:
    return call.link(f"samples/{key}") if KEY.fullmatch(key) else None


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
    feedback = view["feedback"] or {}
    first = "more" not in call.arguments
    head = {
        "page": _page(call, key),
        **_place(call, verdict),
        **{name: verdict[name] for name in ("outcome", "reason", "stage", "fault")},
        "user_score": feedback.get("user_score"),
        "scores": {name: score for name, score in (verdict["scores"] or {}).items() if first},
        "question": call.fence(sample.get("question"), QUESTION_CHARS) if first else None,
        "answer": call.fence(sample.get("answer"), ANSWER_CHARS) if first else None,
        "why": None if sample else "its texts are not kept, or cannot be read",
        "missing": call.texts(verdict.get("missing", ()), limit=EXCERPT_CHARS) if first else [],
    }
    head["scores"] = {str(call.name(name)): score for name, score in head["scores"].items()}
    return call.reply(head, ("metadata", "claims", "contexts"), list(_parts(call, verdict, sample)))


def _parts(call: Call, verdict: Line, sample: Line) -> Iterator[tuple[str, Line]]:
    metadata = sample.get("metadata")
    for name, value in metadata.items() if isinstance(metadata, Mapping) else ():
        yield "metadata", {"name": call.fence(name), "value": call.fence(value)}
    for claim in verdict.get("claims", ()):
        kept = {name: claim[name] for name in ("verdict", "support", "contexts")}
        yield "claims", {"text": call.fence(claim["text"], CLAIM_CHARS), **kept}
    lines = verdict.get("contexts", ())
    for rank, context in enumerate(sample.get("contexts", ())):
        read = lines[rank] if rank < len(lines) else {}
        given = context if isinstance(context, Mapping) else {"text": context}
        score = given.get("score")
        yield (
            "contexts",
            {
                "rank": rank,
                "id": call.fence(given.get("id")),
                "text": call.fence(given.get("text"), CONTEXT_CHARS),
                "score": score if isinstance(score, int | float) else None,
                "relevant": read.get("relevant"),
                "used": read.get("used"),
            },
        )


async def canaries(call: Call) -> Line:
    """Return the suites, and canaries with a problem."""
    view, wanted = await call.read("/canaries", {}), call.arguments.get("suite")
    names = [suite["suite"] for suite in view["suites"]]
    if wanted is not None and wanted not in names:
        raise RefusedCallError(
            "suite: there is none of this name; write one of these, or leave it out:", ", ".join(names)
        )
    suites = [suite for suite in view["suites"] if wanted in (None, suite["suite"])]
    head = {"page": call.link("canaries"), **{name: view[name] for name in ("state", "headline")}}
    rows = [
        *(("suites", _suite(call, suite)) for suite in suites),
        *(("canaries", line) for suite in suites for line in _canaries(call, suite)),
    ]
    return call.reply(head, ("suites", "canaries"), rows)


def _suite(call: Call, suite: Line) -> Line:
    return {
        "suite": call.fence(suite["suite"]),
        "state": suite["state"],
        "at": time_of(suite["at"]),
        "n": suite["canaries"],
        **{name: len(suite.get(name, ())) for name in ("degraded", "failed", "wrong")},
        **{name: suite.get(name) for name in ("recall", "mrr", "health")},
    }


def _canaries(call: Call, suite: Line) -> Iterator[Line]:
    for one in suite["degraded"]:
        more = {"detail": call.fence(one["reason"], 200), "missing": call.texts(one["missing"])}
        came = call.texts(hit["context"] for hit in one["came"])
        yield {**_canary(call, suite, one, "degraded"), **more, "came": came}
    for one in suite.get("wrong", ()):
        detail = f"{one['fault']}: {one['retrieved']} instead of {one['reference']}"
        yield {**_canary(call, suite, one, "wrong answer"), "detail": call.fence(detail, 400)}
    for one in suite["failed"]:
        yield {**_canary(call, suite, one, "failed"), "detail": call.fence(f"{one['reason']}: {one['detail']}", 200)}


def _canary(call: Call, suite: Line, canary: Line, problem: str) -> Line:
    return {
        "suite": call.fence(suite["suite"]),
        "canary": call.fence(canary["canary"]),
        "problem": problem,
        "query": call.fence(canary.get("query"), EXCERPT_CHARS),
        "detail": None,
        "missing": [],
        "came": [],
    }
