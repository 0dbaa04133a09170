"""Protocol: one HTTP/1.1 connection, with deadlines for what a client sends and for what it takes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import h11
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from ragwatch.web.connections import VITAL, Connections
from ragwatch.web.request_limit import PIECE_BYTES, RETRY_SECONDS

HEADER_SECONDS = 10.0
LEFTOVER_SECONDS = 5.0  # for the rest of a body after its answer: hanging up at once might take the answer along
LOOK_SECONDS = 1.0  # between two looks at what a client takes
STALL_SECONDS = 15.0  # without a byte taken
GRACE_SECONDS, SLOWEST = 60.0, 16 << 10  # bytes a second, on average over a response that takes longer than the grace
SILENT, IDLE, SCRAPER, STALLED = range(4)  # which idle connections are closed first


class Protocol(H11Protocol):
    """HTTP/1.1 that hangs up on a client which neither asks anything, nor takes its answer, nor leaves.

    While nobody here is at work on a request there is a deadline, whatever trickles in: for the headers, for the rest
    of a body that was answered before it ended, or for the next request. A body that is read has its own (`Bodies`).
    While an answer waits for its client there is one as well. Answers leave in pieces, and the next piece is not
    written before the client has taken most of what is there.

    Args:
        connections: All of the server.
    """

    _deadline: asyncio.TimerHandle | None = None
    _seconds = 0.0  # of the deadline that runs, which tells what is waited for

    def __init__(self, *args: Any, connections: Connections, **kwargs: Any) -> None:  # noqa: ANN401 - uvicorn's
        super().__init__(*args, **kwargs)
        self._connections = connections
        self._application, self.app = self.app, self._answer
        self.host = ""
        self._rank = SILENT
        self._since: float | None = None  # when it became idle; None while a request is answered
        self._look: asyncio.TimerHandle | None = None
        self._sent = 0  # bytes of bodies given to the transport
        self._began = (0, 0.0)  # bytes taken when the answer began, and seconds for which it has waited since
        self._moved = (0, 0.0)  # bytes taken, and when that last changed

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Somebody has connected. For the loop."""
        super().connection_made(transport)
        self.host = self.client[0] if self.client else ""
        self._since = self.loop.time()
        self._watch()
        self._connections.opened(self)

    def data_received(self, data: bytes) -> None:
        """The client has sent something. For the loop."""
        if self.transport.is_closing():  # hung up on; what still arrives is nobody's request
            return
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """An answer was handed to the transport. For uvicorn."""
        self._since = self.loop.time()
        self._connections.answered(self)
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone. For the loop."""
        self._connections.closed(self)
        self._expect(None)
        if self._look is not None:
            self._look.cancel()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def idle(self) -> tuple[int, float] | None:
        """How dispensable it is, and since when; None while a request is answered and the client takes it."""
        if self.transport.get_write_buffer_size():
            return (STALLED, self._moved[1]) if self.loop.time() - self._moved[1] > LOOK_SECONDS else None
        return None if self._since is None else (self._rank, self._since)

    def hang_up(self) -> None:
        """Close it at once, whatever is still to be sent."""
        self.transport.abort()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, unless too many are being answered."""
        path = scope["path"]
        self._since, self._rank = None, SCRAPER if path in VITAL else IDLE
        now, taken = self.loop.time(), self._taken()
        self._began, self._moved = (taken, 0.0), (taken, now)
        if self._look is None:
            self._look = self.loop.call_later(LOOK_SECONDS, self._look_at_writing)
        app = self._application if self._connections.begin(self, path) else _BUSY
        cycle = self.cycle

        async def send_pieces(message: Message) -> None:
            for piece in _pieces(message):
                self._sent += len(piece.get("body", b""))
                await send(piece)  # waits until the client has taken most of the pieces before
                if cycle.disconnected:
                    raise ClientDisconnect

        try:
            await app(scope, receive, send_pieces)
        except ClientDisconnect:  # nobody is left to answer, and nothing is broken
            return

    def _taken(self) -> int:
        """Bytes that left this process, up to headers and framing."""
        return self._sent - self.transport.get_write_buffer_size()

    def _look_at_writing(self) -> None:
        """Hang up on a client that takes nothing of its answer for long, or hardly anything for very long."""
        now, taken, waits = self.loop.time(), self._taken(), self.transport.get_write_buffer_size() > 0
        if not waits or taken != self._moved[0]:
            self._moved = (taken, now)
        first, waited = self._began
        self._began = (first, waited + LOOK_SECONDS * waits)
        too_slow = waited > GRACE_SECONDS and taken - first < SLOWEST * waited
        if waits and (too_slow or now - self._moved[1] > STALL_SECONDS):
            self._look = None
            self.hang_up()
        elif waits or self._since is None:
            self._look = self.loop.call_later(LOOK_SECONDS, self._look_at_writing)
        else:
            self._look = None

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


_BUSY = PlainTextResponse(
    "Too many requests are under way; ask again later.\n",
    status_code=503,
    headers={"Retry-After": str(RETRY_SECONDS), "Connection": "close"},
)


def _pieces(message: Message) -> Iterator[Message]:
    """A message of a response, its body in pieces."""
    body = message.get("body", b"")
    more = message.get("more_body", False)
    for start in range(0, max(len(body), 1), PIECE_BYTES):
        end = start + PIECE_BYTES
        yield (
            message
            if len(body) <= PIECE_BYTES
            else {
                **message,
                "body": body[start:end],
                "more_body": more or end < len(body),
            }
        )
