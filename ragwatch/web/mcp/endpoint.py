"""The endpoint `/mcp`: tools over HTTP on the port of the pages, with the right `pages`. It reads through the API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import orjson
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ragwatch.errors import ExternalError
from ragwatch.web.access import MCP_PATH, RequestPolicy
from ragwatch.web.audit_trail import shown
from ragwatch.web.json_body import json_object, json_reply, read_body
from ragwatch.web.openapi import PREFIX
from ragwatch.web.pages.forms import replay

if TYPE_CHECKING:
    from ragwatch.web.mcp.calls import Read

_SAMPLE = "/samples/"
_KEPT_HEADERS = frozenset({b"host"})


def mcp_routes(policy: RequestPolicy) -> list[Route]:
    """The route; the policy says whether it answers."""

    async def serve(request: Request) -> ASGIApp:
        if not policy.mcp():
            return json_reply({"error": "web.mcp: is false; set it to true"}, 404)
        body = await read_body(request)
        json_object(body, "arguments")
        from ragwatch.web.mcp.server import build_server, serve_request  # noqa: PLC0415 - the SDK is large

        server = build_server(reader(request), policy.external() or str(request.base_url))

        async def exchange(scope: Scope, receive: Receive, send: Send) -> None:
            await serve_request(server, scope, replay(body, receive), send)

        return exchange

    return [Route(MCP_PATH, serve, methods=["POST"])]


def reader(request: Request) -> Read:
    """Build what reads the API within this process, with the rights and the audit of a request that was let in."""

    async def read(path: str, query: Mapping[str, str | None]) -> Mapping[str, Any]:
        if path.startswith(_SAMPLE):
            shown([path.removeprefix(_SAMPLE)])
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
