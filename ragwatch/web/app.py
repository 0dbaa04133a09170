"""App: the endpoints. What may block (rendering, the store) happens in a thread, so that the loops never wait."""

from __future__ import annotations

import gzip
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import time
from types import MappingProxyType
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from ragwatch import __version__
from ragwatch.board import Board
from ragwatch.errors import RagwatchError, StoreError
from ragwatch.ports import Query, Store
from ragwatch.web import samples
from ragwatch.web.bodies import Bodies
from ragwatch.web.canaries import canaries, suites_of
from ragwatch.web.drift_page import drift_routes
from ragwatch.web.guard import HEADERS, Guard
from ragwatch.web.labels import Annotation, label_routes
from ragwatch.web.overview import overview
from ragwatch.web.pages import canaries_page, overview_page
from ragwatch.web.samples_page import sample_routes
from ragwatch.web.scope import Scope

Action = Callable[[Mapping[str, str]], Awaitable[str]]
"""What a POST does: its query parameters to what it says. Raises `ParameterError` (400) for those it cannot take, and
a `RagwatchError` (500) where it failed."""
NO_ACTIONS: Mapping[str, Action] = MappingProxyType({})
Render = Callable[[str, Sequence[str]], tuple[bytes, str]]
GZIP_ABOVE = 1024
GZIP_LEVEL = 5
_STATIC = Path(__file__).parent / "static"
_NOT_GET = ("GET", "HEAD", "PUT", "PATCH", "DELETE")


def build_app(
    *,
    board: Board,
    render: Render,
    store: Store | None = None,
    scope: Callable[[], Scope] = Scope,
    ready: Callable[[], tuple[str, ...]] = tuple,
    actions: Mapping[str, Action] = NO_ACTIONS,
    labels: Callable[[], Annotation] | None = None,
    hosts: Callable[[], frozenset[str] | None] = lambda: None,
    clock: Callable[[], float] = time,
) -> Starlette:
    """The whole application.

    Args:
        board: Where the latest Snapshot hangs.
        render: Accept header and `name[]` to the body of a scrape and its content type.
        store: For samples; None shows none.
        scope: What configuration names at present.
        ready: What keeps us from being ready at present, one sentence each.
        actions: What a POST to a path does.
        labels: Who takes people's words at present; None takes none.
        hosts: Allowed names in the Host header at present (see `allowed_hosts`), None for any.
        clock: Seconds since the epoch.
    """
    doors = _Doors(board, render, store, scope, ready, clock)
    return Starlette(
        routes=[
            Route("/", doors.page),
            Route("/canaries", doors.canaries_page),
            Route("/metrics", doors.metrics),
            Route("/-/healthy", doors.healthy),
            Route("/-/ready", doors.ready),
            *(Route(path, _posted(action), methods=["POST"]) for path, action in actions.items()),
            *(Route(path, _post_only, methods=_NOT_GET) for path in actions),
            *label_routes(labels),
            *sample_routes(store, scope, clock),
            *drift_routes(board, store, clock),
            Route("/api/v1/snapshot", doors.snapshot),
            Route("/api/v1/canaries", doors.canaries),
            Route("/api/v1/samples", doors.samples),
            Route("/api/v1/samples/{key}", doors.sample),
            Mount("/static", StaticFiles(directory=_STATIC)),
        ],
        middleware=[Middleware(Guard, hosts=hosts), Middleware(Bodies)],
        exception_handlers={StoreError: _store_failed, samples.ParameterError: _bad_parameter, Exception: _broken},
    )


@dataclass(frozen=True, slots=True)
class _Doors:
    """The endpoints, and what they look at."""

    board: Board
    scrape: Render
    store: Store | None
    scope: Callable[[], Scope]
    problems: Callable[[], tuple[str, ...]]
    clock: Callable[[], float]

    async def metrics(self, request: Request) -> Response:
        accept = request.headers.get("accept", "")
        names = request.query_params.getlist("name[]")
        zipped = _accepts_gzip(request.headers.get("accept-encoding", ""))
        return await run_in_threadpool(self._metrics, accept, names, zipped=zipped)

    def _metrics(self, accept: str, names: Sequence[str], *, zipped: bool) -> Response:
        body, content_type = self.scrape(accept, names)
        headers = {"Content-Type": content_type, "Vary": "Accept, Accept-Encoding"}
        if zipped and len(body) > GZIP_ABOVE:
            body = gzip.compress(body, GZIP_LEVEL)
            headers["Content-Encoding"] = "gzip"
        return Response(body, headers=headers)

    async def healthy(self, _: Request) -> Response:
        return PlainTextResponse("ragwatch is healthy\n")

    async def ready(self, _: Request) -> Response:
        problems = self.problems()
        if problems:
            return PlainTextResponse("".join(f"{problem}\n" for problem in problems), status_code=503)
        return PlainTextResponse("ragwatch is ready\n")

    async def page(self, request: Request) -> Response:
        return HTMLResponse(await run_in_threadpool(self._page, request.query_params.get("window")))

    def _page(self, window: str | None) -> str:
        return overview_page(self._overview(window))

    async def snapshot(self, request: Request) -> Response:
        view = await run_in_threadpool(self._overview, request.query_params.get("window"))
        return _json(view)

    def _overview(self, window: str | None) -> dict[str, Any]:
        failing: list[dict[str, Any]] = []
        problems = list(self.problems())
        if self.store is not None:
            try:
                failing = samples.failing(self.store)
            except StoreError as error:
                problems.append(f"the store cannot be read: {error}")
        view = overview(
            self.board.look(), self.scope(), now=self.clock(), window=window, problems=problems, failing=failing
        )
        return {"version": __version__, **view}

    async def canaries_page(self, _: Request) -> Response:
        return HTMLResponse(await run_in_threadpool(lambda: canaries_page(self._canaries())))

    async def canaries(self, _: Request) -> Response:
        return _json(await run_in_threadpool(self._canaries))

    def _canaries(self) -> dict[str, Any]:
        suites = suites_of(self.scope(), self.board.look())
        return {"version": __version__, **canaries(self.store, suites, now=self.clock())}

    async def samples(self, request: Request) -> Response:
        query = samples.query_of(request.query_params.multi_items(), now=self.clock())
        return _json({"samples": [samples.line(found) for found in await self._find(query)]})

    async def sample(self, request: Request) -> Response:
        key = request.path_params["key"]
        found = await self._find(Query(key=key, limit=samples.MOST)) if samples.KEY.fullmatch(key) else []
        if not found:
            return _json({"error": "there is no sample with this key"}, 404)
        return _json({"key": key, "verdicts": [each.verdict for each in found], "sample": found[0].sample})

    async def _find(self, query: Query) -> list[Any]:
        return [] if self.store is None else await run_in_threadpool(self.store.find, query)


def _posted(action: Action) -> Callable[[Request], Awaitable[Response]]:
    async def door(request: Request) -> Response:
        try:
            return PlainTextResponse(f"{await action(dict(request.query_params))}\n")
        except RagwatchError as error:
            return PlainTextResponse(f"{error}\n", status_code=500)

    return door


async def _post_only(_: Request) -> Response:
    return PlainTextResponse("This endpoint requires a POST request.\n", status_code=405, headers={"Allow": "POST"})


def _accepts_gzip(header: str) -> bool:
    for wanted in header.lower().split(","):
        coding, _, quality = wanted.partition(";")
        if coding.strip() in ("gzip", "*"):
            return quality.replace(" ", "").rstrip("0.") != "q="
    return False


def _json(value: object, status: int = 200) -> Response:
    body = orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS, default=dict)
    return Response(body, status_code=status, media_type="application/json")


async def _bad_parameter(_: Request, error: Exception) -> Response:
    return _json({"error": str(error)}, 400)


async def _store_failed(_: Request, error: Exception) -> Response:
    return _json({"error": str(error)}, 503)


async def _broken(_: Request, __: Exception) -> Response:
    """The last resort stands outside of the Guard, so it brings the headers along."""
    return PlainTextResponse("Something is broken; see the log.\n", status_code=500, headers=HEADERS)
