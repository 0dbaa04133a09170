"""Requests whose spans are not stored yet, and the clients that wait for that."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from threading import Lock
from time import monotonic

from ragwatch.sources.otlp.pieces import Piece
from ragwatch.sources.otlp.request import BUSY_SECONDS, RequestError

OVERHEAD = 1_000
"""Bytes that a request takes in addition to its spans."""


@dataclass(slots=True, eq=False)
class Queued:
    """The spans of one request.

    Attributes:
        pieces: The spans, by trace.
        size: Their bytes.
        since: When it arrived, in monotonic seconds.
        stored: Done when the spans are stored.
    """

    pieces: list[Piece]
    size: int
    since: float
    stored: asyncio.Future[None]


class RequestQueue:
    """A bounded queue from the event loop, which receives requests, to the thread that stores their spans.

    Args:
        max_bytes: Bytes from which on further requests are refused.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._lock = Lock()
        self._waiting: deque[Queued] = deque()
        self._closed = False
        self.size = 0

    def put(self, pieces: list[Piece]) -> Queued:
        """Add the spans of a request; on the event loop.

        Raises:
            RequestError: 429: it is full; 503: the source is closed.
        """
        size = OVERHEAD + sum(len(piece.payload) for piece in pieces)
        queued = Queued(pieces, size, monotonic(), asyncio.get_running_loop().create_future())
        with self._lock:
            if self._closed:
                raise RequestError(503, "ragwatch is stopping or reloads its configuration", BUSY_SECONDS)
            if self.size and self.size + size > self._max_bytes:
                raise RequestError(429, "too many spans wait to be stored; send them again later", BUSY_SECONDS)
            self.size += size
            self._waiting.append(queued)
        return queued

    def take(self, max_bytes: int) -> list[Queued]:
        """Remove and return the oldest requests, of about `max_bytes` together."""
        taken: list[Queued] = []
        size = 0
        with self._lock:
            while self._waiting and (not taken or size + self._waiting[0].size <= max_bytes):
                taken.append(self._waiting.popleft())
                size += taken[-1].size
            self.size -= size
        return taken

    def oldest(self) -> float:
        """Return for how many seconds the oldest request has waited; 0 if there is none."""
        with self._lock:
            return monotonic() - self._waiting[0].since if self._waiting else 0.0

    def close(self) -> list[Queued]:
        """Refuse further requests. Returns those that were waiting."""
        with self._lock:
            self._closed = True
            rest, self.size = list(self._waiting), 0
            self._waiting.clear()
        return rest


def answer(queued: list[Queued], error: RequestError | None = None) -> None:
    """Let requests be answered: their spans are stored, or `error`. From any thread."""
    by_loop: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
    for one in queued:
        by_loop.setdefault(one.stored.get_loop(), []).append(one.stored)
    for loop, futures in by_loop.items():
        if not loop.is_closed():
            loop.call_soon_threadsafe(_resolve, futures, error)


def _resolve(futures: list[asyncio.Future[None]], error: RequestError | None) -> None:
    for future in futures:
        if not future.done():
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)
