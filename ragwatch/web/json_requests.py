"""Serves JSON requests that change something: labels by people, the erasure of a person, answers to be read again.

Invalid requests are refused with the reason.
"""

import math
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from time import monotonic
from typing import Protocol, TypedDict, TypeGuard
from urllib.parse import urlencode

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from ragwatch.errors import ConfigError, RagwatchError
from ragwatch.ports import Erased, Erasure
from ragwatch.statistics.labels.label import LabelQueue, LabelTask
from ragwatch.web.audit_trail import shown
from ragwatch.web.authentication import USER
from ragwatch.web.json_values import ParameterError, check_names, dumps, json_object, json_reply, read_body
from ragwatch.web.request_limit import RequestLimit
from ragwatch.web.samples import KEY

HOUR = 3600.0
MAX_LABELS = 500
_MAX_KEYS = 100  # of answers to be read again
MAX_TASKS = 200
MAX_NAME_CHARS = 64
MAX_NOTE_CHARS = 10_000
_FROM_CLIENTS = ("key", "annotator", "at", "scores", "claims", "note")
PAGE_BYTES = 4 << 20  # of labels per response
TASKS_SIZE, PUT_SIZE = 16 << 20, 8 << 20  # approximate memory for one response
Body = Mapping[str, object]


class LabelService(Protocol):
    """Selects samples for annotators and stores their labels. Every method may block on disk I/O."""

    def tasks(self, annotator: str, count: int) -> list[LabelTask]:
        """Samples for an annotator, sorted as they are to be shown."""

    def queue(self, annotator: str) -> LabelQueue:
        """Samples that were given to an annotator: `given`, `open`, and how many are `done` and labelled `twice`."""

    def task(self, key: str) -> LabelTask | None:
        """A sample with its texts and claims, without a verdict; None if it cannot be labelled."""

    def put(self, records: Iterable[Mapping[str, object]]) -> dict[str, int]:
        """Stores labels; returns how many are new, replaced and unmatched. Raises ValueError for invalid ones."""

    def revoke(self, key: str, annotator: str | None = None) -> int:
        """Takes labels on a sample back, of one annotator or of all; returns how many."""

    @property
    def per_hour(self) -> int:
        """Labels that an authenticated annotator may send per hour."""

    def labels(self, after: tuple[float, str, str] | None = None, /) -> Iterable[dict[str, object]]:
        """All labels, oldest first; with `after`, those after this (at, key, annotator)."""

    def pruned_until(self) -> float | None:
        """Unix time up to which retention has deleted some answers and kept others; None if it has deleted none."""


def author(request: Request) -> str | None:
    """The authenticated client; None for one that did not say who it is."""
    name: object = request.scope.get(USER)
    return name if isinstance(name, str) else None


def check_author(name: str, user: str | None) -> None:
    """Refuses a label under the name of another person. Raises HTTPException: 403."""
    if user is not None and name != user:
        raise HTTPException(
            403,
            f"annotator: you are {user}, and labels are stored under that name, not {name!r}; use --annotator {user}",
        )


class LabelRate:
    """Counts the labels of each authenticated annotator in the last hour."""

    def __init__(self, refused: Callable[[str], None], clock: Callable[[], float] = monotonic) -> None:
        self._refused = refused
        self._clock = clock
        self._sent: dict[str, deque[tuple[float, int]]] = {}

    def take(self, user: str | None, labels: int, per_hour: int) -> None:
        """Counts labels, or refuses all of them. Raises HTTPException: 429, with `Retry-After`."""
        if user is None:
            return
        now, sent = self._clock(), self._sent.setdefault(user, deque())
        while sent and sent[0][0] <= now - HOUR:
            sent.popleft()
        total = sum(count for _, count in sent)
        if total + labels <= per_hour:
            sent.append((now, labels))
            return
        self._refused("labels")
        wait = math.ceil(sent[0][0] + HOUR - now) if sent else int(HOUR)
        raise HTTPException(
            429,
            f"labels: {user} has sent {total} in the last hour, and {labels} more would exceed the {per_hour} of "
            "labels.per_hour; retry later, or send fewer",
            {"Retry-After": str(wait)},
        )


def label_routes(annotation: Callable[[], LabelService], limit: RequestLimit, rate: LabelRate) -> list[Route]:
    """`POST /v1/labels/tasks`, `/v1/labels`, `/v1/labels/revoke`, `GET /api/v1/labels`."""

    def post(path: str, made: Callable[[LabelService, Body, str | None], object], size: int) -> Route:
        async def serve(request: Request) -> ASGIApp:
            body, user = await read_body(request), author(request)
            return await limit.answer(lambda: json_reply(made(annotation(), json_object(body, "labels"), user)), size)

        return Route(path, serve, methods=["POST"])

    async def export(request: Request) -> ASGIApp:
        after = _cursor(request.query_params.get("after"))
        return await limit.answer(lambda: json_reply(_page(annotation(), after)), PAGE_BYTES)

    return [
        post("/v1/labels/tasks", _tasks, TASKS_SIZE),
        post("/v1/labels", partial(_put, rate), PUT_SIZE),
        post("/v1/labels/revoke", _revoke, PUT_SIZE),
        Route("/api/v1/labels", export),
    ]


def _tasks(annotation: LabelService, body: Body, user: str | None) -> dict[str, list[LabelTask]]:
    name, count = annotator_name(body.get("annotator")), body.get("count")
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MAX_TASKS:
        raise ParameterError(f"count: not a whole number from 1 to {MAX_TASKS}")
    check_author(name, user)
    try:
        tasks = annotation.tasks(name, count)
    except ConfigError as error:  # texts are not kept
        raise ParameterError(str(error)) from error
    shown(task["key"] for task in tasks)
    return {"tasks": tasks}


def _revoke(annotation: LabelService, body: Body, user: str | None) -> dict[str, int]:
    key, name = body.get("key"), body.get("annotator", user)
    if not isinstance(key, str) or not KEY.fullmatch(key):
        raise ParameterError("key: not the key of a sample")
    annotator = None if name is None else annotator_name(name)
    if annotator is not None:
        check_author(annotator, user)
    shown((key,))
    return {"revoked": annotation.revoke(key, annotator)}


def _put(rate: LabelRate, annotation: LabelService, body: Body, user: str | None) -> dict[str, int]:
    records = body.get("labels")
    if not isinstance(records, list) or not 0 < len(records) <= MAX_LABELS:
        raise ParameterError(f"labels: not a list of 1 to {MAX_LABELS}")
    if not all(isinstance(record, dict) for record in records):
        raise ParameterError("labels: not all are objects")
    for record in records:
        check_author(annotator_name(record.get("annotator")), user)
        if not isinstance(note := record.get("note", ""), str) or len(note) > MAX_NOTE_CHARS:
            raise ParameterError(f"labels: a note that is no text of at most {MAX_NOTE_CHARS} characters")
    rate.take(user, len(records), annotation.per_hour)
    shown(key for record in records if isinstance(key := record.get("key"), str) and KEY.fullmatch(key))
    try:  # probabilities come from our own selection, and what is taken back is so by `revoke`
        return annotation.put(
            [{name: record.get(name) for name in _FROM_CLIENTS if name in record} for record in records]
        )
    except ValueError as error:
        raise ParameterError(f"labels: {error}") from error


def annotator_name(name: object) -> str:
    """Checks the name of an annotator. Raises ParameterError: it is not one."""
    if not isinstance(name, str) or not 0 < len(name.strip()) <= MAX_NAME_CHARS or not name.isprintable():
        raise ParameterError(f"annotator: not a name of 1 to {MAX_NAME_CHARS} characters")
    return name


def _cursor(text: str | None) -> tuple[float, str, str] | None:
    if text is None:
        return None
    with suppress(ValueError):
        match orjson.loads(text):
            case [int() | float() as at, str(key), str(annotator)]:
                return float(at), key, annotator
    raise ParameterError("after: not a cursor; use the whole address from `next`")


def _page(annotation: LabelService, after: tuple[float, str, str] | None) -> dict[str, object]:
    """Builds a page of labels; `next` is the address of the following page, if there is one."""
    labels: list[dict[str, object]] = []
    page: dict[str, object] = {"labels": labels, "picked_until": annotation.pruned_until()}
    size = 0
    for label in annotation.labels() if after is None else annotation.labels(after):
        size += len(dumps(label))
        if labels and size > PAGE_BYTES:
            last = labels[-1]
            cursor = dumps([last["at"], last["key"], last["annotator"]]).decode()
            return page | {"next": f"/api/v1/labels?{urlencode({'after': cursor})}"}
        labels.append(label)
    return page


Forget = Callable[[Erasure, bool], Awaitable[Erased]]
"""Erases, or only counts where the second argument is true."""


class RejudgeFields(TypedDict):
    """The checked fields of a request."""

    judge: str
    of: str
    share: float
    keys: tuple[str, ...]
    charted_before: float


Rejudge = Callable[[RejudgeFields], Awaitable[Mapping[str, object]]]
"""Has answers read, from the checked fields of a request. Returns what became of them, as JSON values."""


def operation_routes(forget: Forget, rejudge: Rejudge) -> list[Route]:
    """`POST /v1/forget` and `POST /v1/rejudge`. What is erased stands in the body, which no log contains."""

    async def erase(request: Request) -> Response:
        body = json_object(await read_body(request), "ids")
        erasure, dry_run = _erasure(body), _flag(body, "dry_run")
        try:
            erased = await forget(erasure, dry_run)
        except RagwatchError as error:
            return json_reply({"error": str(error)}, 503)
        if not dry_run:
            shown(erased.keys)
        counts = {name: value for name, value in asdict(erased).items() if name not in ("keys", "texts")}
        return json_reply({"answers": len(erased.keys), **counts})

    async def read(request: Request) -> Response:
        fields = _rejudge_fields(json_object(await read_body(request), "keys"))
        try:
            outcome = await rejudge(fields)
        except RagwatchError as error:
            return json_reply({"error": str(error)}, 503)
        shown(fields["keys"])
        return json_reply(dict(outcome))

    return [Route("/v1/forget", erase, methods=["POST"]), Route("/v1/rejudge", read, methods=["POST"])]


def _are_texts(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(text, str) and text for text in value)


def _erasure(body: Mapping[str, object]) -> Erasure:
    check_names(body, ("ids", "metadata", "with_scores", "dry_run"))
    ids, pairs = body.get("ids", []), body.get("metadata", [])
    if not _are_texts(ids):
        raise ParameterError("ids: not a list of texts that are not empty")
    if not isinstance(pairs, list) or not all(_are_texts(pair) and len(pair) == 2 for pair in pairs):
        raise ParameterError("metadata: not a list of pairs of key and value, each a text that is not empty")
    if not ids and not pairs:
        raise ParameterError("ids: is missing; give ids, or metadata")
    return Erasure(frozenset(ids), frozenset((key, value) for key, value in pairs), _flag(body, "with_scores"))


def _flag(body: Mapping[str, object], name: str) -> bool:
    value = body.get(name, False)
    if not isinstance(value, bool):
        raise ParameterError(f"{name}: is neither true nor false")
    return value


def _rejudge_fields(body: Mapping[str, object]) -> RejudgeFields:
    """Check the fields of a request. Raises ParameterError: one is unknown, missing or invalid."""
    check_names(body, ("judge", "of", "share", "keys", "charted_before"))
    judge, other = _judge_name(body, "judge"), _judge_name(body, "of")
    keys, share, before = body.get("keys"), body.get("share", 1.0), body.get("charted_before")
    if not isinstance(keys, list) or not keys or not all(isinstance(key, str) and KEY.fullmatch(key) for key in keys):
        raise ParameterError("keys: not a list of keys of samples, of 32 hexadecimal digits each")
    if len(keys) > _MAX_KEYS:
        raise ParameterError(f"keys: {len(keys)}, at most {_MAX_KEYS} in one request")
    if not _is_number(share) or not 0.0 < share <= 1.0:
        raise ParameterError("share: not a number above 0, at most 1")
    if before is not None and not _is_number(before):
        raise ParameterError("charted_before: not a number of seconds since the epoch")
    return {
        "judge": judge,
        "of": other,
        "share": float(share),
        "keys": tuple(keys),
        "charted_before": math.inf if before is None else float(before),
    }


def _judge_name(body: Mapping[str, object], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str) or not value:
        raise ParameterError(f"{name}: is not the name of a judge")
    return value


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
