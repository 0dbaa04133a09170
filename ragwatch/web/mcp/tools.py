"""The tools: one row each, with its arguments and the type of its reply."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from ragwatch.errors import RagwatchError
from ragwatch.model.stages import Stage
from ragwatch.statistics.trends import RANGES
from ragwatch.web.json_values import Schema, one_of
from ragwatch.web.mcp import replies, tool_functions
from ragwatch.web.mcp.calls import Call, Fence, Read, RefusedCallError
from ragwatch.web.pages.changes_page import SPANS

MAX_CHARS = 500  # of one argument
_CURSOR = re.compile("[0-9]{1,6}")


def _text(description: str) -> Schema:
    return {"type": "string", "maxLength": MAX_CHARS, "description": description}


_TIME = "an age such as 2h or 3d, or ISO 8601 in UTC"
_ARGUMENTS: Mapping[str, Schema] = {
    "route": _text("a route that status names; all routes without it"),
    "judge": _text("a judge that status names; the default one without it"),
    "window": _text("a window that status names, such as 1h; for causes any duration"),
    "quantity": _text("such as faithfulness or context_precision: a name of status or alarms"),
    "since": _text(f"answers since then: {_TIME}"),
    "until": _text(f"answers before then: {_TIME}"),
    "at": _text(f"the instant between both sides, such as the start of an alarm: {_TIME}"),
    "span": one_of(SPANS),
    "range": one_of(RANGES),
    "suite": _text("a suite of canaries"),
    "stage": one_of(Stage),
    "metadata": _text("KEY=VALUE of answers, as causes names them, such as release=v2"),
    "context": _text("id of a document that was retrieved"),
    "top_context": _text("id of the document that was ranked first"),
    "text": _text("words that question or answer contain"),
    "key": {"type": "string", "pattern": "^[0-9a-f]{32}$", "description": "key of an answer"},
    "limit": {
        "type": "integer",
        "minimum": 1,
        "maximum": tool_functions.MAX_LIMIT,
        "default": tool_functions.DEFAULT_LIMIT,
    },
    "more": {"type": "string", "pattern": "^[0-9]{1,6}$", "description": "cursor of an earlier reply"},
}


class Tool(NamedTuple):
    """A tool. `arguments` are those beside `more`; without the `required` ones it cannot be called."""

    run: Callable[[Call], Awaitable[Mapping[str, Any]]]
    description: str
    arguments: tuple[str, ...]
    reply: type
    required: tuple[str, ...] = ()

    def parameters(self) -> dict[str, Any]:
        """Return the schema of its arguments."""
        return {
            "type": "object",
            "properties": {name: _ARGUMENTS[name] for name in (*self.arguments, "more")},
            "required": list(self.required),
            "additionalProperties": False,
        }


TOOLS: Mapping[str, Tool] = {
    "status": Tool(
        tool_functions.status,
        "How answers are now: state, stage at fault by route, judges, sources, and each figure with level, change "
        "and n, the worst first.",
        ("route", "window"),
        replies.Status,
    ),
    "alarms": Tool(
        tool_functions.alarms,
        "What alarms now: drift of answers, segments, traffic and judges, crossed thresholds, canaries; and the "
        "deployments and index updates of the last week.",
        ("route",),
        replies.Alarms,
    ),
    "causes": Tool(
        tool_functions.causes,
        "What failing answers have in common: values of metadata, documents, words of questions, times; beyond "
        "chance. Without quantity, failing is any stage at fault.",
        tool_functions.ASKED,
        replies.Causes,
    ),
    "trend": Tool(
        tool_functions.trend,
        "Figures of a route, or of a suite of canaries, over time. With quantity its steps, the newest first.",
        ("route", "suite", "quantity", "judge", "range"),
        replies.Trend,
    ),
    "compare_windows": Tool(
        tool_functions.compare_windows,
        "Every quantity of a route before and after an instant, with the difference and its interval.",
        ("route", "at", "span", "judge"),
        replies.Compared,
        ("route", "at"),
    ),
    "worst_answers": Tool(
        tool_functions.worst_answers,
        "The answers with the worst scores of a quantity (faithfulness without one) of the last 24h, or since.",
        (*tool_functions.FILTERS, "quantity", "since", "limit"),
        replies.WorstAnswers,
    ),
    "answer": Tool(
        tool_functions.answer,
        "One answer: question, answer, scores, metadata, claims with their verdicts, contexts.",
        ("key", "judge"),
        replies.AnswerInFull,
        ("key",),
    ),
    "canaries": Tool(
        tool_functions.canaries,
        "The last run of each suite of known queries, and the queries that are degraded, wrong or failed.",
        ("suite",),
        replies.Canaries,
    ),
    "what_cannot_page": Tool(
        tool_functions.what_cannot_page,
        "Failures of answers that would page nobody under this configuration, each with the key that changes it, "
        "and quantities without a baseline.",
        (),
        replies.CannotPage,
    ),
}


async def answer_call(name: str, arguments: Mapping[str, object], read: Read, address: str) -> Mapping[str, Any]:
    """Answer a call of a tool. Raises RefusedCallError: it cannot be answered."""
    tool = TOOLS.get(name)
    if tool is None:
        raise RefusedCallError(f"there is no tool of this name; call one of {', '.join(TOOLS)}")
    call = Call(_checked(tool, arguments), read, address.rstrip("/"), Fence())
    try:
        return await tool.run(call)
    except RagwatchError as error:
        raise RefusedCallError("ragwatch does not answer this; it says:", str(error)) from error
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise RefusedCallError("the response is not that of a ragwatch of this version; give its address") from error


def _checked(tool: Tool, arguments: Mapping[str, object]) -> dict[str, str]:
    """Return arguments as texts, without those that are null.

    Raises:
        RefusedCallError: One is unknown, missing or of another type.
    """
    allowed = (*tool.arguments, "more")
    if any(name not in allowed for name in arguments):
        raise RefusedCallError(f"there is no such argument; write only {', '.join(allowed)}")
    given = {name: value for name, value in arguments.items() if value is not None and value != ""}
    for name in tool.required:
        if name not in given:
            raise RefusedCallError(f"{name}: is missing; write {_ARGUMENTS[name].get('description', 'it')}")
    return {name: _argument(name, value) for name, value in given.items()}


def _argument(name: str, value: object) -> str:
    schema = _ARGUMENTS[name]
    if schema["type"] == "integer":
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= tool_functions.MAX_LIMIT:
            raise RefusedCallError(
                f"{name}: is not in range; write a whole number from 1 to {tool_functions.MAX_LIMIT}"
            )
        return str(value)
    if not isinstance(value, str) or len(value) > MAX_CHARS or not value.isprintable():
        raise RefusedCallError(f"{name}: is no text; write one of at most {MAX_CHARS} printable characters")
    choices = schema.get("enum")
    if isinstance(choices, list) and value not in choices:
        raise RefusedCallError(f"{name}: is not known; write one of {', '.join(choices)}")
    if name == "more" and not _CURSOR.fullmatch(value):
        raise RefusedCallError("more: is no cursor; write the `more` of an earlier reply, or leave it out")
    return value
