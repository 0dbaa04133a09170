"""Labels: the door for people's words. JSON in, JSON out; what is not as described is refused with the reason."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Protocol

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ragwatch.web.samples import ParameterError

MOST_BYTES = 4 << 20
MOST_LABELS = 500
MOST_TASKS = 200
NAME_CHARS = 64


class Annotation(Protocol):
    """Who gives samples to people and keeps their words. Every method may block on a disk."""

    def tasks(self, annotator: str, count: int) -> list[dict[str, Any]]:
        """Samples for a person, to be shown in this order."""
        ...

    def put(self, records: Iterable[Mapping[str, Any]]) -> dict[str, int]:
        """Keep words. Returns how many are new, replaced and unmatched. Raises ValueError for what is no label."""
        ...

    def labels(self) -> list[dict[str, Any]]:
        """All words, oldest first."""
        ...

    def picked_until(self) -> float | None:
        """Instant up to which retention has taken some answers and left others; None where it took none."""
        ...


def label_routes(annotation: Callable[[], Annotation] | None) -> list[Route]:
    """`POST /v1/labels/tasks`, `POST /v1/labels` and `GET /api/v1/labels`; none where nobody takes words.

    Args:
        annotation: Who takes them at present.
    """
    if annotation is None:
        return []

    async def tasks(request: Request) -> Response:
        asked = await _body(request)
        annotator, count = _annotator(asked.get("annotator")), _count(asked.get("count"))
        return _json({"tasks": await run_in_threadpool(annotation().tasks, annotator, count)})

    async def put(request: Request) -> Response:
        given = (await _body(request)).get("labels")
        if not isinstance(given, list) or not 0 < len(given) <= MOST_LABELS:
            raise ParameterError(f"labels: not a list of 1 to {MOST_LABELS}")
        if not all(isinstance(each, dict) for each in given):
            raise ParameterError("labels: one is not an object")
        for each in given:
            _annotator(each.get("annotator"))
        try:
            return _json(await run_in_threadpool(annotation().put, given))
        except ValueError as error:
            raise ParameterError(f"labels: {error}") from error

    async def every(_: Request) -> Response:
        labels, until = annotation().labels, annotation().picked_until
        return _json({"labels": await run_in_threadpool(labels), "picked_until": await run_in_threadpool(until)})

    return [
        _post("/v1/labels/tasks", tasks),
        _post("/v1/labels", put),
        Route("/api/v1/labels", every),
    ]


def _post(path: str, door: Callable[[Request], Awaitable[Response]]) -> Route:
    return Route(path, door, methods=["POST"])


async def _body(request: Request) -> dict[str, Any]:
    """The object in the body of a request, which is not read beyond what may be.

    Raises:
        ParameterError: There is none, or too much of it.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            raise ParameterError(f"body: more than {MOST_BYTES} bytes")
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


def _json(value: object) -> Response:
    body = orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS, default=dict)
    return Response(body, media_type="application/json")
