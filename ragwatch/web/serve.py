"""Serve: the HTTP server. Binds before it starts, leaves signals to the daemon, and waits for nobody for long."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import h11
import uvicorn
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from ragwatch.errors import ConfigError

HEADER_SECONDS = 10.0
LEFTOVER_SECONDS = 5.0  # for the rest of a body after its answer: hanging up at once might take the answer along
KEEP_ALIVE_SECONDS = 75  # longer than a usual scrape interval, so that a scraper keeps its connection
DRAIN_SECONDS = 3
CONNECTIONS = 256


class _Protocol(H11Protocol):
    """HTTP/1.1 that hangs up on a client which neither asks anything nor leaves.

    While nobody here is at work on a request there is a deadline, whatever trickles in: for the headers, for the rest
    of a body that was answered before it ended, or for the next request. A body that is read has its own (`Bodies`).
    """

    _deadline: asyncio.TimerHandle | None = None
    _seconds = 0.0  # of the deadline that runs, which tells what is waited for

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect(None)
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def _watch(self) -> None:
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request, whatever uvicorn declares
        if self.transport.is_closing() or (cycle is not None and not cycle.response_complete):
            self._expect(None)
        elif self.conn.their_state is h11.SEND_BODY:
            self._expect(LEFTOVER_SECONDS)
        elif cycle is None or self.conn.trailing_data[0]:
            self._expect(HEADER_SECONDS)
        else:
            self._expect(None)
            if self.timeout_keep_alive_task is None:  # uvicorn forgets it where a body ends after its answer
                self.timeout_keep_alive_task = self.loop.call_later(
                    self.timeout_keep_alive, self.timeout_keep_alive_handler
                )

    def _expect(self, seconds: float | None) -> None:
        if seconds is not None and self._deadline is not None and seconds == self._seconds:
            return  # it runs: what trickles in does not renew it
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if seconds is not None:
            self._seconds = seconds
            self._deadline = self.loop.call_later(seconds, self.transport.close)


class _Uvicorn(uvicorn.Server):
    """uvicorn without signal handlers of its own: the daemon decides when to stop."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._tell = started

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._tell()


class Server:
    """Serves one application on one address, once.

    Args:
        app: What is served.
        host: Name or address to listen on.
        port: Port, 0 for any free one.
    """

    def __init__(self, app: ASGIApp, host: str, port: int) -> None:
        self._app = app
        self._host = host
        self._port = port
        self._running: _Uvicorn | None = None

    async def serve(self, *, started: Callable[[int], None] = lambda _: None) -> None:
        """Serve until `stop`, or until cancelled; either way what was asked is answered first.

        Args:
            started: Told the port once requests are answered.

        Raises:
            ConfigError: Nothing can listen on that address.
        """
        # anyio imports its asyncio part at the first use: better now than while the loop has work to do.
        await run_in_threadpool(int)
        with _listen(self._host, self._port) as listener:
            port = listener.getsockname()[1]
            self._running = _Uvicorn(uvicorn.Config(self._app, **_settings()), lambda: started(port))
            serving = asyncio.create_task(self._running.serve(sockets=[listener]))
            try:
                await asyncio.shield(serving)
            except asyncio.CancelledError:
                self.stop()
                await serving
                raise

    def stop(self) -> None:
        """Answer what was asked, then end `serve`."""
        if self._running is not None:
            self._running.should_exit = True


def _settings() -> dict[str, Any]:
    return {
        "lifespan": "off",
        "log_config": None,
        "access_log": False,
        "server_header": False,
        "ws": "none",
        "http": _Protocol,
        "timeout_keep_alive": KEEP_ALIVE_SECONDS,
        "timeout_graceful_shutdown": DRAIN_SECONDS,
        "limit_concurrency": CONNECTIONS,
    }


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.create_server(address[:2], family=family)
    except OSError as error:
        raise ConfigError(f"web.listen: cannot listen on {host}:{port}: {error.strerror or error}") from error
    # Connections inherit this. asyncio sets it only where the protocol is named, and here it is not. Without it,
    # replies on kept connections wait some 40 ms for an acknowledgement.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener
