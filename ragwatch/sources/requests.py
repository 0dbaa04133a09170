"""What sources have in common that clients send records to over HTTP.

Bodies are received, unpacked and decoded within limits of memory; their records wait in a queue until they are stored.
"""

import asyncio
import ctypes
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from threading import Lock
from time import monotonic
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from ragwatch.ports.sources import IncomingRequest

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")
Result = TypeVar("Result")
_one_at_a_time = Lock()  # of all sources: each large body takes many times its size while it is decoded
_GZIP_WINDOW = 16 + zlib.MAX_WBITS
_ZSTD_WINDOW = 8 << 20
_DEFLATED_PIECE, _ZSTD_PIECE = 4096, 256  # bytes that are unpacked at once: to 4 MiB and 8 MiB at most
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
    """The records of one request."""

    items: Sequence[Item]
    size: int
    since: float  # when the request arrived, in monotonic seconds
    stored: asyncio.Future[Outcome]  # done when they are stored, with what became of them


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
        """Add the records of a request; on the event loop. Raises RefusedError: 429: it is full; 503: it is closed."""
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
    for queued, outcome in outcomes:
        loop = queued.stored.get_loop()
        if not loop.is_closed():
            loop.call_soon_threadsafe(_resolve, queued.stored, outcome)


def _resolve(future: asyncio.Future[Outcome], outcome: Outcome | RefusedError) -> None:
    if future.done():
        return
    if isinstance(outcome, RefusedError):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)


class ByteBudget:
    """Bytes that all requests of a source may take together while they are received and wait; on the event loop."""

    def __init__(self, size: int) -> None:
        self._size = size
        self.taken = 0
        self.decoding = asyncio.Lock()

    def take(self, size: int) -> None:
        """Take bytes; one body alone may take more than there are. Raises RefusedError: 429: others took too many."""
        if self.taken and self.taken + size > self._size:
            message = "too many requests are received at once (queue_bytes of this source); send them again later"
            raise RefusedError(429, message, BUSY_SECONDS)
        self.taken += size


class Body:
    """The body of one request, as it was sent.

    Args:
        budget: From which its bytes are taken.
    """

    def __init__(self, request: IncomingRequest, limit: int, budget: ByteBudget, advice: str) -> None:
        self._chunks = request.chunks
        self._encoding = request.headers.get("content-encoding", "").strip().lower()
        self._length = request.headers.get("content-length", "")
        self._limit = limit
        self._budget = budget
        self._advice = advice
        self._taken = 0

    async def read(self) -> bytes:
        """Return the whole body.

        Raises:
            RefusedError: 413: it is too large; 415: it is compressed in another way; 429: too many are received.
        """
        if self.is_compressed and self._encoding not in _UNPACKERS:
            raise RefusedError(
                415, f"Content-Encoding {self._encoding[:20]!r} is not supported: use gzip, zstd, deflate or none"
            )
        if self._length.isdecimal() and int(self._length[:20]) > self._limit:
            raise self._too_large()
        parts: list[bytes] = []
        async for chunk in self._chunks:
            if self._taken + len(chunk) > self._limit:
                raise self._too_large()
            self._budget.take(len(chunk))
            self._taken += len(chunk)
            parts.append(chunk)
        return b"".join(parts)

    def unpacked(self, body: bytes) -> bytes:
        """Return the body without its compression; in a thread. What is behind the limit is never unpacked.

        Raises:
            RefusedError: 400: it is damaged; 413: it is larger; 415: the library that unpacks it is not installed.
        """
        if not self.is_compressed:
            return body
        result = bytearray()
        for block in _UNPACKERS[self._encoding](body):
            if len(result) + len(block) > self._limit:
                raise self._too_large()
            result += block
        return bytes(result)

    async def decoded(self, decode: Callable[[], Result]) -> Result:
        """Run `decode` in a thread, while no other large body is decoded."""
        async with self._budget.decoding:
            return await asyncio.to_thread(_alone, decode)

    @property
    def is_compressed(self) -> bool:
        """Whether the body has to be unpacked."""
        return self._encoding not in ("", "identity")

    def hold(self, size: int) -> None:
        """Take what the records need while they wait, instead of the bytes of the body. Raises RefusedError: 429."""
        self.free()
        self._budget.take(size)
        self._taken = size

    def free(self) -> None:
        """Give the bytes back."""
        self._budget.taken -= self._taken
        self._taken = 0

    def _too_large(self) -> RefusedError:
        return RefusedError(
            413, f"the body is larger than {self._limit} bytes (max_body_bytes of this source): {self._advice}"
        )


def _alone(decode: Callable[[], Result]) -> Result:
    """The allocator of glibc keeps what was freed between blocks that are in use; `malloc_trim` returns it."""
    with _one_at_a_time:
        try:
            return decode()
        finally:
            _trim()(0)


@cache
def _trim() -> Callable[[int], object]:
    """`malloc_trim` of the C library, or a function that does nothing where there is none."""
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return lambda _: None


def _members(body: bytes, name: str, start: Callable[[], Any], piece: int) -> Iterator[bytes]:
    """Unpack all members of gzip, or frames of zstd, in pieces: what is behind one is copied, and there may be many."""
    unpacker: Any = None
    for place in range(0, len(body), piece):
        rest = body[place : place + piece]
        while rest:
            unpacker = unpacker or start()
            yield unpacker.decompress(rest)
            rest, unpacker = (unpacker.unused_data, None) if unpacker.eof else (b"", unpacker)
    if unpacker is not None:
        raise RefusedError(400, f"the {name} body is cut off")


def _inflated(body: bytes, name: str, window: int) -> Iterator[bytes]:
    try:
        yield from _members(body, name, partial(zlib.decompressobj, window), _DEFLATED_PIECE)
    except zlib.error as error:
        raise RefusedError(400, f"the body is not valid {name}: {error}") from None


def _unpacked_zstd(body: bytes) -> Iterator[bytes]:
    try:
        import zstandard  # noqa: PLC0415 - an extra
    except ImportError:
        raise RefusedError(
            415, "zstd is not installed here: pip install 'ragwatch-exporter[zstd]', or let the client use gzip"
        ) from None
    try:
        start = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj
        yield from _members(body, "zstd", start, _ZSTD_PIECE)
    except zstandard.ZstdError as error:
        raise RefusedError(400, f"the body is not valid zstd: {error}") from None


_gunzipped = partial(_inflated, name="gzip", window=_GZIP_WINDOW)
_UNPACKERS: Mapping[str, Callable[[bytes], Iterator[bytes]]] = MappingProxyType(
    {
        "gzip": _gunzipped,
        "x-gzip": _gunzipped,
        "deflate": partial(_inflated, name="deflate", window=zlib.MAX_WBITS),
        "zstd": _unpacked_zstd,
    }
)
