"""Handles one HTTP/1.1 connection, with deadlines for receiving a request and for sending a response."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import h11
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState

from ragwatch.web.authentication import CERTIFICATE
from ragwatch.web.request_limit import CHUNK_BYTES, RETRY_SECONDS
from ragwatch.web.server.connections import MONITORING_PATHS, Connections

HEADER_SECONDS = 10.0
REMAINDER_SECONDS = 5.0  # for the rest of a body after the response: closing at once might discard the response
CHECK_SECONDS = 1.0  # between two checks of the progress of a response
STALL_SECONDS = 15.0  # without progress
GRACE_SECONDS, MIN_BYTES_PER_SECOND = 60.0, 16 << 10  # minimum rate of responses that take longer than the grace
UNUSED, IDLE, SCRAPER, STALLED = range(4)  # ranks: idle connections of the lowest rank are closed first


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
        super().connection_made(transport)
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
            self._deadline = self.loop.call_later(seconds, self.transport.close)


_TOO_MANY_REQUESTS = PlainTextResponse(
    "Too many requests are in progress; retry later.\n",
    status_code=503,
    headers={"Retry-After": str(RETRY_SECONDS), "Connection": "close"},
)


def _chunks(message: Message) -> Iterator[Message]:
    """Splits a message of a response into chunks."""
    body = message.get("body", b"")
    more = message.get("more_body", False)
    for start in range(0, max(len(body), 1), CHUNK_BYTES):
        end = start + CHUNK_BYTES
        yield (
            message
            if len(body) <= CHUNK_BYTES
            else {
                **message,
                "body": body[start:end],
                "more_body": more or end < len(body),
            }
        )
