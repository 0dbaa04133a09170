"""Runs the HTTP server: binds before it starts, handles connections with deadlines, and stops after a short drain."""

import asyncio
import errno
import http.client
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import cast

import h11
import uvicorn
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState

from ragwatch.errors import AddressError
from ragwatch.web.authentication import CERTIFICATE
from ragwatch.web.request_limit import CHUNK_BYTES, RETRY_SECONDS
from ragwatch.web.server.connections import (
    IDLE,
    MONITORING_PATHS,
    REMAINDER_SECONDS,
    SCRAPER,
    STALLED,
    UNUSED,
    Connections,
    DrainedTransport,
    TlsHandshake,
    max_connections,
)
from ragwatch.web.server.tls import Tls

KEEP_ALIVE_SECONDS = 75  # longer than a usual scrape interval, so that scrapers reuse their connection
DRAIN_SECONDS = 3
BACKLOG_DIVISOR = 4  # backlog: the connection limit / 4, so that excess connections are closed between accepts
PROBE_SECONDS = 2.0
SEND_BUFFER_BYTES = 64 << 10  # of a socket: bytes that a client has not received count as our memory
_WILDCARDS = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - compared, not bound
HEADER_SECONDS = 10.0
_SENDING = (h11.SEND_BODY, h11.ERROR)  # states of a client that may send more
CHECK_SECONDS = 1.0  # between two checks of the progress of a response
STALL_SECONDS = 15.0  # without progress
GRACE_SECONDS, MIN_BYTES_PER_SECOND = 60.0, 16 << 10  # minimum rate of responses that take longer than the grace


class Protocol(H11Protocol):
    """HTTP/1.1 protocol that closes connections of clients that neither send a request nor receive the response.

    While no request is processed there is a deadline that received bytes do not extend: for the headers, for the rest
    of a body that was answered before its end, or for the next request. The deadline of a body that is being read is
    in `RequestBodyLimit`. A response that the client does not receive has a deadline as well. Responses are written in
    chunks; the next chunk is written after the client has received most of the previous ones.
    """

    _deadline: asyncio.TimerHandle | None = None
    _seconds = 0.0  # length of the current deadline

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, object],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        connections: Connections,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._connections = connections
        self._application, self.app = self.app, self._answer
        self.host = ""
        self._rank = UNUSED
        self._since: float | None = None  # start of the idle time; None while a request is in progress
        self._check: asyncio.TimerHandle | None = None
        self._sent = 0  # body bytes passed to the transport
        # Bytes received by the client at the start of the response, and seconds of waiting since.
        self._response_start = (0, 0.0)
        self._progress = (0, 0.0)  # bytes received by the client, and the time of the last change

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Registers the connection. Called by asyncio."""
        drained = DrainedTransport(transport, lambda: self.conn.their_state in _SENDING)
        super().connection_made(cast("asyncio.Transport", drained))
        self.host = self.client[0] if self.client else ""
        self._since = self.loop.time()
        self._update_deadline()
        self._connections.opened(self)

    def data_received(self, data: bytes) -> None:
        """Processes received bytes. Called by asyncio."""
        if self.transport.is_closing():  # closed by us: ignore what still arrives
            return
        super().data_received(data)
        self._update_deadline()

    def send_400_response(self, msg: str) -> None:
        """Refuses what is no HTTP, or hangs up where a response to it cannot be sent any more. Called by uvicorn."""
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.abort()

    def on_response_complete(self) -> None:
        """Marks the connection as idle after a response. Called by uvicorn."""
        self._since = self.loop.time()
        self._connections.answered(self)
        super().on_response_complete()
        self._update_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        """Removes the connection. Called by asyncio."""
        self._connections.closed(self)
        self._set_deadline(None)
        if self._check is not None:
            self._check.cancel()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def idle(self) -> tuple[int, float] | None:
        """Rank and start of the idle time; None while a request is processed or its response is received."""
        if self.transport.get_write_buffer_size():
            return (STALLED, self._progress[1]) if self.loop.time() - self._progress[1] > CHECK_SECONDS else None
        return None if self._since is None else (self._rank, self._since)

    def abort(self) -> None:
        """Closes the connection at once and discards unsent data."""
        self.transport.abort()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Processes one request; responds with 503 if too many are in progress."""
        path = scope["path"]
        scope[CERTIFICATE] = self.transport.get_extra_info("peercert")
        self._since, self._rank = None, SCRAPER if path in MONITORING_PATHS else IDLE
        now, received = self.loop.time(), self._received()
        self._response_start, self._progress = (received, 0.0), (received, now)
        if self._check is None:
            self._check = self.loop.call_later(CHECK_SECONDS, self._check_progress)
        app = self._application if self._connections.begin(self, path) else _TOO_MANY_REQUESTS
        cycle = self.cycle

        async def send_chunks(message: Message) -> None:
            for chunk in _chunks(message):
                self._sent += len(chunk.get("body", b""))
                await send(chunk)  # waits until the client has received most of the previous chunks
                if cycle.disconnected:
                    raise ClientDisconnect

        try:
            await app(scope, receive, send_chunks)
        except ClientDisconnect:  # the client closed the connection: no response, no error
            return

    def _received(self) -> int:
        """Number of bytes sent by this process, without headers and framing."""
        return self._sent - self.transport.get_write_buffer_size()

    def _check_progress(self) -> None:
        """Closes the connection if the response makes no progress, or is too slow for too long."""
        now, received, waits = self.loop.time(), self._received(), self.transport.get_write_buffer_size() > 0
        if not waits or received != self._progress[0]:
            self._progress = (received, now)
        first, waited = self._response_start
        self._response_start = (first, waited + CHECK_SECONDS * waits)
        too_slow = waited > GRACE_SECONDS and received - first < MIN_BYTES_PER_SECOND * waited
        if waits and (too_slow or now - self._progress[1] > STALL_SECONDS):
            self._check = None
            self.abort()
        elif waits or self._since is None:
            self._check = self.loop.call_later(CHECK_SECONDS, self._check_progress)
        else:
            self._check = None

    def _update_deadline(self) -> None:
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request
        if self.transport.is_closing() or (cycle is not None and not cycle.response_complete):
            self._set_deadline(None)
        elif self.conn.their_state is h11.SEND_BODY:
            self._set_deadline(REMAINDER_SECONDS)
        elif cycle is None or self.conn.trailing_data[0]:
            self._set_deadline(HEADER_SECONDS)
        else:
            self._set_deadline(None)
            if self.timeout_keep_alive_task is None:  # uvicorn does not start it if the body ends after the response
                self.timeout_keep_alive_task = self.loop.call_later(
                    self.timeout_keep_alive, self.timeout_keep_alive_handler
                )

    def _set_deadline(self, seconds: float | None) -> None:
        if seconds is not None and self._deadline is not None and seconds == self._seconds:
            return  # the deadline runs; received bytes do not extend it
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if seconds is not None:
            self._seconds = seconds
            self._deadline = self.loop.call_later(seconds, self.transport.abort)


_TOO_MANY_REQUESTS = PlainTextResponse(
    "Too many requests are in progress; retry later.\n",
    status_code=503,
    headers={"Retry-After": str(RETRY_SECONDS), "Connection": "close"},
)


def _chunks(message: Message) -> Iterator[Message]:
    """Splits a message of a response into chunks."""
    body = message.get("body", b"")
    if len(body) <= CHUNK_BYTES:
        yield message
        return
    for start in range(0, len(body), CHUNK_BYTES):
        end = start + CHUNK_BYTES
        more = message.get("more_body", False) or end < len(body)
        yield {**message, "body": body[start:end], "more_body": more}


class _Uvicorn(uvicorn.Server):
    """uvicorn without signal handlers: the daemon handles signals."""

    def __init__(self, config: uvicorn.Config, on_started: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_started = on_started

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_started()


class Server:
    """Serves one application on one address, once. Port 0 is any free one; `tls` is asked at each new connection."""

    def __init__(self, app: ASGIApp, host: str, port: int, tls: Callable[[], Tls | None] = lambda: None) -> None:
        self._app = app
        self._tls = tls
        self._host = host
        self._port = port
        self._listener: socket.socket | None = None
        self._running: _Uvicorn | None = None
        self._is_stopped = False

    def bind(self) -> None:
        """Binds the address; clients that connect wait for `serve`. Raises AddressError: it is not available."""
        if self._listener is None:
            self._listener = listen(self._host, self._port)

    async def serve(self, *, started: Callable[[int], None] = lambda _: None) -> None:
        """Serves until `stop` or cancellation; completes requests in progress first. Raises AddressError."""
        # anyio imports its asyncio backend at the first use; import it now, not during a request.
        await run_in_threadpool(int)
        self.bind()
        assert self._listener is not None  # noqa: S101 - bound above
        with self._listener as listener:
            if self._is_stopped:
                return
            port = listener.getsockname()[1]
            self._running = _Uvicorn(_config(self._app, self._tls), lambda: started(port))
            serving = asyncio.create_task(self._running.serve(sockets=[listener]))
            try:
                await asyncio.shield(serving)
            except asyncio.CancelledError:
                self.stop()
                await serving
                raise

    def close(self) -> None:
        """Closes the listening socket, if it is bound and `serve` has not started."""
        if self._listener is not None:
            self._listener.close()

    def stop(self) -> None:
        """Completes requests in progress, then ends `serve`, also one that begins later."""
        self._is_stopped = True
        if self._running is not None:
            self._running.should_exit = True


def _config(app: ASGIApp, tls: Callable[[], Tls | None]) -> uvicorn.Config:
    limit = max_connections()
    connections = Connections(limit)

    def protocol(
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, object],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> Protocol | TlsHandshake:
        http = partial(Protocol, config, server_state, app_state, _loop, connections=connections)
        current, active = tls(), cast("set[object]", server_state.connections)
        return http() if current is None else TlsHandshake(http, current, connections, active)

    return uvicorn.Config(
        app,
        lifespan="off",
        log_config=None,
        log_level="error",  # a warning for each request that is no HTTP, or asks for WebSockets, would fill disks
        access_log=False,
        server_header=False,
        ws="none",
        http=cast("type[asyncio.Protocol]", protocol),  # which uvicorn calls, and nothing else
        backlog=max(limit // BACKLOG_DIVISOR, 1),
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=DRAIN_SECONDS,
    )


def listen(host: str, port: int) -> socket.socket:
    """Opens a listening socket; port 0 is any free one. Raises AddressError: the address is not available."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.create_server(address[:2], family=family)
    except (OSError, UnicodeError) as error:  # an invalid host name raises UnicodeError
        shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        code = getattr(error, "errno", None) or 0  # codes of the resolver are negative
        reason = os.strerror(code) if code > 0 else getattr(error, "strerror", None) or str(error)
        raise AddressError(f"cannot listen on {shown}: {reason}; {_advice(error, host, port)}") from error
    # Connections inherit this. asyncio sets it only if the protocol number is given, which it is not here. Without it,
    # responses on keep-alive connections wait about 40 ms for a delayed acknowledgement.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    return listener


def _advice(error: Exception, host: str, port: int) -> str:
    code = getattr(error, "errno", None)
    if code == errno.EADDRINUSE:
        holder = "another ragwatch" if _is_ragwatch(host, port) else "another process"
        return f"{holder} has this port (see `ss -ltnp 'sport = :{port}'`); stop it or write another port"
    if code == errno.EACCES:
        return "ports below 1024 need a privilege; write a higher port"
    return "write an address of this machine, such as 127.0.0.1:10477"


def _is_ragwatch(host: str, port: int) -> bool:
    """Whether another ragwatch serves the address; asks its health endpoint once."""
    connection = http.client.HTTPConnection("localhost" if host in _WILDCARDS else host, port, timeout=PROBE_SECONDS)
    try:
        connection.request("GET", "/-/healthy")
        return connection.getresponse().read(100).startswith(b"ragwatch")
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
