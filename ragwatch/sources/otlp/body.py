"""Receives and unpacks the body of a request within limits of memory."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator
from io import BytesIO
from types import MappingProxyType
from typing import Protocol

from ragwatch.sources.otlp.request import RequestError

_BLOCK = 64 * 1024
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


async def received(chunks: AsyncIterator[bytes], length: str, limit: int) -> bytes:
    """Return a body as it was sent.

    Args:
        chunks: Its parts.
        length: The header Content-Length; empty if there is none.
        limit: Most bytes.

    Raises:
        RequestError: 413: it is larger.
    """
    if length.isdecimal() and int(length[:20]) > limit:
        raise _too_large(limit)
    body = bytearray()
    async for chunk in chunks:
        if len(body) + len(chunk) > limit:
            raise _too_large(limit)
        body += chunk
    return bytes(body)


def _too_large(limit: int) -> RequestError:
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
                    raise _too_large(limit)
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
                raise _too_large(limit)
    except zstandard.ZstdError as error:
        raise RequestError(400, f"the body is not valid zstd: {error}") from None
    return bytes(result)


class _Reader(Protocol):
    def read(self, size: int) -> bytes: ...
