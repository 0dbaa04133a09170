"""Turns: how many requests are worked on at a time, and how many bytes of their responses may wait for slow clients.

Pages and searches build responses of megabytes. Without a limit, enough clients at once, or clients that do not read,
would take all memory there is. Scrapes have turns of their own, which nobody else can take.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator

from anyio import CapacityLimiter, to_thread
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ragwatch.errors import RagwatchError
from ragwatch.web.reply import JSON

MIB = 1 << 20
PIECE_BYTES = 64 << 10
RETRY_SECONDS = 5


class BusyError(RagwatchError):
    """What is asked for is being done for others already.

    Args:
        message: What happened, for a person.
        seconds: When to ask again.
    """

    def __init__(self, message: str, seconds: int) -> None:
        super().__init__(message)
        self.seconds = seconds


class RequestLimit:
    """A limit on requests under way: threads that work on them, and bytes that they hold until they are sent.

    A request waits for its turn, first come, first served; after `seconds` it is answered with 503.

    Args:
        threads: How many are worked on at a time.
        total: Bytes that all of them may hold together.
        seconds: How long one waits.
    """

    def __init__(self, *, threads: int, total: int, seconds: float) -> None:
        self._threads = CapacityLimiter(threads)
        self._left = total
        self._seconds = seconds
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def answer(self, make: Callable[[], ASGIApp], size: int) -> ASGIApp:
        """The response that `make` returns, made in a thread; it gives its turn back once it is sent.

        Args:
            make: Does the work.
            size: Bytes that making it may take; a `Response` keeps as many as it has until it is sent, a stream all.

        Raises:
            HTTPException: Too many are under way, for too long.
        """
        await self._take(size)
        try:
            response = await to_thread.run_sync(make, limiter=self._threads)
        except BaseException:
            self._give(size)
            raise
        kept = min(size, len(response.body)) if isinstance(response, Response) else size
        self._give(size - kept)

        async def sent(scope: Scope, receive: Receive, send: Send) -> None:
            try:
                await response(scope, receive, send)
            finally:
                self._give(kept)

        return sent

    def stream(self, pieces: Iterator[bytes]) -> ASGIApp:
        """A JSON response that is made while it is sent, a piece in a thread at a time."""

        async def sent(_: Scope, __: Receive, send: Send) -> None:
            headers = [(b"content-type", JSON.encode())]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            while piece := await to_thread.run_sync(_next, pieces, limiter=self._threads):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})

        return sent

    async def _take(self, size: int) -> None:
        if not self._waiting and self._left >= size:
            self._left -= size
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        place = (size, turn)
        self._waiting.append(place)
        try:
            await asyncio.wait([turn], timeout=self._seconds)
        finally:
            if not turn.done():
                self._waiting.remove(place)
                self._next_turns()  # a smaller one behind it may have room
        if not turn.done():
            again = {"Retry-After": str(RETRY_SECONDS)}
            raise HTTPException(503, "Too many requests are under way; ask again later.\n", again)

    def _give(self, size: int) -> None:
        self._left += size
        self._next_turns()

    def _next_turns(self) -> None:
        while self._waiting and self._waiting[0][0] <= self._left:
            size, turn = self._waiting.popleft()
            self._left -= size
            turn.set_result(None)


def _next(pieces: Iterator[bytes]) -> bytes:
    """The next pieces that are worth a write together; empty at the end."""
    found, size = [], 0
    for piece in pieces:
        found.append(piece)
        size += len(piece)
        if size >= PIECE_BYTES:
            break
    return b"".join(found)
