"""App: the endpoints. What may block (rendering, the store) happens in a thread, so that the loops never wait."""

from __future__ import annotations

import gzip
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import time
from types import MappingProxyType
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from ragwatch import __version__
from ragwatch.board import Board
from ragwatch.errors import RagwatchError, StoreError
from ragwatch.ports import Query, Store
from ragwatch.web import samples
from ragwatch.web.bodies import RequestBodyLimit
from ragwatch.web.canaries import canaries, suites_of
from ragwatch.web.drift_page import drift_routes
from ragwatch.web.guard import HEADERS, UNKEPT, RequestGuard
from ragwatch.web.labels import LabelService, label_routes
from ragwatch.web.overview import overview
from ragwatch.web.pages import canaries_page, overview_page
from ragwatch.web.reply import json_reply
from ragwatch.web.request_limit import MIB, BusyError, RequestLimit
from ragwatch.web.samples_page import sample_routes
from ragwatch.web.scope import PageScope
from ragwatch.web.streamed_samples import sample_json, samples_json

Action = Callable[[Mapping[str, str]], Awaitable[str]]
"""What a POST does: its query parameters to what it says. Raises `ParameterError` (400) for those it cannot take,
`BusyError` (429) where others have asked already, and a `RagwatchError` (500) where it failed."""
NO_ACTIONS: Mapping[str, Action] = MappingProxyType({})
Render = Callable[[str, Sequence[str]], tuple[bytes, str]]
GZIP_ABOVE = 1024
GZIP_LEVEL = 5
MOST_JUDGES = 50  # of one sample
PAGE_THREADS, SCRAPE_THREADS = 2, 4
PAGE_BYTES, SCRAPE_BYTES = 32 * MIB, 16 * MIB  # of responses that are made or wait for their clients
PAGE_SIZE, SCRAPE_SIZE = 8 * MIB, MIB  # that making one takes, about
PATIENCE_SECONDS = 10.0
_STATIC = Path(__file__).parent / "static"
_NOT_GET = ("GET", "HEAD", "PUT", "PATCH", "DELETE")


def build_app(
    *,
    board: Board,
    render: Render,
    store: Store | None = None,
    scope: Callable[[], PageScope] = PageScope,
    ready: Callable[[], tuple[str, ...]] = tuple,
    actions: Mapping[str, Action] = NO_ACTIONS,
    labels: Callable[[], LabelService] | None = None,
    hosts: Callable[[], frozenset[str] | None] = lambda: None,
    external: Callable[[], str | None] = lambda: None,
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
        external: Address that people use at present, None for that of the request.
        clock: Seconds since the epoch.
    """
    pages = RequestLimit(threads=PAGE_THREADS, total=PAGE_BYTES, seconds=PATIENCE_SECONDS)
    scrapes = RequestLimit(threads=SCRAPE_THREADS, total=SCRAPE_BYTES, seconds=PATIENCE_SECONDS)
    doors = _Endpoints(board, render, store, scope, ready, clock, pages, scrapes)
    return Starlette(
        routes=[
            *doors.routes(),
            *(Route(path, _posted(action), methods=["POST"]) for path, action in actions.items()),
            *(Route(path, _post_only, methods=_NOT_GET) for path in actions),
            *label_routes(labels, pages),
            *sample_routes(store, scope, clock, pages),
            *drift_routes(board, store, clock, pages),
            Mount("/static", StaticFiles(directory=_STATIC)),
        ],
        middleware=[Middleware(RequestGuard, hosts=hosts, external=external), Middleware(RequestBodyLimit)],
        exception_handlers={StoreError: _store_failed, samples.ParameterError: _bad_parameter, Exception: _broken},
    )


@dataclass(frozen=True, slots=True)
class _Endpoints:
    """The endpoints, and what they look at."""

    board: Board
    scrape: Render
    store: Store | None
    scope: Callable[[], PageScope]
    problems: Callable[[], tuple[str, ...]]
    clock: Callable[[], float]
    pages: RequestLimit
    scrapes: RequestLimit

    def routes(self) -> list[Route]:
        return [
            Route("/", self.page),
            Route("/canaries", self.canaries_page),
            Route("/metrics", self.metrics),
            Route("/-/healthy", self.healthy),
            Route("/-/ready", self.ready),
            Route("/api/v1/snapshot", self.snapshot),
            Route("/api/v1/canaries", self.canaries),
            Route("/api/v1/samples", self.samples),
            Route("/api/v1/samples/{key}", self.sample),
        ]

    async def metrics(self, request: Request) -> ASGIApp:
        accept = request.headers.get("accept", "")
        names = request.query_params.getlist("name[]")
        zipped = _accepts_gzip(request.headers.get("accept-encoding", ""))
        return await self.scrapes.answer(lambda: self._metrics(accept, names, zipped=zipped), SCRAPE_SIZE)

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

    async def page(self, request: Request) -> ASGIApp:
        window = request.query_params.get("window")
        return await self.pages.answer(lambda: HTMLResponse(overview_page(self._overview(window))), PAGE_SIZE)

    async def snapshot(self, request: Request) -> ASGIApp:
        window = request.query_params.get("window")
        return await self.pages.answer(lambda: json_reply(self._overview(window)), PAGE_SIZE)

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

    async def canaries_page(self, _: Request) -> ASGIApp:
        return await self.pages.answer(lambda: HTMLResponse(canaries_page(self._canaries())), PAGE_SIZE)

    async def canaries(self, _: Request) -> ASGIApp:
        return await self.pages.answer(lambda: json_reply(self._canaries()), PAGE_SIZE)

    def _canaries(self) -> dict[str, Any]:
        suites = suites_of(self.scope(), self.board.look())
        return {"version": __version__, **canaries(self.store, suites, now=self.clock())}

    async def samples(self, request: Request) -> ASGIApp:
        pairs, now = request.query_params.multi_items(), self.clock()
        query, whole = samples.whole_query_of(pairs, now=now)
        if self.store is None:
            return json_reply({"samples": []})
        store, following = self.store, samples.following(pairs, query)
        if not whole:
            return await self.pages.answer(
                lambda: json_reply({"samples": [samples.line(each) for each in store.summaries(query)]}), PAGE_SIZE
            )
        return await self.pages.answer(
            lambda: self.pages.stream(samples_json(store.entries(query), following)), PAGE_SIZE
        )

    async def sample(self, request: Request) -> ASGIApp:
        key = request.path_params["key"]
        return await self.pages.answer(lambda: self._sample(key), PAGE_SIZE)

    def _sample(self, key: str) -> ASGIApp:
        pieces = None
        if self.store is not None and samples.KEY.fullmatch(key):
            pieces = sample_json(key, self.store.entries(Query(key=key, limit=MOST_JUDGES)))
        if pieces is None:
            return json_reply({"error": "there is no sample with this key"}, 404)
        return self.pages.stream(pieces)


def _posted(action: Action) -> Callable[[Request], Awaitable[Response]]:
    async def door(request: Request) -> Response:
        try:
            return PlainTextResponse(f"{await action(dict(request.query_params))}\n")
        except BusyError as error:
            return PlainTextResponse(f"{error}\n", status_code=429, headers={"Retry-After": str(error.seconds)})
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


async def _bad_parameter(_: Request, error: Exception) -> Response:
    return json_reply({"error": str(error)}, 400)


async def _store_failed(_: Request, error: Exception) -> Response:
    return json_reply({"error": str(error)}, 503)


async def _broken(_: Request, __: Exception) -> Response:
    """The last resort stands outside of the Guard, so it brings the headers along."""
    return PlainTextResponse("Something is broken; see the log.\n", status_code=500, headers=HEADERS | UNKEPT)
