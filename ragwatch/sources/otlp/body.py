"""Receives and unpacks the body of a request within limits of memory."""

from __future__ import annotations

import zlib
from io import BytesIO
from types import MappingProxyType
from typing import Protocol

from ragwatch.ports.receiving import IncomingRequest
from ragwatch.sources.otlp.request import BUSY_SECONDS, RequestError

_BLOCK = 64 * 1024
_DISCARDED = 4  # times the limit
_GZIP_WINDOW = 16 + zlib.MAX_WBITS
_ZSTD_WINDOW = 8 << 20
PROTOBUF, JSON = "application/x-protobuf", "application/json"
_TYPES = MappingProxyType({PROTOBUF: PROTOBUF, "application/protobuf": PROTOBUF, JSON: JSON})


def content_type(header: str) -> str:
    """Return the content type of a request, without parameters.

    >>> content_type("application/json; charset=utf-8")
    'application/json'

    Raises:
        RequestError: 415: any other type.
    """
    kind = _TYPES.get(header.partition(";")[0].strip().lower())
    if kind is None:
        raise RequestError(415, f"Content-Type must be {PROTOBUF} or {JSON}")
    return kind


class ByteBudget:
    """Bytes that the bodies of all requests may take together while they are received; on the event loop.

    Args:
        size: How many.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self.taken = 0

    def take(self, size: int) -> None:
        """Take bytes; one body alone may take more than there are.

        Raises:
            RequestError: 429: others have taken too many.
        """
        if self.taken and self.taken + size > self._size:
            message = "too many requests are received at once (queue_bytes of this source); send them again later"
            raise RequestError(429, message, BUSY_SECONDS)
        self.taken += size


class Body:
    """The body of one request, as it was sent.

    Args:
        request: The request.
        limit: Most bytes.
        budget: From which its bytes are taken.
    """

    def __init__(self, request: IncomingRequest, limit: int, budget: ByteBudget) -> None:
        self._chunks = request.chunks
        self._length = request.headers.get("content-length", "")
        self._limit = limit
        self._budget = budget
        self._taken = 0

    async def read(self) -> bytes:
        """Return the whole body.

        Raises:
            RequestError: 413: it is too large; 429: too many are received.
        """
        if self._length.isdecimal() and int(self._length[:20]) > self._limit:
            raise too_large(self._limit)
        body = bytearray()
        async for chunk in self._chunks:
            if len(body) + len(chunk) > self._limit:
                raise too_large(self._limit)
            self._budget.take(len(chunk))
            self._taken += len(chunk)
            body += chunk
        return bytes(body)

    async def discard(self) -> None:
        """Receive the rest of a refused body, up to a limit: a client that is still sending would miss the reply."""
        left = _DISCARDED * self._limit
        async for chunk in self._chunks:
            left -= len(chunk)
            if left < 0:
                return

    def free(self) -> None:
        """Give the bytes back."""
        self._budget.taken -= self._taken
        self._taken = 0


def too_large(limit: int) -> RequestError:
    """Return the error for a body that is too large."""
    return RequestError(
        413,
        f"the body is larger than {limit} bytes (max_body_bytes of this source): send fewer spans at once "
        "(OTEL_BSP_MAX_EXPORT_BATCH_SIZE)",
    )


def unpacked(body: bytes, encoding: str, limit: int) -> bytes:
    """Return a body without its compression.

    Args:
        body: As it was sent.
        encoding: The header Content-Encoding.
        limit: Most bytes; what is behind them is never unpacked.

    Raises:
        RequestError: 400: damaged; 413: larger; 415: another or an unavailable encoding.
    """
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return body
    if encoding in ("gzip", "x-gzip"):
        return _gunzipped(body, limit)
    if encoding == "zstd":
        return _unpacked_zstd(body, limit)
    raise RequestError(415, f"Content-Encoding {encoding[:20]!r} is not supported: use gzip, zstd or none")


def _gunzipped(body: bytes, limit: int) -> bytes:
    result = bytearray()
    rest = body
    try:
        while rest:
            unpacker = zlib.decompressobj(_GZIP_WINDOW)
            while not unpacker.eof:
                block = unpacker.decompress(rest, _BLOCK)
                result += block
                if len(result) > limit:
                    raise too_large(limit)
                rest = unpacker.unconsumed_tail
                if not block and not rest and not unpacker.eof:
                    raise RequestError(400, "the gzip body is cut off")
            rest = unpacker.unused_data
    except zlib.error as error:
        raise RequestError(400, f"the body is not valid gzip: {error}") from None
    return bytes(result)


def _unpacked_zstd(body: bytes, limit: int) -> bytes:
    try:
        import zstandard  # noqa: PLC0415 - an extra
    except ImportError:
        raise RequestError(
            415, "zstd is not installed here: pip install 'ragwatch-exporter[zstd]', or let the client use gzip"
        ) from None
    result = bytearray()
    try:
        reader: _Reader = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).stream_reader(
            BytesIO(body), read_across_frames=True
        )
        while block := reader.read(_BLOCK):
            result += block
            if len(result) > limit:
                raise too_large(limit)
    except zstandard.ZstdError as error:
        raise RequestError(400, f"the body is not valid zstd: {error}") from None
    return bytes(result)


class _Reader(Protocol):
    def read(self, size: int) -> bytes: ...
