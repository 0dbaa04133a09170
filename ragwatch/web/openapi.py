"""Describes `/api/v1` as an OpenAPI document, from the names and limits that the endpoints themselves check.

Here are the types of the replies about answers and labels, which no page builds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, NotRequired, TypedDict

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ragwatch import __version__
from ragwatch.model.evidence import ClaimVerdict
from ragwatch.statistics.trends import RANGES
from ragwatch.statistics.verdict_line import ContextLine
from ragwatch.web import samples
from ragwatch.web.json_values import TEXT, Also, Schema, json_reply, named, one_of, record_of
from ragwatch.web.pages import drift_replies, figure_replies
from ragwatch.web.pages.causes import PARAMETERS as CAUSE_PARAMETERS
from ragwatch.web.pages.changes_page import SAME, SPANS, ChangeRequest
from ragwatch.web.pages.figure_replies import Anything, Count, Key, Share, Time
from ragwatch.web.pages.pages import Site
from ragwatch.web.pages.prompt_page import Prompt
from ragwatch.web.pages.segments_page import SegmentRequest, Sort
from ragwatch.web.pages.trends_page import TrendRequest

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
_TEXT = {"text/plain": {"schema": TEXT}}
_IN_PATH: Mapping[str, Schema] = {
    "key": {"type": "string", "pattern": f"^{samples.KEY.pattern}$"},
    "segment": {**TEXT, "description": "a key under `segments`, or `step` for the steps of retrieval"},
}
Outcome = Annotated[str, Also(enum=list(samples.OUTCOMES))]


class ReplyClaim(TypedDict):
    """A claim; lines of older versions lack fields."""

    text: str
    start: Count | None
    end: Count | None
    verdict: ClaimVerdict
    support: Share | None
    contexts: Sequence[Count]
    joint: NotRequired[bool]
    informed: NotRequired[Sequence[Count]]
    evidence: NotRequired[str | None]
    said_by_user: NotRequired[bool]
    facts: NotRequired[Count]


class CitationLine(TypedDict):
    """A citation of an answer, and whether the context supports what cites it."""

    context: Count
    start: Count
    end: Count
    supports: bool


class CriterionLine(TypedDict):
    """What a judge says to a criterion, with the words it stands on."""

    name: str
    answer: str | None
    quote: str | None


class Verdict(TypedDict):
    """A verdict line with its place; without its texts there are the figures alone."""

    key: Key
    judge_name: str
    route: str
    at: Time
    probability: Share
    outcome: Outcome
    reason: str | None
    stage: str | None
    fault: str | None
    scores: Mapping[str, float | None] | None
    id: NotRequired[str]
    trace_id: NotRequired[str | None]
    expected: NotRequired[Mapping[str, float]]
    claims: NotRequired[Sequence[ReplyClaim]]
    contexts: NotRequired[Sequence[ContextLine]]
    missing: NotRequired[Sequence[str]]
    address: NotRequired[str | None]
    reference: NotRequired[Anything | None]
    unread: NotRequired[str | None]
    language: NotRequired[str]
    counted_as: NotRequired[str]
    judge: NotRequired[Anything]
    citations: NotRequired[Sequence[CitationLine]]
    instructions: NotRequired[Sequence[str]]
    criteria: NotRequired[Sequence[CriterionLine]]


Sample = Annotated[Anything, Also(description="a redacted record; lists hold excerpts of id, question and answer")]


class SampleRow(TypedDict):
    """A verdict with its sample."""

    verdict: Verdict
    sample: Sample | None
    error: NotRequired[str]
    truncated: NotRequired[bool]


class Samples(TypedDict):
    """A page of verdicts."""

    samples: Sequence[SampleRow]
    next: NotRequired[str]
    error: NotRequired[str]
    examined_since: NotRequired[Time]


class Feedback(TypedDict):
    """What a user said of an answer."""

    user_score: Share
    at: Time


class SampleInFull(TypedDict):
    """Everything about one answer."""

    key: Key
    verdicts: Sequence[Verdict]
    sample: Sample | None
    feedback: Feedback | None
    truncated: NotRequired[Sequence[str]]
    errors: NotRequired[Sequence[str]]


class LabelLine(TypedDict):
    """A label by a person."""

    key: str
    annotator: str
    at: Time
    scores: Mapping[str, Share]
    claims: Sequence[ClaimVerdict | None]
    probability: Share | None
    note: str
    criteria: NotRequired[Sequence[str]]
    owner: NotRequired[str]
    without: NotRequired[Mapping[str, float]]
    revoked: NotRequired[Time]
    earlier: NotRequired[Sequence[Anything]]


class Labels(TypedDict):
    """A page of labels; `picked_until` is when retention last deleted some answers and kept others."""

    labels: Sequence[LabelLine]
    picked_until: Time | None
    next: NotRequired[str]


_REPLIES = (
    *(figure_replies.Error, figure_replies.Figure, figure_replies.StageShare, figure_replies.Snapshot),
    *(figure_replies.Route, drift_replies.Segment, figure_replies.Trends, figure_replies.Changes),
    *(drift_replies.Drift, drift_replies.Canaries, drift_replies.Causes, Verdict),
    *(Samples, SampleInFull, Prompt, Labels),
)
"""Replies that have a name in the document."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One endpoint of the API."""

    summary: str  # what it returns
    shape: str  # name of the schema of the response
    parameters: Mapping[str, Schema] = field(default_factory=dict)  # of the query, by name
    required: tuple[str, ...] = ()  # parameters without which the response is a 400 or 404
    errors: tuple[int, ...] = ()  # statuses of the errors that are JSON, beside 503
    unlike: tuple[int, ...] = ()  # statuses with the shape of the response: data is there, `error` says what is missing
    tagged: bool = True  # whether the response has an entity tag; one that is streamed has none


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
    """Builds the OpenAPI document."""
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
    parameters += [
        {"name": name, "in": "path", "required": True, "schema": schema}
        for name, schema in _IN_PATH.items()
        if f"{{{name}}}" in path
    ]
    errors = {status: ["Error"] for status in (*operation.errors, 503)}
    errors |= {status: [operation.shape] for status in operation.unlike}
    if 503 in operation.unlike:  # or the store can be read, and the process is busy
        errors[503].append("Error")
    tag = {"ETag": {"schema": TEXT, "description": "tag of the content"}} if operation.tagged else {}
    return {
        "operationId": path.strip("/").replace("/{key}", "_by_key").replace("/{segment}", "").replace(".json", ""),
        "summary": operation.summary,
        "parameters": parameters,
        "responses": {
            "200": {"description": operation.summary, "headers": tag, "content": _json(operation.shape)},
            **({"304": {"description": "unchanged since the ETag in If-None-Match"}} if operation.tagged else {}),
            **{
                str(status): {
                    "description": _STATUSES[status],
                    "content": _json(*shapes) | (_TEXT if status == 503 else {}),
                }
                for status, shapes in sorted(errors.items())
            },
            **{str(status): {"description": text, "content": _TEXT} for status, text in _REFUSALS.items()},
        },
    }


def _json(*shapes: str) -> dict[str, object]:
    schemas = [named(shape) for shape in shapes]
    return {"application/json": {"schema": schemas[0] if len(schemas) == 1 else {"anyOf": schemas}}}


def openapi_routes(site: Site) -> list[Route]:
    """The route of the document."""

    async def serve(_: Request) -> Response:
        return json_reply(document(site.scope().criteria))

    return [Route(PATH, serve)]
