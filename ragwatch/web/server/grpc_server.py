"""Serves calls over gRPC with which clients send records to a source.

A client is asked who it is before its message is received. Messages are handed over as they were compressed: the source
unpacks them within its own limits, which the library would not.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from types import ModuleType
from typing import TYPE_CHECKING, NoReturn

from ragwatch.errors import ConfigError
from ragwatch.ports.sources import GrpcListener, Handler, IncomingRequest, host_of
from ragwatch.web.access import Right
from ragwatch.web.authentication import Authenticator, Refusal, certificate_names
from ragwatch.web.server.connections import HANDSHAKE_SECONDS, MIN_CONNECTIONS, max_connections
from ragwatch.web.server.relay import Relay
from ragwatch.web.server.serve import DRAIN_SECONDS, listen
from ragwatch.web.server.tls import Tls

if TYPE_CHECKING:
    import grpc
    import grpc.aio

RECEIVE_SECONDS = 10.0
MAX_CALLS = 256
MAX_STREAMS = 100  # calls of one connection
IDLE_SECONDS = 60.0  # of a connection without calls: clients that do not close theirs keep others out
PING_SECONDS = 20.0  # after which a client is asked whether it is there, and in which it must answer
DETAILS = "grpc-status-details-bin"
_PROTOBUF = "application/x-protobuf"
_NEEDED = frozenset({Right.INGEST})
_MARKS = ((b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"\x78", "deflate"))
_CODES: Mapping[int, str] = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    413: "RESOURCE_EXHAUSTED",
    415: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}
"""Status codes of gRPC by HTTP status."""


class GrpcServer:
    """Receives calls for one source on one address, once. Raises ConfigError: the extra is not installed."""

    def __init__(
        self,
        listener: GrpcListener,
        handler: Callable[[str], Handler | None],  # of a method, by its path; None if there is none
        authenticator: Authenticator,
        tls: Callable[[], Tls | None] = lambda: None,  # for a new connection
        *,
        receive_seconds: float = RECEIVE_SECONDS,  # for a message to arrive, with the time that it waits for its turn
        connections: int | None = None,  # by default what the file descriptors of the process allow
        calls: int = MAX_CALLS,  # under way
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self._grpc = grpc_library(listener.source)
        self._listener = listener
        self._handler = handler
        self._authenticator = authenticator
        self._tls = tls
        self._receive_seconds = receive_seconds
        # Each has two descriptors more: of the relay, and of the library.
        self._connections = max(MIN_CONNECTIONS, max_connections() // 3) if connections is None else connections
        self._receiving = asyncio.Semaphore(listener.receiving)
        self._max_calls = calls
        self._idle_seconds = idle_seconds
        self._calls = 0
        self._server: grpc.aio.Server | None = None
        self._relay: Relay | None = None

    async def bind(self) -> str:
        """Binds the address. Returns it, with the port. Raises AddressError: it is not available."""
        address = self._listener.address
        options = [
            ("grpc.per_message_decompression", 0),  # else messages would be unpacked without a limit
            ("grpc.max_receive_message_length", self._listener.max_message_bytes),
            ("grpc.max_concurrent_streams", MAX_STREAMS),
            ("grpc.server_handshake_timeout_ms", int(HANDSHAKE_SECONDS * 1000)),
            ("grpc.max_connection_idle_ms", int(self._idle_seconds * 1000)),
            ("grpc.keepalive_time_ms", int(PING_SECONDS * 1000)),
            ("grpc.keepalive_timeout_ms", int(PING_SECONDS * 1000)),
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.max_pings_without_data", 0),
        ]
        listener = listen(host_of(address), int(address.rpartition(":")[2]))
        self._relay = Relay(listener, self._tls, self._connections)
        self._server = self._grpc.aio.server(options=options)
        self._server.add_generic_rpc_handlers((_dispatcher(self._handler, self._answer),))
        self._server.add_insecure_port(self._relay.address)
        return f"{address.rpartition(':')[0]}:{listener.getsockname()[1]}"

    async def start(self) -> None:
        """Answers calls from now on."""
        if self._server is not None and self._relay is not None:
            await self._server.start()
            self._relay.start()

    async def stop(self) -> None:
        """Takes no further calls, and waits a short time for those under way."""
        if self._server is not None and self._relay is not None:
            self._relay.close()
            await self._server.stop(DRAIN_SECONDS)
            await self._relay.end()
            self._server = self._relay = None

    async def _answer(self, path: str, handler: Handler, context: grpc.aio.ServicerContext[object, bytes]) -> bytes:
        """Answers one call. Ends with an exception of the library if it is refused."""
        self._calls += 1
        try:
            if self._calls > self._max_calls:
                await self._refuse(context, Refusal(503, "too many calls are under way; send it again"))
            client = await self._client(context)
            reply = await handler(await self._request(path, client, context))
            if reply.status != 200:  # as the source does: the body of its reply is a google.rpc.Status
                code = self._grpc.StatusCode[_CODES.get(reply.status, "UNKNOWN")]
                await context.abort(code, reply.problem, ((DETAILS, reply.body),))
            return reply.body
        finally:
            self._calls -= 1

    async def _client(self, context: grpc.aio.ServicerContext[object, bytes]) -> str:
        """The name of the client, which may send records."""
        metadata = {key: value for key, value in context.invocation_metadata() or () if isinstance(value, str)}
        tls, certificates = self._tls(), {} if self._relay is None else self._relay.certificates
        if context.peer() not in certificates:
            await self._refuse(context, Refusal(403, f"connect to {self._listener.address}"))
        certificate = certificates[context.peer()]
        if tls is not None and not tls.allows(certificate):
            await self._refuse(context, Refusal(403, "the client certificate has none of client_allowed_sans"))
        names = certificate_names(certificate)
        decision = await self._authenticator.decide(_NEEDED, metadata.get("authorization"), names)
        if decision.refusal is not None:
            await self._refuse(context, decision.refusal)
        return "" if decision.user is None else decision.user.name

    async def _request(
        self, path: str, client: str, context: grpc.aio.ServicerContext[object, bytes]
    ) -> IncomingRequest:
        """Receives the message of a call, a few at a time."""
        parts: list[bytes] = []
        with suppress(TimeoutError):
            async with asyncio.timeout(self._receive_seconds), self._receiving:
                message = await context.read()
                if not isinstance(message, bytes):
                    await self._refuse(context, Refusal(400, "the call has no message"))
                parts.append(message)
                del message
        if not parts:
            text = f"the message has not arrived within {self._receive_seconds:g} seconds; send it again"
            await self._refuse(context, Refusal(503, text))
        headers = {"content-type": _PROTOBUF, "content-encoding": encoding_of(parts[0])}
        return IncomingRequest(path, headers, _chunks(parts), client)

    async def _refuse(self, context: grpc.aio.ServicerContext[object, bytes], refusal: Refusal) -> NoReturn:
        """Refuses a call before its message was read. Where it may be sent again the code says so by itself."""
        code = "UNAVAILABLE" if refusal.status == 429 else _CODES[refusal.status]
        await context.abort(self._grpc.StatusCode[code], refusal.text)


def grpc_library(source: str) -> ModuleType:
    """Imports the library for a source. Raises ConfigError: it is not installed."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # else every failed handshake is a line that is no JSON
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    try:
        import grpc  # noqa: PLC0415 - an extra
        import grpc.aio  # noqa: PLC0415 - the same
    except ImportError:
        raise ConfigError(
            f"source {source}: grpc: the package grpcio is not installed: pip install 'ragwatch-exporter[grpc]'"
        ) from None
    return grpc


def _dispatcher(
    handler: Callable[[str], Handler | None],
    answer: Callable[[str, Handler, grpc.aio.ServicerContext[object, bytes]], Awaitable[bytes]],
) -> grpc.GenericRpcHandler:
    """Finds the method of a call; calls of other methods are answered with UNIMPLEMENTED."""
    import grpc  # noqa: PLC0415 - an extra

    class Dispatcher(grpc.GenericRpcHandler):
        def service(self, call: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[object, bytes] | None:
            path = str(call.method)
            receiver = handler(path)
            if receiver is None:
                return None

            async def respond(_: object, context: grpc.aio.ServicerContext[object, bytes]) -> bytes:
                return await answer(path, receiver, context)

            # As a stream of messages, so that the first one is received only when it is read.
            return grpc.stream_unary_rpc_method_handler(respond)

    return Dispatcher()


async def _chunks(parts: list[bytes]) -> AsyncIterator[bytes]:
    """Yields parts, and forgets them."""
    while parts:
        yield parts.pop()


def encoding_of(message: bytes) -> str:
    r"""How a message is compressed, which the library does not say; empty if it is not.

    Messages whose first field has number 1, as export requests have, begin with a byte that no compression begins with.

    >>> encoding_of(b"\x1f\x8b\x08"), encoding_of(b"\x0a\x1f")
    ('gzip', '')
    """
    return next((name for mark, name in _MARKS if message.startswith(mark)), "")
