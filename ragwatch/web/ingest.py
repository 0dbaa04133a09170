"""Routes for records that clients send: each request is passed on to the source that receives it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ragwatch.ports.receiving import Handler, IncomingRequest
from ragwatch.web.access import INGEST_PATHS
from ragwatch.web.authentication import USER
from ragwatch.web.reply import json_reply

Receivers = Mapping[str, Mapping[str, Handler]]
KIND_OF_PATH = {"/v1/traces": "otlp"}
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
