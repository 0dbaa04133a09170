"""Limits the number of connections, in total and per client.

A new connection is never refused because of idle ones: the one that has been idle for longest is closed, starting with
those that have sent no request. A client with more than its part loses none that was opened just now, until the total
is reached: its request may have arrived unread, and gets a response that says when to retry. Health checks and scrapes
are always answered; other requests are refused while too many are in progress.

A connection counts from its first byte on, and its TLS handshake has a deadline: clients that connect and never
complete the handshake would otherwise hold file descriptors that no limit sees.
"""

import asyncio
import resource
import time
from collections import Counter
from collections.abc import Callable
from typing import Protocol, cast

from ragwatch.web.server.tls import Tls

MAX_CONNECTIONS = 256
MIN_CONNECTIONS = 16
RESERVED = 16  # beyond the limit, for health checks and scrapes
CLIENT_DIVISOR = 4  # limit per client: the limit / 4; behind a proxy all users are one client
DESCRIPTOR_DIVISOR = 8  # limit: file descriptors of the process / 8; the others are for logs and the state
UNUSED, IDLE, SCRAPER, STALLED = range(4)  # ranks: idle connections of the lowest rank are closed first
NEW_SECONDS = 1.0  # in which the request of a new connection is read
MONITORING_PATHS = frozenset({"/metrics", "/-/healthy", "/-/ready"})


class Connection(Protocol):
    """An open connection; `host` is the address of the client, without its port."""

    host: str

    def idle(self) -> tuple[int, float] | None:
        """Rank and start of the idle time; the smallest is closed first. None while a request is in progress."""

    def abort(self) -> None:
        """Closes the connection at once and discards unsent data."""


class Connections:
    """Registers the connections of a server and enforces the limits."""

    def __init__(self, limit: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._limit = limit
        self._per_client = max(limit // CLIENT_DIVISOR, 1)
        self._open: dict[Connection, None] = {}
        self._answering: dict[Connection, None] = {}
        self._clients: Counter[str] = Counter()

    def opened(self, connection: Connection) -> None:
        """Registers a new connection; closes idle ones if there are too many."""
        self._open[connection] = None
        of_client = [other for other in self._open if other.host == connection.host]
        while len(of_client) > self._per_client:
            if not self._close_idlest(of_client, connection, spares_new=len(self._open) <= self._limit):
                break
            of_client = [other for other in of_client if other in self._open]
        if len(self._open) > self._limit:
            made_room = self._close_idlest(list(self._open), connection)
            if not made_room and len(self._open) > self._limit + RESERVED:
                self._close(connection)

    def closed(self, connection: Connection) -> None:
        """Removes a closed connection."""
        self._open.pop(connection, None)
        self.answered(connection)

    def begin(self, connection: Connection, path: str) -> bool:
        """Registers a request. Returns False if too many are in progress, in total or for the client."""
        if path in MONITORING_PATHS:
            return True
        if len(self._answering) >= self._limit or self._clients[connection.host] >= self._per_client:
            return False
        self._answering[connection] = None
        self._clients[connection.host] += 1
        return True

    def answered(self, connection: Connection) -> None:
        """Removes the request of a connection, if there is one."""
        if connection in self._answering:
            del self._answering[connection]
            self._clients[connection.host] -= 1
            if not self._clients[connection.host]:
                del self._clients[connection.host]

    def _close_idlest(self, candidates: list[Connection], new: Connection, *, spares_new: bool = False) -> bool:
        idle = [
            (since, position, connection)
            for position, connection in enumerate(candidates)
            if (since := connection.idle()) and connection is not new
        ]
        if not idle:
            return False
        (rank, start), _, idlest = min(idle, key=lambda entry: entry[:2])
        if spares_new and rank == UNUSED and self._clock() - start < NEW_SECONDS:
            return False
        self._close(idlest)
        return True

    def _close(self, connection: Connection) -> None:
        self.closed(connection)
        connection.abort()


def max_connections() -> int:
    """Computes the connection limit from the limit on file descriptors, which followed logs need as well."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MAX_CONNECTIONS
    return max(MIN_CONNECTIONS, min(MAX_CONNECTIONS, soft // DESCRIPTOR_DIVISOR))


REMAINDER_SECONDS = 30.0  # for what a client still sends after the response


class DrainedTransport:
    """A transport that goes on receiving once it is closed, if the client is still sending, until the client closes it.

    The system discards a response that is under way when a connection is closed while bytes of the client are unread.
    """

    def __init__(self, transport: asyncio.Transport, sends: Callable[[], bool]) -> None:
        self._transport = transport
        self._sends = sends
        self._drains = False

    def __getattr__(self, name: str) -> object:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        """Whether it is closed: what still arrives is to be ignored."""
        return self._drains or self._transport.is_closing()

    def close(self) -> None:
        """Closes it once what was written is sent, and what the client sends has ended. The second time, at once."""
        if self.is_closing() or not self._sends():
            self._transport.close()
            return
        self._drains = True
        self._transport.resume_reading()
        if self._transport.can_write_eof():
            self._transport.write_eof()
        asyncio.get_running_loop().call_later(REMAINDER_SECONDS, self._transport.abort)


HANDSHAKE_SECONDS = 10.0
SHUTDOWN_SECONDS = 3.0  # for the client to confirm the end of a connection


class TlsHandshake(asyncio.Protocol):
    """Protocol that upgrades a connection to TLS, and then hands it over to HTTP, which `make` builds.

    Later changes of certificates do not affect it; `active` are connections that uvicorn closes when it stops.
    """

    def __init__(
        self, make: Callable[[], asyncio.Protocol], tls: Tls, connections: Connections, active: set[object]
    ) -> None:
        self._make = make
        self._tls = tls
        self._connections = connections
        self._active = active
        self._received = bytearray()  # decrypted bytes that arrive before the event loop resumes the upgrade
        self._ended = False
        self._lost: Exception | None = None
        self._is_lost = False
        self.host = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Starts the handshake. Called by asyncio."""
        loop = asyncio.get_running_loop()
        address = transport.get_extra_info("peername")
        self._transport = cast("asyncio.Transport", transport)  # of a stream
        self.host = str(address[0]) if address else ""
        self._since = loop.time()
        self._connections.opened(self)
        self._active.add(self)
        self._task = loop.create_task(self._upgrade())

    def data_received(self, data: bytes) -> None:
        """Keeps bytes for the protocol that takes over. Called by asyncio."""
        self._received += data

    def eof_received(self) -> None:
        """Keeps the end of the stream for the protocol that takes over. Called by asyncio."""
        self._ended = True

    def connection_lost(self, exc: Exception | None) -> None:
        """Keeps the end of the connection for the protocol that takes over. Called by asyncio."""
        self._is_lost, self._lost = True, exc

    def idle(self) -> tuple[int, float]:
        """See `Connection`."""
        return UNUSED, self._since

    def abort(self) -> None:
        """See `Connection`."""
        self._transport.abort()

    def shutdown(self) -> None:
        """Ends the handshake because the server stops. Called by uvicorn."""
        self.abort()

    async def _upgrade(self) -> None:
        try:
            transport = await asyncio.get_running_loop().start_tls(
                self._transport,
                self,
                self._tls.context,
                server_side=True,
                ssl_handshake_timeout=HANDSHAKE_SECONDS,
                ssl_shutdown_timeout=SHUTDOWN_SECONDS,
            )
        except OSError:  # no TLS, no common version, no certificate, a deadline: asyncio closes the connection
            transport = None
        finally:
            self._connections.closed(self)
            self._active.discard(self)
        if transport is None:
            self._transport.abort()
        elif not self._tls.allows(transport.get_extra_info("peercert")):
            transport.abort()
        else:
            http = self._make()
            transport.set_protocol(http)
            http.connection_made(transport)
            if self._received:
                http.data_received(bytes(self._received))
            if self._ended:
                http.eof_received()
            if self._is_lost:
                http.connection_lost(self._lost)
