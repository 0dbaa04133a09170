"""Builds the web application. Work that may block (rendering, the store) runs in threads, not on the event loop."""

from __future__ import annotations

import gzip
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import time
from types import MappingProxyType

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from ragwatch import __version__
from ragwatch.board import Board
from ragwatch.errors import RagwatchError, StoreError, UnsearchableError
from ragwatch.ports import Query, Store
from ragwatch.ports.receiving import Handler, IncomingRequest
from ragwatch.web import samples
from ragwatch.web.access import INGEST_PATHS, RequestPolicy
from ragwatch.web.audit_trail import AuditRecord, AuditTrail
from ragwatch.web.authentication import USER, Authentication
from ragwatch.web.body_limit import RequestBodyLimit
from ragwatch.web.canaries import canaries, suites_of
from ragwatch.web.causes_page import cause_routes
from ragwatch.web.changes_page import acknowledge_routes, change_routes
from ragwatch.web.downloads import download_routes
from ragwatch.web.drift_page import drift_routes
from ragwatch.web.entity_tags import EntityTags
from ragwatch.web.erasure import Forget, erasure_routes
from ragwatch.web.forms import FIELD, FORM_TOKEN, FormGuard
from ragwatch.web.guard import HEADERS, NO_STORE, RequestGuard
from ragwatch.web.label_page import every_label_route
from ragwatch.web.labels import LabelService
from ragwatch.web.openapi import openapi_routes
from ragwatch.web.overview import overview
from ragwatch.web.pages import canaries_page, done_page, overview_page, refreshing
from ragwatch.web.prompt_page import Prompts, prompt_routes
from ragwatch.web.rejudging import Rejudge, rejudge_routes
from ragwatch.web.reply import json_reply
from ragwatch.web.request_limit import MIB, BusyError, RequestLimit
from ragwatch.web.route_page import route_routes
from ragwatch.web.samples_page import sample_routes
from ragwatch.web.scope import PageScope
from ragwatch.web.streamed_samples import sample_json, samples_json
from ragwatch.web.trends_page import trend_routes

Receivers = Mapping[str, Mapping[str, Handler]]
KIND_OF_PATH = {"/v1/traces": "otlp", "/v1/logs": "otlp"}
PARAMETER = "source"


def ingest_routes(receivers: Callable[[], Receivers]) -> list[Route]:
    """Builds the routes.

    Args:
        receivers: Returns the handlers of the configured sources, by path and name of the source.
    """
    return [Route(path, _handler(path, receivers), methods=["POST"]) for path in sorted(INGEST_PATHS)]


def _handler(path: str, receivers: Callable[[], Receivers]) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        by_source = receivers().get(path, {})
        names = request.query_params.getlist(PARAMETER)
        if len(names) > 1:
            return json_reply({"error": "source: is given twice; name one source"}, 400)
        if not by_source:
            kind = KIND_OF_PATH.get(path, "push")
            return json_reply({"error": f"sources: none of kind {kind} is configured; add one"}, 404)
        if not names and len(by_source) > 1:
            known = ", ".join(sorted(by_source))
            return json_reply({"error": f"source: several are configured; add ?source=NAME, one of: {known}"}, 400)
        name = names[0] if names else next(iter(by_source))
        if name not in by_source:
            known = ", ".join(sorted(by_source))
            return json_reply({"error": f"source: {name[:100]!r} does not receive requests; use one of: {known}"}, 404)
        reply = await by_source[name](
            IncomingRequest(path, dict(request.headers.items()), request.stream(), request.scope.get(USER, ""))
        )
        return Response(reply.body, reply.status, {**reply.headers, "Content-Type": reply.content_type})

    return handle


Action = Callable[[Mapping[str, str]], Awaitable[str]]
"""Handles a POST: maps query parameters to the text of the response. Raises `ParameterError` (400) for invalid ones,
`BusyError` (429) while the same action runs, and `RagwatchError` (500) if it failed."""
EVERY_REQUEST = RequestPolicy()
NO_ACTIONS: Mapping[str, Action] = MappingProxyType({})
Render = Callable[[str, Sequence[str]], tuple[bytes, str]]
GZIP_ABOVE = 1024
GZIP_LEVEL = 5
MAX_JUDGES = 50  # per sample
PAGE_THREADS, SCRAPE_THREADS = 2, 4
PAGE_BYTES, SCRAPE_BYTES = 32 * MIB, 16 * MIB  # of all responses in progress
PAGE_SIZE, SCRAPE_SIZE = 8 * MIB, MIB  # approximate memory for one response
PATIENCE_SECONDS = 10.0
_STATIC = Path(__file__).parent / "static"
_NOT_GET = ("GET", "HEAD", "PUT", "PATCH", "DELETE")


def build_app(  # noqa: PLR0913 - dependencies, by keyword
    *,
    board: Board,
    render: Render,
    store: Store | None = None,
    scope: Callable[[], PageScope] = PageScope,
    ready: Callable[[], tuple[str, ...]] = tuple,
    actions: Mapping[str, Action] = NO_ACTIONS,
    labels: Callable[[], LabelService] | None = None,
    prompts: Prompts | None = None,
    receivers: Callable[[], Receivers] = dict,
    policy: RequestPolicy = EVERY_REQUEST,
    clock: Callable[[], float] = time,
    audit: AuditRecord | None = None,
    forget: Forget | None = None,
    rejudge: Rejudge | None = None,
) -> Starlette:
    """Builds the application.

    Args:
        board: Holds the latest Snapshot.
        render: Renders a scrape: maps the Accept header and the values of `name[]` to a body and its content type.
        store: Store of the samples; None for no samples.
        scope: Returns the names in the current configuration.
        ready: Returns the reasons why the process is not ready, one sentence each.
        actions: Handlers of POST requests, by path.
        labels: Returns the service that stores labels; None for no label endpoints.
        prompts: Builds the prompts of a judge about a sample again; None if no judge has prompts.
        receivers: Returns the handlers of records that are sent over HTTP, by path and name of the source.
        policy: Which requests are answered.
        clock: Seconds since the epoch.
        audit: Writes one line of the audit log; None for no audit log.
        forget: Erases a person; None for no such endpoint.
        rejudge: Has stored answers read again; None for no such endpoint.
    """
    pages, scrapes = _limits()
    endpoints = _Endpoints(
        board=board, scrape=render, store=store, scope=scope, problems=ready, clock=clock, pages=pages, scrapes=scrapes
    )
    return Starlette(
        routes=[
            *endpoints.routes(),
            *_post_routes(actions, receivers, forget, rejudge),
            *every_label_route(labels, board, pages, policy, clock),
            *_answer_routes(store, scope, clock, pages, prompts),
            *_figure_routes(board, store, scope, clock, pages),
        ],
        middleware=_middleware(policy, audit),
        exception_handlers=_exception_handlers(),
    )


def _post_routes(
    actions: Mapping[str, Action], receivers: Callable[[], Receivers], forget: Forget | None, rejudge: Rejudge | None
) -> list[Route]:
    """Routes of actions, of received answers, and of what commands have done with stored ones."""
    return [
        *_action_routes(actions),
        *ingest_routes(receivers),
        *erasure_routes(forget),
        *rejudge_routes(rejudge),
    ]


def _answer_routes(
    store: Store | None,
    scope: Callable[[], PageScope],
    clock: Callable[[], float],
    pages: RequestLimit,
    prompts: Prompts | None,
) -> list[Route]:
    """Routes of the search for answers, of one answer, its prompts, and the downloads of a search."""
    return [
        *sample_routes(store, scope, clock, pages),
        *prompt_routes(store, prompts, pages),
        *download_routes(store, scope, clock, pages),
    ]


def _figure_routes(
    board: Board, store: Store | None, scope: Callable[[], PageScope], clock: Callable[[], float], pages: RequestLimit
) -> list[Route]:
    """Routes of the pages of figures (drift, one route, trends, changes, causes), and of the OpenAPI document."""
    return [
        *drift_routes(board, store, clock, pages),
        *acknowledge_routes(board),
        *route_routes(board, scope, clock, pages),
        *trend_routes(board, store, scope, clock, pages),
        *change_routes(store, scope, clock, pages),
        *cause_routes(store, scope, clock),
        *openapi_routes(scope),
    ]


def _limits() -> tuple[RequestLimit, RequestLimit]:
    """Limits of pages, and of scrapes, which have threads of their own."""
    return (
        RequestLimit(threads=PAGE_THREADS, total=PAGE_BYTES, seconds=PATIENCE_SECONDS),
        RequestLimit(threads=SCRAPE_THREADS, total=SCRAPE_BYTES, seconds=PATIENCE_SECONDS),
    )


@dataclass(frozen=True, slots=True)
class _Endpoints:
    """The endpoints without parameters of their own, and their dependencies."""

    board: Board
    scrape: Render
    store: Store | None
    scope: Callable[[], PageScope]
    problems: Callable[[], tuple[str, ...]]
    clock: Callable[[], float]
    pages: RequestLimit
    scrapes: RequestLimit

    def routes(self) -> list[BaseRoute]:
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
            Mount("/static", StaticFiles(directory=_STATIC)),
        ]

    async def metrics(self, request: Request) -> ASGIApp:
        accept = request.headers.get("accept", "")
        names = request.query_params.getlist("name[]")
        use_gzip = _accepts_gzip(request.headers.get("accept-encoding", ""))
        return await self.scrapes.answer(lambda: self._metrics(accept, names, use_gzip=use_gzip), SCRAPE_SIZE)

    def _metrics(self, accept: str, names: Sequence[str], *, use_gzip: bool) -> Response:
        body, content_type = self.scrape(accept, names)
        headers = {"Content-Type": content_type, "Vary": "Accept, Accept-Encoding"}
        if use_gzip and len(body) > GZIP_ABOVE:
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
        more = {FIELD: request.scope.get(FORM_TOKEN)} | refreshing(request.query_params.multi_items())
        return await self.pages.answer(lambda: HTMLResponse(overview_page(self._overview(window) | more)), PAGE_SIZE)

    async def snapshot(self, request: Request) -> ASGIApp:
        window = request.query_params.get("window")
        return await self.pages.answer(lambda: json_reply(self._overview(window)), PAGE_SIZE)

    def _overview(self, window: str | None) -> dict[str, object]:
        failing: list[dict[str, object]] = []
        problems = list(self.problems())
        if self.store is not None:
            try:
                failing = samples.failing(self.store)
            except StoreError as error:
                problems.append(f"the store cannot be read: {error}")
        view = overview(
            self.board.latest(), self.scope(), now=self.clock(), window=window, problems=problems, failing=failing
        )
        return {"version": __version__, **view}

    async def canaries_page(self, request: Request) -> ASGIApp:
        more = refreshing(request.query_params.multi_items())
        return await self.pages.answer(lambda: HTMLResponse(canaries_page(self._canaries() | more)), PAGE_SIZE)

    async def canaries(self, _: Request) -> ASGIApp:
        return await self.pages.answer(lambda: json_reply(self._canaries()), PAGE_SIZE)

    def _canaries(self) -> dict[str, object]:
        suites = suites_of(self.scope(), self.board.latest())
        return {"version": __version__, **canaries(self.store, suites, now=self.clock())}

    async def samples(self, request: Request) -> ASGIApp:
        pairs, now = request.query_params.multi_items(), self.clock()
        query, with_texts = samples.json_query_of(pairs, now=now, criteria=self.scope().criteria)
        if self.store is None:
            return json_reply({"samples": []})
        store, next_address = self.store, samples.next_address(pairs, query)

        def listed() -> ASGIApp:
            rows = [samples.line(stored) for stored in store.summaries(query)]
            return json_reply({"samples": rows, **samples.examined(store, query)})

        def streamed() -> ASGIApp:
            examined = samples.examined(store, query)
            return self.pages.stream(samples_json(store.entries(query), next_address, examined))

        return await self.pages.answer(streamed if with_texts else listed, PAGE_SIZE)

    async def sample(self, request: Request) -> ASGIApp:
        key = request.path_params["key"]
        return await self.pages.answer(lambda: self._sample(key), PAGE_SIZE)

    def _sample(self, key: str) -> ASGIApp:
        chunks = None
        if self.store is not None and samples.KEY.fullmatch(key):
            entries = self.store.entries(Query(key=key, limit=MAX_JUDGES))
            chunks = sample_json(key, entries, self.store.feedback_of(key))
        if chunks is None:
            return json_reply({"error": "there is no sample with this key"}, 404)
        return self.pages.stream(chunks)


def _middleware(policy: RequestPolicy, audit: AuditRecord | None) -> list[Middleware]:
    """From the outside in: what is refused there is not recorded, and no body is read before the rights are known."""
    return [
        Middleware(RequestGuard, policy),
        Middleware(Authentication, policy),
        Middleware(AuditTrail, audit),
        Middleware(RequestBodyLimit),
        Middleware(FormGuard),
        Middleware(EntityTags),
    ]


def _action_routes(actions: Mapping[str, Action]) -> list[Route]:
    return [
        *(Route(path, _post_handler(action), methods=["POST"]) for path, action in actions.items()),
        *(Route(path, _post_only, methods=_NOT_GET) for path in actions),
    ]


def _post_handler(action: Action) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        try:
            text = await action(dict(request.query_params))
            if "text/html" in request.headers.get("accept", ""):  # the form of a page was sent
                return HTMLResponse(done_page(text, "../" * request.scope["path"].strip("/").count("/")))
            return PlainTextResponse(f"{text}\n")
        except BusyError as error:
            return PlainTextResponse(f"{error}\n", status_code=429, headers={"Retry-After": str(error.seconds)})
        except RagwatchError as error:
            return PlainTextResponse(f"{error}\n", status_code=500)

    return handle


async def _post_only(_: Request) -> Response:
    return PlainTextResponse("This endpoint requires a POST request.\n", status_code=405, headers={"Allow": "POST"})


def _accepts_gzip(header: str) -> bool:
    for option in header.lower().split(","):
        coding, _, quality = option.partition(";")
        if coding.strip() in ("gzip", "*"):
            return quality.replace(" ", "").rstrip("0.") != "q="
    return False


def _exception_handlers() -> dict[type[Exception], Callable[[Request, Exception], Awaitable[Response]]]:
    """What answers when a request fails."""
    return {
        StoreError: _store_error,
        samples.ParameterError: _bad_request,
        UnsearchableError: _bad_request,
        Exception: _internal_error,
    }


async def _bad_request(_: Request, error: Exception) -> Response:
    return json_reply({"error": str(error)}, 400)


async def _store_error(_: Request, error: Exception) -> Response:
    return json_reply({"error": str(error)}, 503)


async def _internal_error(_: Request, __: Exception) -> Response:
    """Runs outside of the RequestGuard, so it sets the headers itself."""
    return PlainTextResponse("Internal error; see the log.\n", status_code=500, headers=HEADERS | NO_STORE)
