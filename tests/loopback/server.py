"""The process: `python -m loopback.server --port 0 [--judge-key KEY]`. Prints its address and serves.

Every request takes one way: it is recorded, let in by its key, struck by the script, made to wait, and answered.
"""

import argparse
import asyncio
import hmac
import socket
import struct
import sys
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import uvicorn
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from loopback import batches, chat, messages
from loopback.faults import REFUSALS, WIRES, Control, Fault, Refusal
from loopback.wire import HTML, Reply, is_chat, refused, struck
from loopback.world import PATH as BATCHES
from loopback.world import Entry, World, rfc3339

_NOT_ALLOWED = Refusal(401, "authentication_error", "invalid bearer token")
ROOMY = 4_000
"""Requests a minute, and thousands of tokens of either direction, that headers tell of; nothing is held to them."""


class Loopback:
    """The application.

    Args:
        key: The key that requests must bring; None takes any, and none.
    """

    def __init__(self, key: str | None = None) -> None:
        self._key = key
        self.world = World(Control())
        self.server: uvicorn.Server | None = None

    def app(self) -> Starlette:
        """Routes."""
        api = [
            Route("/v1/messages", self._api, methods=["POST"]),
            Route("/v1/messages/count_tokens", self._api, methods=["POST"]),
            Route("/v1/messages/batches", self._api, methods=["GET", "POST"]),
            Route("/v1/messages/batches/{name}", self._api, methods=["GET"]),
            Route("/v1/messages/batches/{name}/{verb:str}", self._api, methods=["GET", "POST"]),
            Route("/v1/chat/completions", self._api, methods=["POST"]),
            Route("/v1/responses", self._api, methods=["POST"]),
            Route("/v1/embeddings", self._api, methods=["POST"]),
            Route("/v1/models", self._api, methods=["GET"]),
        ]
        own = [
            Route("/control", self._control, methods=["POST"]),
            Route("/record", self._record, methods=["GET", "DELETE"]),
        ]
        return Starlette(routes=[*api, *own])

    async def _control(self, request: Request) -> Response:
        """A new script, and with it a new world; with `?keep=1` the world goes on with it."""
        try:
            control = Control.model_validate_json(await request.body() or b"{}")
        except ValidationError as error:
            return JSONResponse({"error": str(error)}, 400)
        if request.query_params.get("keep") == "1":
            self.world.change(control)
        else:
            self.world = World(control)
        return JSONResponse(control.model_dump(mode="json"))

    async def _record(self, request: Request) -> Response:
        """What was asked; DELETE forgets it and goes on with the script."""
        if request.method == "DELETE":
            self.world.record = type(self.world.record)()
        return JSONResponse(self.world.record.shown(bodies=request.query_params.get("bodies") != "0"))

    async def _api(self, request: Request) -> Response:
        world = self.world
        raw = await request.body()
        body = chat.json_of(raw)
        allowed = self._allowed(request.headers)
        entry = world.record.open(
            request.method, request.url.path, request.headers, authorized=allowed, body=body, at=world.since()
        )
        reply: Reply | None = None
        try:
            reply, fault = await self._answered(request, world, entry, raw.decode(errors="replace"), body)
            return await self._sent(request, reply, fault)
        finally:
            world.record.close(entry, reply, world.since())

    def _allowed(self, headers: Mapping[str, str]) -> bool:
        given = headers.get("authorization", "").removeprefix("Bearer ") or headers.get("x-api-key", "")
        return bool(given) if self._key is None else hmac.compare_digest(given.encode(), self._key.encode())

    async def _answered(
        self, request: Request, world: World, entry: Entry, raw: str, body: Any
    ) -> tuple[Reply, Fault | None]:
        path = request.url.path
        if self._key is not None and not entry.authorized:
            return refused(_NOT_ALLOWED, path), None
        fault = world.script.pick(path, raw)
        if fault:
            entry.fault = fault.kind
        if fault and fault.kind in REFUSALS:
            return struck(fault, REFUSALS[fault.kind], path), fault
        wait, begun = world.wait(path), world.clock()
        reply = HTML
        if not fault or fault.kind != "html":
            reply, entry.note = _made(request, world, body, fault)
        # What the rule took to read counts as the model's time: a call takes as long as was drawn for it.
        await _wait(request, wait - (world.clock() - begun), fault)
        if path == messages.PATH and reply.status == 200 and reply is not HTML:
            world.cache.keep(body)
        return replace(reply, headers={**_limits(world, path), **reply.headers}), fault

    async def _sent(self, request: Request, reply: Reply, fault: Fault | None) -> Response:
        """The reply as it leaves, whole or not."""
        kind = fault.kind if fault else ""
        if kind in WIRES - {"slow", "hang"}:
            return await self._broken(request, reply, cut=kind == "cut_off")
        body = reply.body[: len(reply.body) // 2] if kind == "truncated_json" else reply.body
        return Response(body, reply.status, dict(reply.headers), reply.media)

    async def _broken(self, request: Request, reply: Reply, *, cut: bool) -> Response:
        """Reset the connection: at once, or after half of the reply."""
        if not cut:
            self._reset(request)
            return Response(status_code=204)

        async def half() -> AsyncIterator[bytes]:
            yield reply.body[: len(reply.body) // 2]
            await asyncio.sleep(0.05)  # so that the half is on its way before the reset overtakes it
            self._reset(request)

        return StreamingResponse(half(), headers={"content-length": str(len(reply.body))}, media_type=reply.media)

    def _reset(self, request: Request) -> None:
        """Close the request's connection so that its peer sees a reset."""
        for connection in self.server.server_state.connections if self.server else ():
            if request.client and getattr(connection, "client", None) == tuple(request.client):
                transport: Any = connection.transport
                # Linger on and zero seconds: what is not sent is dropped, and the peer told so.
                linger = struct.pack("ii", 1, 0)
                transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                transport.abort()


def _made(request: Request, world: World, body: Any, fault: Fault | None) -> tuple[Reply, str | None]:
    """The reply to a request, and a note when the model did not understand it."""
    path = request.url.path
    if path == messages.PATH:
        return messages.answer(body, world, fault)
    if path == chat.PATH:
        return chat.answer(body, world, fault)
    if path == chat.RESPONSES:
        return chat.responded(body, world, fault)
    if path.startswith(BATCHES):
        return _batches(request, world, body), None
    if path == "/v1/models":
        return chat.models(), None
    return (messages.counted(body) if path == "/v1/messages/count_tokens" else chat.embedded(body)), None


def _batches(request: Request, world: World, body: Any) -> Reply:
    address = f"{request.url.scheme}://{request.url.netloc}"
    name, verb = request.path_params.get("name"), request.path_params.get("verb")
    match request.method, name, verb:
        case "POST", None, None:
            return batches.create(body, world, address)
        case "GET", None, None:
            return batches.listed(request.query_params, world, address)
        case "GET", str(), None:
            return batches.look(name, world, address)
        case "GET", str(), "results":
            return batches.results(name, world)
    return refused(Refusal(404, "not_found_error", "Not found"), request.url.path)


def _limits(world: World, path: str) -> dict[str, str]:
    """Headers that tell how much room is left."""
    if is_chat(path):
        limit = {"limit": str(ROOMY), "remaining": str(ROOMY), "reset": "0.000s"}
        return {f"x-ratelimit-{name}-requests": value for name, value in limit.items()}
    found = {"request-id": world.new_id("req")}
    for what, each in (("requests", 1), ("input-tokens", 1_000), ("output-tokens", 1_000)):
        limit = {"limit": str(ROOMY * each), "remaining": str(ROOMY * each), "reset": rfc3339(world.now())}
        found |= {f"anthropic-ratelimit-{what}-{name}": value for name, value in limit.items()}
    return found


async def _wait(request: Request, seconds: float, fault: Fault | None) -> None:
    """The latency of the call; a slow or hanging one ends early when the client hangs up."""
    if fault and fault.kind in ("slow", "hang"):
        with suppress(TimeoutError):
            await asyncio.wait_for(_hung_up(request), seconds + fault.seconds)
    elif seconds > 0:
        await asyncio.sleep(seconds)


async def _hung_up(request: Request) -> None:
    """Returns when the client closes its connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _end_with_parent(server: uvicorn.Server) -> None:
    """Stop when standard input closes: who started us is gone."""
    sys.stdin.read()
    server.should_exit = True


def _listener(port: int) -> socket.socket:
    """A listening socket. Its protocol is named, or asyncio leaves Nagle's algorithm on and a reply takes 40 ms."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(512)
    return listener


def main() -> None:
    """Serve until a signal comes."""
    options = argparse.ArgumentParser(prog="python -m loopback.server", description=__doc__)
    options.add_argument("--port", type=int, default=0, help="0 takes a free one (default)")
    options.add_argument("--judge-key", help="the key that requests must bring; without it any will do")
    options.add_argument("--attached", action="store_true", help="end when standard input closes")
    chosen = options.parse_args()
    loopback = Loopback(chosen.judge_key)
    config = uvicorn.Config(
        loopback.app(),
        http="h11",
        lifespan="off",
        log_level="critical",
        access_log=False,
        timeout_graceful_shutdown=1,
        timeout_keep_alive=600,  # else a busy test may send on a connection that is just being closed
    )
    loopback.server = uvicorn.Server(config)
    with _listener(chosen.port) as listener:
        if chosen.attached:
            threading.Thread(target=_end_with_parent, args=(loopback.server,), daemon=True).start()
        print(f"loopback serves http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
        loopback.server.run(sockets=[listener])


if __name__ == "__main__":
    main()
