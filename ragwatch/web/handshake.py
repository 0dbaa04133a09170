"""Does the TLS handshake of a connection before HTTP starts.

A connection counts towards the limits from its first byte on, and has a deadline: clients that connect and never
complete the handshake would otherwise hold file descriptors that no limit sees.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from ragwatch.web.connections import Connections
from ragwatch.web.tls import Tls

HANDSHAKE_SECONDS = 10.0
SHUTDOWN_SECONDS = 3.0  # for the client to confirm the end of a connection
UNUSED = 0  # rank of connections that have sent no request


class TlsHandshake(asyncio.Protocol):
    """Protocol that upgrades a connection to TLS, and then hands it over to HTTP.

    Args:
        make: Builds the protocol that takes over.
        tls: The context, which later changes do not affect.
        connections: All connections of the server.
        active: Connections that uvicorn closes when it stops.
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
            self._hand_over(transport)

    def _hand_over(self, transport: asyncio.Transport) -> None:
        http = self._make()
        transport.set_protocol(http)
        http.connection_made(transport)
        if self._received:
            http.data_received(bytes(self._received))
        if self._ended:
            http.eof_received()
        if self._is_lost:
            http.connection_lost(self._lost)
