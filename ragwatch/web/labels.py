"""Labels: the door for people's words. JSON in, JSON out; what is not as described is refused with the reason."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Protocol
from urllib.parse import urlencode

import orjson
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp

from ragwatch.web.reply import dumps, json_reply
from ragwatch.web.request_limit import RequestLimit
from ragwatch.web.samples import ParameterError

MOST_BYTES = 4 << 20
MOST_VALUES = 250_000  # of JSON in a body, with the commas and brackets of its texts
MOST_LABELS = 500
MOST_TASKS = 200
NAME_CHARS = 64
NOTE_CHARS = 10_000
PAGE_BYTES = 4 << 20  # of labels in a response
TASKS_SIZE, PUT_SIZE = 16 << 20, 8 << 20  # that making a response takes, about


class LabelService(Protocol):
    """Who gives samples to people and keeps their words. Every method may block on a disk."""

    def tasks(self, annotator: str, count: int) -> list[dict[str, Any]]:
        """Samples for a person, to be shown in this order."""
        ...

    def put(self, records: Iterable[Mapping[str, Any]]) -> dict[str, int]:
        """Keep words. Returns how many are new, replaced and unmatched. Raises ValueError for what is no label."""
        ...

    def labels(self, after: tuple[float, str, str] | None = None, /) -> Iterable[dict[str, Any]]:
        """All words, oldest first; those behind that (at, key, annotator), where one is given."""
        ...

    def picked_until(self) -> float | None:
        """Instant up to which retention has taken some answers and left others; None where it took none."""
        ...


def label_routes(annotation: Callable[[], LabelService] | None, turns: RequestLimit) -> list[Route]:
    """`POST /v1/labels/tasks`, `POST /v1/labels` and `GET /api/v1/labels`; none where nobody takes words.

    Args:
        annotation: Who takes them at present.
        turns: When it is a request's turn.
    """
    if annotation is None:
        return []

    async def tasks(request: Request) -> ASGIApp:
        body = await _body(request)
        return await turns.answer(lambda: json_reply({"tasks": _tasks(annotation(), _object(body))}), TASKS_SIZE)

    async def put(request: Request) -> ASGIApp:
        body = await _body(request)
        return await turns.answer(lambda: json_reply(_put(annotation(), _object(body))), PUT_SIZE)

    async def every(request: Request) -> ASGIApp:
        after = _place(request.query_params.get("after"))
        return await turns.answer(lambda: json_reply(_page(annotation(), after)), PAGE_BYTES)

    return [
        _post("/v1/labels/tasks", tasks),
        _post("/v1/labels", put),
        Route("/api/v1/labels", every),
    ]


def _post(path: str, door: Callable[[Request], Awaitable[ASGIApp]]) -> Route:
    return Route(path, door, methods=["POST"])


def _tasks(annotation: LabelService, asked: Mapping[str, Any]) -> list[dict[str, Any]]:
    return annotation.tasks(_annotator(asked.get("annotator")), _count(asked.get("count")))


def _put(annotation: LabelService, asked: Mapping[str, Any]) -> dict[str, int]:
    given = asked.get("labels")
    if not isinstance(given, list) or not 0 < len(given) <= MOST_LABELS:
        raise ParameterError(f"labels: not a list of 1 to {MOST_LABELS}")
    if not all(isinstance(each, dict) for each in given):
        raise ParameterError("labels: one is not an object")
    for each in given:
        _annotator(each.get("annotator"))
        if len(str(each.get("note", ""))) > NOTE_CHARS:
            raise ParameterError(f"labels: a note of more than {NOTE_CHARS} characters")
    try:
        return annotation.put(given)
    except ValueError as error:
        raise ParameterError(f"labels: {error}") from error


async def _body(request: Request) -> bytes:
    """The body of a request, which is not read beyond what may be.

    Raises:
        ParameterError: There is too much of it.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            raise ParameterError(f"body: more than {MOST_BYTES} bytes")
    return bytes(body)


def _object(body: bytes) -> dict[str, Any]:
    """The JSON object in a body. Values are counted before they are made: each takes many times its text.

    Raises:
        ParameterError: There is none.
    """
    if sum(map(body.count, (b",", b"[", b"{"))) > MOST_VALUES:
        raise ParameterError(f"body: more than {MOST_VALUES} values; send fewer labels at a time")
    try:
        found = orjson.loads(body)
    except ValueError as error:
        raise ParameterError(f"body: not JSON: {error}") from error
    if not isinstance(found, dict):
        raise ParameterError("body: not an object")
    return found


def _annotator(name: object) -> str:
    if not isinstance(name, str) or not 0 < len(name.strip()) <= NAME_CHARS or not name.isprintable():
        raise ParameterError(f"annotator: not a name of 1 to {NAME_CHARS} characters")
    return name


def _count(count: object) -> int:
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MOST_TASKS:
        raise ParameterError(f"count: not a whole number from 1 to {MOST_TASKS}")
    return count


def _page(annotation: LabelService, after: tuple[float, str, str] | None) -> dict[str, Any]:
    """Words as far as a response goes; `next` is the address of those that no longer fit, where there are any."""
    found: list[dict[str, Any]] = []
    size = 0
    for each in annotation.labels() if after is None else annotation.labels(after):
        size += len(dumps(each))
        if found and size > PAGE_BYTES:
            last = found[-1]
            place = dumps([last["at"], last["key"], last["annotator"]]).decode()
            return _told(annotation, found) | {"next": f"/api/v1/labels?{urlencode({'after': place})}"}
        found.append(each)
    return _told(annotation, found)


def _told(annotation: LabelService, labels: list[dict[str, Any]]) -> dict[str, Any]:
    return {"labels": labels, "picked_until": annotation.picked_until()}


def _place(text: str | None) -> tuple[float, str, str] | None:
    try:
        at, key, annotator = ("", "", "") if text is None else orjson.loads(text)
        return None if text is None else (float(at), str(key), str(annotator))
    except (ValueError, TypeError) as error:
        raise ParameterError("after: not a place; take the whole address from `next`") from error
