"""Describes `/api/v1` as an OpenAPI document, from the names and limits that the endpoints themselves check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ragwatch import __version__
from ragwatch.statistics.trends import RANGES
from ragwatch.web import samples
from ragwatch.web.json_body import json_reply
from ragwatch.web.pages.causes import PARAMETERS as CAUSE_PARAMETERS
from ragwatch.web.pages.changes_page import SAME, SPANS, ChangeRequest
from ragwatch.web.pages.pages import Site
from ragwatch.web.pages.segment_values import Sort
from ragwatch.web.pages.segments_page import SegmentRequest
from ragwatch.web.pages.trends_page import TrendRequest
from ragwatch.web.replies import answer_replies, drift_replies, figure_replies
from ragwatch.web.replies.json_schema import TEXT, Schema, named, one_of, record_of

PREFIX = "/api/v1"
PATH = f"{PREFIX}/openapi.json"
_STATUSES: Mapping[int, str] = {
    400: "a parameter is unknown, repeated or invalid; `error` names it",
    404: "there is none of this name or key",
    503: "the store cannot be read, or too many requests are in progress: then the body is a text",
}
_REFUSALS: Mapping[int, str] = {
    401: "the client does not say who it is",
    403: "the client lacks the right `pages`, or the Host header is not allowed",
    405: "only GET and HEAD are answered",
    429: "too many requests; `Retry-After` says when to ask again",
}


_REPLIES = (
    *(figure_replies.Error, figure_replies.Figure, figure_replies.StageShare, figure_replies.Snapshot),
    *(figure_replies.Route, drift_replies.Segment, figure_replies.Trends, figure_replies.Changes),
    *(drift_replies.Drift, drift_replies.Canaries, drift_replies.Causes, answer_replies.Verdict),
    *(answer_replies.Samples, answer_replies.SampleInFull, answer_replies.Prompt, answer_replies.Labels),
)
"""Replies that have a name in the document."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One endpoint of the API.

    Attributes:
        summary: What it returns.
        shape: Name of the schema of the response.
        parameters: Schema by name of the query parameter.
        required: Query parameters without which the response is a 400 or 404.
        errors: Status of the errors that are JSON, beside 503.
        unlike: Statuses that have the shape of the response: the data is there, and `error` says what is missing.
        tagged: Whether the response has an entity tag; one that is streamed has none.
    """

    summary: str
    shape: str
    parameters: Mapping[str, Schema] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    errors: tuple[int, ...] = ()
    unlike: tuple[int, ...] = ()
    tagged: bool = True


def operations(criteria: Sequence[str] = ()) -> dict[str, Operation]:
    """Returns the endpoints by path below `/api/v1`."""
    search = samples.schemas(criteria)
    json_search = {**search, "sort": one_of([samples.Order.NEWEST])}
    causes = {name: {"window": samples.AGE, **search}[name] for name in CAUSE_PARAMETERS}
    trends = dict.fromkeys(TrendRequest.__slots__, TEXT) | {"range": one_of(("", *RANGES))}
    changes = dict.fromkeys(ChangeRequest.__slots__, TEXT)
    changes |= {"at": samples.TIME, "span": one_of(("", *SPANS)), "questions": one_of(("", SAME))}
    segment = dict.fromkeys(SegmentRequest.__slots__, TEXT)
    segment |= {"sort": one_of(("", *Sort)), "page": {"type": "integer", "minimum": 1}}
    window = {"window": TEXT}
    return {
        "/snapshot": Operation("Estimates, stages at fault, sources and judges at present", "Snapshot", window),
        "/canaries": Operation("The last run of each canary suite, and its history", "Canaries"),
        "/samples": Operation(
            "Verdicts, the newest first; with `texts=true` whole, a page at a time",
            "Samples",
            json_search,
            errors=(400,),
        ),
        "/samples/{key}": Operation("One answer in full", "SampleInFull", errors=(404,), tagged=False),
        "/samples/{key}/prompt": Operation(
            "What an LLM judge is asked about one answer, built again", "Prompt", {"judge": TEXT}, ("judge",), (404,)
        ),
        "/labels": Operation(
            "Labels by people, oldest first, a page at a time", "Labels", {"after": samples.CURSOR}, (), (400,)
        ),
        "/drift": Operation("Drift evidence and alarms", "Drift", unlike=(503,)),
        "/routes": Operation(
            "Retrieval, generation and end-to-end figures of a route", "Route", {"route": TEXT, **window}, unlike=(404,)
        ),
        "/segments/{segment}": Operation(
            "The values of a segment by change and level", "Segment", segment, errors=(400,), unlike=(404, 503)
        ),
        "/trends": Operation(
            "Every quantity of a route, or every figure of a canary suite, over time",
            "Trends",
            trends,
            errors=(400,),
            unlike=(404, 503),
        ),
        "/changes": Operation(
            "Before and after an instant", "Changes", changes, ("at",), errors=(400,), unlike=(404, 503)
        ),
        "/causes": Operation("What failing answers have in common", "Causes", causes, errors=(400,)),
        "/openapi.json": Operation("This document", "Document"),
    }


def document(criteria: Sequence[str] = ()) -> dict[str, object]:
    """Builds the OpenAPI document.

    >>> document()["openapi"]
    '3.1.0'
    """
    replies = {reply.__name__: record_of(reply, _REPLIES) for reply in _REPLIES}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "ragwatch",
            "version": __version__,
            "description": (
                "Figures, verdicts and labels as JSON. Reading needs the right `pages`. A list that does not fit into "
                "one response ends with `next`, the address of the following page: use it as it is. Responses with an "
                "ETag answer If-None-Match with 304; the tag does not cover `now` and the ages counted from it. "
                "Properties may be added, none is taken away or changes its meaning within v1."
            ),
        },
        "paths": {f"{PREFIX}{path}": {"get": _operation(path, one)} for path, one in operations(criteria).items()},
        "components": {
            "schemas": {**replies, "Document": {"type": "object"}},
            "securitySchemes": {
                "basic": {"type": "http", "scheme": "basic"},
                "bearer": {"type": "http", "scheme": "bearer"},
            },
        },
        "security": [{}, {"basic": []}, {"bearer": []}],
    }


def _operation(path: str, operation: Operation) -> dict[str, object]:
    parameters = [
        {"name": name, "in": "query", "required": name in operation.required, "schema": schema}
        for name, schema in operation.parameters.items()
    ]
    if "{key}" in path:
        key: Schema = {"type": "string", "pattern": f"^{samples.KEY.pattern}$"}
        parameters.append({"name": "key", "in": "path", "required": True, "schema": key})
    if "{segment}" in path:
        key = {**TEXT, "description": "a key under `segments`, or `step` for the steps of retrieval"}
        parameters.append({"name": "segment", "in": "path", "required": True, "schema": key})
    errors = dict.fromkeys((*operation.errors, 503), "Error") | dict.fromkeys(operation.unlike, operation.shape)
    tag = {"ETag": {"schema": TEXT, "description": "tag of the content"}} if operation.tagged else {}
    return {
        "operationId": path.strip("/").replace("/{key}", "_by_key").replace("/{segment}", "").replace(".json", ""),
        "summary": operation.summary,
        "parameters": parameters,
        "responses": {
            "200": {"description": operation.summary, "headers": tag, "content": _json(operation.shape)},
            **({"304": {"description": "unchanged since the ETag in If-None-Match"}} if operation.tagged else {}),
            **{str(status): _error(status, shape) for status, shape in sorted(errors.items())},
            **{str(status): {"description": text, "content": _TEXT} for status, text in _REFUSALS.items()},
        },
    }


_TEXT = {"text/plain": {"schema": TEXT}}


def _json(shape: str) -> dict[str, object]:
    return {"application/json": {"schema": named(shape)}}


def _error(status: int, shape: str) -> dict[str, object]:
    """A response with an error; one for want of capacity is a text."""
    if shape != "Error" and status == 503:
        return {
            "description": _STATUSES[status],
            "content": {"application/json": {"schema": {"anyOf": [named(shape), named("Error")]}}, **_TEXT},
        }
    return {"description": _STATUSES[status], "content": _json(shape) | (_TEXT if status == 503 else {})}


def openapi_routes(site: Site) -> list[Route]:
    """The route of the document."""

    async def serve(_: Request) -> Response:
        return json_reply(document(site.scope().criteria))

    return [Route(PATH, serve)]
