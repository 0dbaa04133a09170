"""Runs the HTTP server. Binds before it starts, leaves signals to the daemon, and shuts down after a short drain."""

from __future__ import annotations

import asyncio
import errno
import http.client
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import cast

import uvicorn
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp
from uvicorn.server import ServerState

from ragwatch.errors import AddressError
from ragwatch.web.server.connections import Connections, TlsHandshake, max_connections
from ragwatch.web.server.protocol import Protocol
from ragwatch.web.server.tls import Tls

KEEP_ALIVE_SECONDS = 75  # longer than a usual scrape interval, so that scrapers reuse their connection
DRAIN_SECONDS = 3
BACKLOG_DIVISOR = 4  # backlog: the connection limit / 4, so that excess connections are closed between accepts
PROBE_SECONDS = 2.0
SEND_BUFFER_BYTES = 64 << 10  # of a socket: bytes that a client has not received count as our memory
_WILDCARDS = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - compared, not bound


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
        """Binds the address; from then on clients can connect, and wait for `serve`.

        Raises:
            AddressError: The address is not available.
        """
        if self._listener is None:
            self._listener = listen(self._host, self._port)

    async def serve(self, *, started: Callable[[int], None] = lambda _: None) -> None:
        """Serves until `stop` or cancellation; completes requests in progress first.

        Raises:
            AddressError: The address is not available.
        """
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
