"""Serve: the HTTP server. Binds before it starts, leaves signals to the daemon, and waits for nobody for long."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import uvicorn
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp

from ragwatch.web.connections import Connections, most_connections
from ragwatch.web.listen import listen
from ragwatch.web.protocol import Protocol

KEEP_ALIVE_SECONDS = 75  # longer than a usual scrape interval, so that a scraper keeps its connection
DRAIN_SECONDS = 3
ACCEPTED_AT_ONCE = 4  # this part of all connections: those that are too many are closed before the next ones


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
        self._listener: socket.socket | None = None
        self._running: _Uvicorn | None = None

    def bind(self) -> None:
        """Take the address; from now on clients can connect, and wait for `serve` to answer.

        Raises:
            AddressError: Nothing can listen there.
        """
        if self._listener is None:
            self._listener = listen(self._host, self._port)

    async def serve(self, *, started: Callable[[int], None] = lambda _: None) -> None:
        """Serve until `stop`, or until cancelled; either way what was asked is answered first.

        Args:
            started: Told the port once requests are answered.

        Raises:
            AddressError: Nothing can listen on that address.
        """
        # anyio imports its asyncio part at the first use: better now than while the loop has work to do.
        await run_in_threadpool(int)
        self.bind()
        assert self._listener is not None  # noqa: S101 - bound above
        with self._listener as listener:
            port = listener.getsockname()[1]
            self._running = _Uvicorn(uvicorn.Config(self._app, **_settings()), lambda: started(port))
            serving = asyncio.create_task(self._running.serve(sockets=[listener]))
            try:
                await asyncio.shield(serving)
            except asyncio.CancelledError:
                self.stop()
                await serving
                raise

    def close(self) -> None:
        """Let go of the address, where it was bound and `serve` has not begun."""
        if self._listener is not None:
            self._listener.close()

    def stop(self) -> None:
        """Answer what was asked, then end `serve`."""
        if self._running is not None:
            self._running.should_exit = True


def _settings() -> dict[str, Any]:
    most = most_connections()
    return {
        "lifespan": "off",
        "log_config": None,
        "access_log": False,
        "server_header": False,
        "ws": "none",
        "http": partial(Protocol, connections=Connections(most)),
        "backlog": max(most // ACCEPTED_AT_ONCE, 1),
        "timeout_keep_alive": KEEP_ALIVE_SECONDS,
        "timeout_graceful_shutdown": DRAIN_SECONDS,
    }
