"""Requests to a source of kind `push`: their content type, their body within limits, and refusals."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from types import MappingProxyType

import orjson

from ragwatch.ports.receiving import IncomingRequest, Reply

BUSY_SECONDS = 5
_BLOCK = 64 << 10
_DISCARDED = 4  # times the limit
_GZIP_WINDOW = 16 + zlib.MAX_WBITS
_LINES_BY_TYPE: Mapping[str, bool] = MappingProxyType(
    {
        "application/json": False,
        "application/x-ndjson": True,
        "application/ndjson": True,
        "application/jsonl": True,
        "application/x-jsonlines": True,
    }
)


class RefusedError(Exception):
    """A request that is not accepted.

    Attributes:
        status: HTTP status.
        retry_seconds: After how many seconds the client should try again; None if that is of no use.
    """

    def __init__(self, status: int, message: str, retry_seconds: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_seconds = retry_seconds

    def reply(self) -> Reply:
        """Return the response."""
        headers = {} if self.retry_seconds is None else {"Retry-After": str(self.retry_seconds)}
        return Reply(self.status, orjson.dumps({"error": str(self)}) + b"\n", headers=headers)


def has_lines(content_type: str) -> bool:
    """Return whether the body of a request is JSONL rather than JSON.

    >>> has_lines("application/x-ndjson"), has_lines("application/json; charset=utf-8")
    (True, False)

    Raises:
        RefusedError: 415 for any other type.
    """
    kind = _LINES_BY_TYPE.get(content_type.partition(";")[0].strip().lower())
    if kind is None:
        raise RefusedError(
            415, "Content-Type must be application/json (an object or an array) or application/x-ndjson (JSONL)"
        )
    return kind


class ByteBudget:
    """Bytes that the bodies of all requests may take together, while they are received and until they are stored.

    Args:
        size: How many.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self.taken = 0

    def take(self, size: int) -> None:
        """Take bytes.

        Raises:
            RefusedError: 429: too many are taken.
        """
        if self.taken + size > self._size:
            message = "too many records wait to be stored (queue_bytes of this source); send them again later"
            raise RefusedError(429, message, BUSY_SECONDS)
        self.taken += size

    def free(self, size: int) -> None:
        """Give bytes back."""
        self.taken -= size


class Body:
    """The body of one request, received and unpacked within limits.

    Args:
        request: The request.
        limit: Most bytes, as sent and unpacked.
        budget: From which its bytes are taken.

    Attributes:
        taken: Bytes that are taken from the budget.
    """

    def __init__(self, request: IncomingRequest, limit: int, budget: ByteBudget) -> None:
        self._request = request
        self._chunks = request.chunks
        self._limit = limit
        self._budget = budget
        self.taken = 0

    async def read(self) -> bytes:
        """Return the whole body.

        Raises:
            RefusedError: It is too large, damaged, or in an encoding that is not supported; or the budget is used up.
        """
        headers = self._request.headers
        encoding = headers.get("content-encoding", "").strip().lower()
        if encoding not in ("", "identity", "gzip", "x-gzip"):
            raise RefusedError(415, "Content-Encoding must be gzip, or none")
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length[:20]) > self._limit:
            raise self._too_large()
        gunzip = _Gunzip() if encoding.endswith("gzip") else None
        body = bytearray()
        sent = 0
        async for chunk in self._chunks:
            sent += len(chunk)
            if sent > self._limit:
                raise self._too_large()
            for piece in (chunk,) if gunzip is None else gunzip.pieces(chunk):
                self._take(len(piece))
                body += piece
        if gunzip is not None and not gunzip.is_complete:
            raise RefusedError(400, "the gzip body is cut off")
        return bytes(body)

    async def discard(self) -> None:
        """Receive the rest of a refused body, up to a limit: a client that is still sending would miss the response."""
        left = _DISCARDED * self._limit
        async for chunk in self._chunks:
            left -= len(chunk)
            if left < 0:
                return

    def _take(self, size: int) -> None:
        if self.taken + size > self._limit:
            raise self._too_large()
        self._budget.take(size)
        self.taken += size

    def _too_large(self) -> RefusedError:
        message = f"the body is larger than {self._limit} bytes (max_body_bytes of this source); send fewer records"
        return RefusedError(413, message)


class _Gunzip:
    """Unpacks gzip as it arrives, block by block; several members may follow each other."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP_WINDOW)
        self.is_complete = True

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        """Yield what a chunk unpacks to.

        Raises:
            RefusedError: 400: it is damaged.
        """
        rest = chunk
        while rest:
            if self._member.eof:
                self._member = zlib.decompressobj(_GZIP_WINDOW)
            try:
                piece = self._member.decompress(rest, _BLOCK)
            except zlib.error:
                raise RefusedError(400, "the body is not valid gzip") from None
            if piece:
                yield piece
            rest = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
        self.is_complete = self._member.eof
