"""Requests whose records are not stored yet, the clients that wait for that, and why a request is refused."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from threading import Lock
from time import monotonic
from typing import Generic, TypeVar

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


BUSY_SECONDS = 5
"""After which clients that were refused for lack of room try again."""


class RefusedError(Exception):
    """A request that is not accepted.

    Args:
        retry_seconds: After how many seconds the client should try again; None if that is of no use.
    """

    def __init__(self, status: int, message: str, retry_seconds: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.retry_seconds = retry_seconds

    @property
    def headers(self) -> dict[str, str]:
        """Headers of the response."""
        return {} if self.retry_seconds is None else {"Retry-After": str(self.retry_seconds)}


def stopping() -> RefusedError:
    """The answer to requests while a source is closed."""
    return RefusedError(503, "ragwatch is stopping or reloads its configuration; send it again", BUSY_SECONDS)


@dataclass(slots=True, eq=False)
class Queued(Generic[Item, Outcome]):
    """The records of one request.

    Attributes:
        since: When the request arrived, in monotonic seconds.
        stored: Done when they are stored, with what became of them.
    """

    items: Sequence[Item]
    size: int
    since: float
    stored: asyncio.Future[Outcome]


class RequestQueue(Generic[Item, Outcome]):
    """A queue from the event loop, which receives requests, to the thread that stores their records.

    Args:
        max_bytes: Bytes from which on further requests are refused, unless it is empty; None for no limit.
    """

    def __init__(self, max_bytes: int | None = None) -> None:
        self._max_bytes = max_bytes
        self.wake = asyncio.Event()
        self._lock = Lock()
        self._waiting: deque[Queued[Item, Outcome]] = deque()
        self._closed = False
        self._size = 0

    def put(self, items: Sequence[Item], size: int) -> Queued[Item, Outcome]:
        """Add the records of a request; on the event loop.

        Raises:
            RefusedError: 429: it is full; 503: the source is closed.
        """
        queued = Queued(items, size, monotonic(), asyncio.get_running_loop().create_future())
        with self._lock:
            if self._closed:
                raise stopping()
            if self._max_bytes is not None and self._size and self._size + size > self._max_bytes:
                raise RefusedError(429, "too much waits to be stored; send it again later", BUSY_SECONDS)
            self._size += size
            self._waiting.append(queued)
        self.wake.set()
        return queued

    async def stored(self, items: Sequence[Item], size: int, seconds: float, late: str, *, keep: bool) -> Outcome:
        """Add the records of a request, and wait until they are stored; after some seconds the answer is `late`.

        With `keep` the records are stored all the same, after the client has that answer.

        Raises:
            RefusedError: 429 or 503: the client should send them again.
        """
        queued = self.put(items, size)
        try:
            async with asyncio.timeout(seconds):
                return await queued.stored
        except TimeoutError:
            raise RefusedError(503, late, BUSY_SECONDS) from None
        finally:
            with self._lock:
                if not keep and queued in self._waiting:
                    self._waiting.remove(queued)
                    self._size -= queued.size

    def take(self, max_bytes: int) -> list[Queued[Item, Outcome]]:
        """Remove and return the oldest requests, of about `max_bytes` together."""
        taken: list[Queued[Item, Outcome]] = []
        size = 0
        with self._lock:
            while self._waiting and (not taken or size + self._waiting[0].size <= max_bytes):
                taken.append(self._waiting.popleft())
                size += taken[-1].size
            self._size -= size
        return taken

    def lag(self) -> tuple[int, float]:
        """Return how many bytes wait, and for how many seconds the oldest; 0 if nothing does."""
        with self._lock:
            return self._size, monotonic() - self._waiting[0].since if self._waiting else 0.0

    def close(self) -> list[Queued[Item, Outcome]]:
        """Refuse further requests. Returns those that were waiting."""
        with self._lock:
            self._closed = True
            rest, self._size = list(self._waiting), 0
            self._waiting.clear()
        return rest


def answer(outcomes: Iterable[tuple[Queued[Item, Outcome], Outcome | RefusedError]]) -> None:
    """Let requests be answered: their records are stored, or refused. From any thread."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Outcome], Outcome | RefusedError]]] = {}
    for queued, outcome in outcomes:
        by_loop.setdefault(queued.stored.get_loop(), []).append((queued.stored, outcome))
    for loop, futures in by_loop.items():
        if not loop.is_closed():
            loop.call_soon_threadsafe(_resolve, futures)


def _resolve(futures: list[tuple[asyncio.Future[Outcome], Outcome | RefusedError]]) -> None:
    for future, outcome in futures:
        if future.done():
            continue
        if isinstance(outcome, RefusedError):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
