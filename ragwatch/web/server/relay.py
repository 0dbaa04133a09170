"""Accepts connections for the gRPC library: ends TLS, and closes those that send too long a block of headers.

The library keeps a block of headers for as long as a client goes on sending it, before it knows who that is. The relay
reads how long the frames are that it passes on, and closes a connection whose block is longer than any call needs.
[RFC 9113, 4.1 and 6.10]
"""

import asyncio
import platform
import secrets
import shutil
import socket
import tempfile
from collections.abc import Callable
from itertools import count
from pathlib import Path

from ragwatch.web.authentication import Certificate
from ragwatch.web.server.connections import HANDSHAKE_SECONDS, SHUTDOWN_SECONDS
from ragwatch.web.server.tls import Tls

CHUNK_BYTES = 1 << 16
MAX_HEADER_BYTES = 1 << 16
"""Longest block of headers; the library refuses calls with a quarter of it."""
FLUSH_SECONDS = 5.0
"""For a client to receive what the server sent last."""
RETRY_SECONDS = 0.5
"""Pause before the next connection is accepted when the process has no descriptor left for a connection."""
_PREFACE_BYTES, _FRAME_BYTES = 24, 9
_HEADERS, _CONTINUATION = 1, 9
_Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class HeaderBlocks:
    """The lengths of the blocks of headers that a client sends over HTTP/2."""

    def __init__(self) -> None:
        self._skip = _PREFACE_BYTES  # bytes until the next frame
        self._frame = b""  # what is known of its first bytes
        self._block = 0  # bytes of the last block

    def too_long(self, data: bytes) -> bool:
        """Read further bytes. Returns whether a block is longer than `MAX_HEADER_BYTES`."""
        at = self._skip
        while at < len(data):
            part = data[at : at + _FRAME_BYTES - len(self._frame)]
            self._frame += part
            at += len(part)
            if len(self._frame) < _FRAME_BYTES:
                break
            size, kind = int.from_bytes(self._frame[:3], "big"), self._frame[3]
            self._frame = b""
            at += size
            if kind in (_HEADERS, _CONTINUATION):
                self._block = size + _FRAME_BYTES + (self._block if kind == _CONTINUATION else 0)
                if self._block > MAX_HEADER_BYTES:
                    return True
        self._skip = max(0, at - len(data))
        return False


class Relay:
    """Passes the connections of a listening socket on to the server of the library, which listens at `address`.

    Args:
        listener: Where clients connect.
        tls: Asked at each new connection.
        connections: How many there may be; further ones are closed.

    Attributes:
        certificates: Those of clients, verified, by the address that the server sees; None where a client has none.
    """

    def __init__(self, listener: socket.socket, tls: Callable[[], Tls | None], connections: int) -> None:
        listener.settimeout(0)
        self._listener = listener
        self._tls = tls
        self._max_connections = connections
        self._folder = None
        if platform.system() == "Linux":  # a name without a file, so that a read-only file system is no obstacle
            self._path = f"\0ragwatch-{secrets.token_hex(16)}"
        else:
            self._folder = tempfile.mkdtemp()
            self._path = str(Path(self._folder) / "grpc")
        self._numbers = count()
        self.certificates: dict[str, Certificate | None] = {}
        self._accepting: asyncio.Task[None] | None = None
        self._serving: set[asyncio.Task[None]] = set()

    @property
    def address(self) -> str:
        """Where the server listens, as the library writes it."""
        return _grpc_address(self._path)

    def start(self) -> None:
        """Accept connections from now on."""
        self._accepting = asyncio.create_task(self._accept())

    def close(self) -> None:
        """Accept no further connections."""
        if self._accepting is not None:
            self._accepting.cancel()
        self._listener.close()

    async def end(self) -> None:
        """End the connections that are left."""
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    async def _accept(self) -> None:
        while True:
            try:
                client, _ = await asyncio.get_running_loop().sock_accept(self._listener)
            except OSError:  # the client is gone, or there is no descriptor left
                await asyncio.sleep(RETRY_SECONDS)
                continue
            if len(self._serving) >= self._max_connections:
                client.close()
                continue
            task = asyncio.create_task(self._serve(client))
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)

    async def _serve(self, client: socket.socket) -> None:
        path = f"{self._path}-{next(self._numbers)}"
        with client, socket.socket(socket.AF_UNIX) as upstream:
            try:
                reader, writer = await self._open(client)
            except OSError:  # no TLS, no common version, no certificate, a deadline
                return
            try:
                self.certificates[_grpc_address(path)] = writer.get_extra_info("peercert")
                upstream.settimeout(0)
                upstream.bind(path)
                await asyncio.get_running_loop().sock_connect(upstream, self._path)
                server = await asyncio.open_unix_connection(sock=upstream, limit=CHUNK_BYTES)
                try:
                    await _pass_on((reader, writer), server)
                finally:
                    server[1].transport.abort()
                writer.close()
                async with asyncio.timeout(FLUSH_SECONDS):
                    await writer.wait_closed()
            except OSError:  # one side is gone, or receives nothing: a TimeoutError is one
                pass
            finally:
                writer.transport.abort()
                self._forget(path)

    def _forget(self, path: str) -> None:
        """Drop what is kept of a connection."""
        self.certificates.pop(_grpc_address(path), None)
        if self._folder is not None:
            Path(path).unlink(missing_ok=True)

    async def _open(self, client: socket.socket) -> _Streams:
        """Begin TLS where it is on, with the certificates of now."""
        loop, tls = asyncio.get_running_loop(), self._tls()
        reader = asyncio.StreamReader(CHUNK_BYTES)
        protocol = asyncio.StreamReaderProtocol(reader)
        limits = {"ssl_handshake_timeout": HANDSHAKE_SECONDS, "ssl_shutdown_timeout": SHUTDOWN_SECONDS} if tls else {}
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        transport, _ = await loop.connect_accepted_socket(
            lambda: protocol, client, ssl=tls.context if tls else None, **limits
        )
        return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


def _grpc_address(path: str) -> str:
    """Return an address of a Unix socket as the library writes it."""
    return f"unix-abstract:{path[1:]}" if path.startswith("\0") else f"unix:{path}"


async def _pass_on(client: _Streams, server: _Streams) -> None:
    """Pass bytes on in both directions, until one side ends, or the client sends too long a block of headers."""
    blocks = HeaderBlocks()

    async def requests() -> None:
        while (data := await client[0].read(CHUNK_BYTES)) and not blocks.too_long(data):
            server[1].write(data)
            await server[1].drain()

    async def responses() -> None:
        while data := await server[0].read(CHUNK_BYTES):
            client[1].write(data)
            await client[1].drain()

    directions = [asyncio.ensure_future(requests()), asyncio.ensure_future(responses())]
    try:
        await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for direction in directions:
            direction.cancel()
        await asyncio.gather(*directions, return_exceptions=True)
