"""Requests whose records are not stored yet, and the clients that wait for that."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from time import monotonic

from ragwatch.ports import Rejection
from ragwatch.sources.push.request import BUSY_SECONDS, RefusedError


@dataclass(frozen=True, slots=True)
class Outcome:
    """What intake did with the records of one request.

    Attributes:
        rejections: Rejected records, by index.
        resent: How many were received before.
    """

    rejections: Sequence[tuple[int, Rejection]] = ()
    resent: int = 0


@dataclass(slots=True, eq=False)
class Waiting:
    """The records of one request.

    Attributes:
        records: Each as a line.
        size: Their bytes.
        since: When they arrived, in monotonic seconds.
        stored: Done when they are stored.
    """

    records: list[bytes]
    size: int
    stored: asyncio.Future[Outcome]
    since: float = field(default_factory=monotonic)


class WaitingRequests:
    """A queue from the event loop, which receives requests, to the thread that stores their records."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: deque[Waiting] = deque()
        self._closed = False

    def put(self, records: list[bytes]) -> Waiting:
        """Add the records of a request; on the event loop.

        Raises:
            RefusedError: 503: the source is closed.
        """
        stored = asyncio.get_running_loop().create_future()
        one = Waiting(records, sum(map(len, records)), stored)
        with self._lock:
            if self._closed:
                raise stopping()
            self._waiting.append(one)
        return one

    def remove(self, one: Waiting) -> None:
        """Forget a request whose client does not wait any more, unless it is being stored."""
        with self._lock:
            if one in self._waiting:
                self._waiting.remove(one)

    def take(self, max_bytes: int) -> list[Waiting]:
        """Remove and return the oldest requests, of about `max_bytes` together."""
        taken: list[Waiting] = []
        size = 0
        with self._lock:
            while self._waiting and (not taken or size + self._waiting[0].size <= max_bytes):
                taken.append(self._waiting.popleft())
                size += taken[-1].size
        return taken

    def lag(self) -> tuple[int, float]:
        """Return how many bytes wait, and for how many seconds the oldest."""
        with self._lock:
            oldest = monotonic() - self._waiting[0].since if self._waiting else 0.0
            return sum(one.size for one in self._waiting), oldest

    def close(self) -> list[Waiting]:
        """Refuse further requests. Returns those that were waiting."""
        with self._lock:
            self._closed = True
            rest = list(self._waiting)
            self._waiting.clear()
        return rest


def stopping() -> RefusedError:
    """The answer to requests while the source is closed."""
    return RefusedError(503, "ragwatch is stopping or reloads its configuration; send it again", BUSY_SECONDS)


def answer(requests: Iterable[tuple[Waiting, Outcome | RefusedError]]) -> None:
    """Answer requests, from any thread."""
    for one, outcome in requests:
        loop = one.stored.get_loop()
        if not loop.is_closed():
            loop.call_soon_threadsafe(_resolve, one.stored, outcome)


def _resolve(stored: asyncio.Future[Outcome], outcome: Outcome | RefusedError) -> None:
    if stored.done():
        return
    if isinstance(outcome, RefusedError):
        stored.set_exception(outcome)
    else:
        stored.set_result(outcome)
