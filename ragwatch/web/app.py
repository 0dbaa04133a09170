"""Builds the web application. Work that may block (rendering, the store) runs in threads, not on the event loop."""

import asyncio
import gzip
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from time import time
from types import MappingProxyType
from typing import Any
from urllib.parse import urlencode

import orjson
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ragwatch.board import Board
from ragwatch.errors import ExternalError, RagwatchError, StoreError, UnsearchableError
from ragwatch.ports import Store
from ragwatch.ports.sources import Handler, IncomingRequest
from ragwatch.web import samples
from ragwatch.web.access import INGEST_PATHS, MCP_PATH, RequestPolicy
from ragwatch.web.audit_trail import AuditRecord, AuditTrail, shown
from ragwatch.web.authentication import USER, Authentication
from ragwatch.web.entity_tags import EntityTags
from ragwatch.web.json_requests import Forget, LabelService, Rejudge, operation_routes
from ragwatch.web.json_values import ParameterError, TooLargeError, json_object, json_reply, read_body
from ragwatch.web.mcp.calls import Read
from ragwatch.web.openapi import PREFIX, openapi_routes
from ragwatch.web.pages.canaries import canaries, suites_of
from ragwatch.web.pages.causes import cause_routes
from ragwatch.web.pages.changes_page import change_routes, changes_since_last_week
from ragwatch.web.pages.drift_page import acknowledge_routes, drift_routes
from ragwatch.web.pages.drift_replies import Canaries
from ragwatch.web.pages.figure_replies import FailingAnswer, Snapshot
from ragwatch.web.pages.incident import incident_routes
from ragwatch.web.pages.label_page import label_page_routes
from ragwatch.web.pages.overview import overview
from ragwatch.web.pages.pages import Site, page
from ragwatch.web.pages.prompt_page import Prompts, prompt_routes
from ragwatch.web.pages.route_page import route_routes
from ragwatch.web.pages.samples_page import sample_routes
from ragwatch.web.pages.segments_page import segment_routes
from ragwatch.web.pages.trends_page import trend_routes
from ragwatch.web.request_limit import MIB, BusyError, RequestBodyLimit, RequestLimit
from ragwatch.web.scope import PageScope
from ragwatch.web.server.guard import HEADERS, NO_STORE, FormGuard, RequestGuard, replay
from ragwatch.web.streamed_samples import download_routes, search_routes

Receivers = Mapping[str, Mapping[str, Handler]]
"""Handlers of records that are sent over HTTP, by path and name of the source."""
KIND_OF_PATH = {"/v1/traces": "otlp", "/v1/logs": "otlp"}
PARAMETER = "source"


def _receiver(path: str, receivers: Callable[[], Receivers]) -> Callable[[Request], Awaitable[Response]]:
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
"""Renders a scrape: maps the Accept header and the values of `name[]` to a body and its content type."""
GZIP_ABOVE = 1024
GZIP_LEVEL = 5
PAGE_THREADS, SCRAPE_THREADS = 2, 4
PAGE_BYTES, SCRAPE_BYTES = 32 * MIB, 16 * MIB  # of all responses in progress
PAGE_SIZE, SCRAPE_SIZE = 8 * MIB, MIB  # approximate memory for one response
PATIENCE_SECONDS = 10.0
_SAMPLE_PATH = "/samples/"
_KEPT_HEADERS = frozenset({b"host"})
_STATIC = Path(__file__).parent / "static"
_NOT_GET = ("GET", "HEAD", "PUT", "PATCH", "DELETE")


def build_app(  # noqa: PLR0913 - dependencies, by keyword
    *,
    board: Board,  # holds the latest Snapshot
    render: Render,
    store: Store,  # of the verdicts, samples and trends
    scope: Callable[[], PageScope] = PageScope,  # the names in the current configuration
    ready: Callable[[], tuple[str, ...]] = tuple,  # why the process is not ready, one sentence each
    actions: Mapping[str, Action] = NO_ACTIONS,  # by path
    labels: Callable[[], LabelService],
    prompts: Prompts,
    receivers: Callable[[], Receivers] = dict,
    policy: RequestPolicy = EVERY_REQUEST,
    clock: Callable[[], float] = time,  # seconds since the epoch
    audit: AuditRecord | None = None,  # writes one line of the audit log; None for no audit log
    forget: Forget,
    rejudge: Rejudge,
) -> Starlette:
    """Builds the application."""
    limit = RequestLimit(threads=PAGE_THREADS, total=PAGE_BYTES, seconds=PATIENCE_SECONDS)
    site = Site(board, store, scope, clock, limit)
    return Starlette(
        routes=[
            *_process_routes(render, ready),
            *_mcp_routes(policy),
            *(Route(path, _receiver(path, receivers), methods=["POST"]) for path in sorted(INGEST_PATHS)),
            *(Route(path, _post_handler(action), methods=["POST"]) for path, action in actions.items()),
            *(Route(path, _post_only, methods=_NOT_GET) for path in actions),
            *operation_routes(forget, rejudge),
            *label_page_routes(site, labels, policy.refused),
            *_overview_routes(site, ready),
            *prompt_routes(site, prompts),
            *(route for routes in _SITE_ROUTES for route in routes(site)),
        ],
        middleware=[  # what is refused outside is not recorded, and no body is read before the rights are known
            Middleware(RequestGuard, policy),
            Middleware(Authentication, policy),
            Middleware(AuditTrail, audit),
            Middleware(RequestBodyLimit),
            Middleware(FormGuard),
            Middleware(EntityTags),
        ],
        exception_handlers={
            StoreError: _refused,
            ParameterError: _refused,
            404: _not_found,
            Exception: _internal_error,
        },
    )


def _process_routes(scrape: Render, problems: Callable[[], tuple[str, ...]]) -> list[BaseRoute]:
    """Routes of the series, of the health of this process, and of static files. Scrapes have threads of their own."""
    limit = RequestLimit(threads=SCRAPE_THREADS, total=SCRAPE_BYTES, seconds=PATIENCE_SECONDS)

    async def metrics(request: Request) -> ASGIApp:
        use_gzip = _accepts_gzip(request.headers.get("accept-encoding", ""))

        def answer() -> Response:
            body, content_type = scrape(request.headers.get("accept", ""), request.query_params.getlist("name[]"))
            headers = {"Content-Type": content_type, "Vary": "Accept, Accept-Encoding"}
            if use_gzip and len(body) > GZIP_ABOVE:
                body = gzip.compress(body, GZIP_LEVEL)
                headers["Content-Encoding"] = "gzip"
            return Response(body, headers=headers)

        return await limit.answer(answer, SCRAPE_SIZE)

    async def healthy(_: Request) -> Response:
        return PlainTextResponse("ragwatch is healthy\n")

    async def ready(_: Request) -> Response:
        if why := problems():
            return PlainTextResponse("".join(f"{problem}\n" for problem in why), status_code=503)
        return PlainTextResponse("ragwatch is ready\n")

    return [
        Route("/metrics", metrics),
        Route("/-/healthy", healthy),
        Route("/-/ready", ready),
        Mount("/static", StaticFiles(directory=_STATIC)),
    ]


def _overview_routes(site: Site, problems: Callable[[], tuple[str, ...]]) -> list[Route]:
    """Routes of the overview and of the canaries."""

    def view(request: Request) -> tuple[Snapshot, int]:
        failing: list[FailingAnswer] = []
        why = list(problems())
        try:
            failing = samples.failing(site.store)
        except StoreError as error:
            why.append(f"the store cannot be read: {error}")
        window = request.query_params.get("window")
        latest, scope = site.board.latest(), site.scope()
        changes = changes_since_last_week(site, window)
        shown = overview(latest, scope, now=site.clock(), window=window, problems=why, failing=failing, changes=changes)
        return shown, 200

    def suites(_: Request) -> tuple[Canaries, int]:
        return canaries(site.store, suites_of(site.scope(), site.board.latest()), now=site.clock()), 200

    return [
        site.page("/", "overview.html", view, PAGE_SIZE, refreshes=True),
        site.reply("/api/v1/snapshot", view, PAGE_SIZE),
        *site.page_and_reply("/canaries", "canaries.html", suites, PAGE_SIZE, refreshes=True),
    ]


_SITE_ROUTES = (
    *(search_routes, sample_routes, download_routes, drift_routes, acknowledge_routes, route_routes),
    *(segment_routes, incident_routes, trend_routes, change_routes, cause_routes, openapi_routes),
)


def _mcp_routes(policy: RequestPolicy) -> list[Route]:
    """The endpoint `/mcp`: tools over HTTP on the port of the pages. The policy says whether it answers."""

    async def serve(request: Request) -> ASGIApp:
        if not policy.mcp():
            return json_reply({"error": "web.mcp: is false; set it to true"}, 404)
        body = await read_body(request)
        json_object(body, "arguments")
        # The SDK is large: imported by the event loop, it would hold up everything for seconds.
        await asyncio.to_thread(import_module, "ragwatch.web.mcp.server")
        from ragwatch.web.mcp.server import build_server, serve_request  # noqa: PLC0415

        server = build_server(_reader(request), policy.external() or str(request.base_url))

        async def exchange(scope: Scope, receive: Receive, send: Send) -> None:
            await serve_request(server, scope, replay(body, receive), send)

        return exchange

    return [Route(MCP_PATH, serve, methods=["POST"])]


def _reader(request: Request) -> Read:
    """Build what reads the API within this process, with the rights and the audit of a request that was let in."""

    async def read(path: str, query: Mapping[str, str | None]) -> Mapping[str, Any]:
        if path.startswith(_SAMPLE_PATH):
            shown([path.removeprefix(_SAMPLE_PATH)])
        given = {name: value for name, value in query.items() if value is not None}
        scope = {
            **request.scope,
            "method": "GET",
            "path": f"{PREFIX}{path}",
            "raw_path": f"{PREFIX}{path}".encode(),
            "query_string": urlencode(given).encode(),
            "headers": [pair for pair in request.scope["headers"] if pair[0] in _KEPT_HEADERS],
            "path_params": {},
        }
        status, body = 0, bytearray()

        async def send(message: Message) -> None:
            nonlocal status, body
            status = message.get("status", status)
            body += message.get("body", b"")

        await request.app.router(scope, replay(b"", request.receive), send)
        try:
            view: Mapping[str, Any] = orjson.loads(body)
        except ValueError:
            view = {"error": body.decode("utf-8", "replace").strip()}
        if status not in (200, 404):  # the request is refused, or the store cannot be read
            raise ExternalError(str(view.get("error") or status))
        return view if status == 200 else {}

    return read


def _post_handler(action: Action) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        try:
            text = await action(dict(request.query_params))
            if "text/html" in request.headers.get("accept", ""):  # the form of a page was sent
                root = "../" * request.scope["path"].strip("/").count("/")
                return HTMLResponse(page("done.html", {"root": root, "lines": text.splitlines()}))
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


async def _not_found(request: Request, _: Exception) -> Response:
    if request.url.path.startswith(PREFIX):
        return json_reply({"error": f"path: is unknown; {PREFIX}/openapi.json lists all endpoints"}, 404)
    return PlainTextResponse("There is no such page. The overview at / links to all pages.\n", 404)


async def _refused(_: Request, error: Exception) -> Response:
    unread = isinstance(error, StoreError) and not isinstance(error, UnsearchableError)
    return json_reply({"error": str(error)}, 503 if unread else 413 if isinstance(error, TooLargeError) else 400)


async def _internal_error(_: Request, __: Exception) -> Response:
    """Runs outside of the RequestGuard, so it sets the headers itself."""
    return PlainTextResponse("Internal error; see the log.\n", status_code=500, headers=HEADERS | NO_STORE)
