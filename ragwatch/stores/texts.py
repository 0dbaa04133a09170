"""Compressed JSON texts, as the database holds them: read completely, in chunks, or up to a limit.

A sample may have megabytes. Lists read only the first bytes of each text, and complete texts are streamed in chunks,
so that the memory of a request is bounded.
"""

import json
import re
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic_core import from_json

from ragwatch.errors import StoreError

ZLIB_LEVEL = 1  # 90 us for a 6 KB sample, and nearly the ratio of level 9
PIECE_BYTES = 64 << 10
HEAD_JSON_BYTES = 64 << 10  # of JSON decompressed from them
EXCERPT_CHARS = 300
_JSON = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"))
_EXCERPTS = ("id", "question", "answer")
# Escapes of a JSON string: a surrogate pair, a lone surrogate (from a truncated log), any other.
_ESCAPE = re.compile(rb"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F]..)|.)")


def damaged_text(error: object) -> StoreError:
    """Return the error for a stored text that cannot be decoded."""
    return StoreError(f"state: a stored text is damaged: {error}; restore a copy of the database")


def pack(value: Mapping[str, object]) -> bytes:
    """Encode a value as compressed JSON.

    Uses `json` because orjson refuses lone surrogates, which truncated escapes in a log produce.
    """
    return zlib.compress(_JSON.encode(value).encode("ascii"), ZLIB_LEVEL)


def unpack(body: bytes) -> Any:  # noqa: ANN401 - a JSON object, of the type that was packed
    """Decode what `pack` has encoded. Raises a `StoreError` where it is damaged."""
    try:
        value = json.loads(zlib.decompress(body))
    except (zlib.error, ValueError, TypeError) as error:
        raise damaged_text(error) from error
    if not isinstance(value, dict):
        raise damaged_text("it is not a JSON object")
    return value


class PackedText:
    """One compressed JSON object, as a database column holds it; implements `ports.StoredText`."""

    def __init__(self, body: object) -> None:
        self._body = body

    def size(self) -> int:
        """See `StoredText.size`. Decompresses in chunks. Raises a `StoreError` if it is damaged."""
        size, first, last = 0, b"", b""
        for piece in self.pieces():
            size, first, last = size + len(piece), first or piece[:1], piece[-1:]
        if (first, last) != (b"{", b"}"):
            raise damaged_text("it is not a JSON object")
        return size

    def pieces(self) -> Iterator[bytes]:
        """See `StoredText.pieces`. Raises a `StoreError` where it is damaged."""
        decompressor, rest = zlib.decompressobj(), _bytes(self._body)
        try:
            while not decompressor.eof:
                piece = decompressor.decompress(rest, PIECE_BYTES)
                rest = decompressor.unconsumed_tail
                if piece:
                    yield piece
                elif not rest and not decompressor.eof:
                    raise damaged_text("it is truncated")
        except zlib.error as error:
            raise damaged_text(error) from error

    def beginning(self, max_bytes: int) -> tuple[Any, bool]:
        """See `StoredText.beginning`. The last field may be truncated. Raises a `StoreError` where it is damaged."""
        decompressor = zlib.decompressobj()
        try:
            text = decompressor.decompress(_bytes(self._body), max_bytes)
            fields = json.loads(text) if decompressor.eof else _partial(text)
        except (zlib.error, ValueError) as error:
            raise damaged_text(error) from error
        if not isinstance(fields, dict):
            raise damaged_text("it is not a JSON object")
        return fields, decompressor.eof


def excerpt(head: object) -> Any:  # noqa: ANN401 - fields of a `SampleRecord`
    """Return excerpts of id, question and answer from the first bytes of a compressed sample, as far as contained."""
    fields, _ = PackedText(head).beginning(HEAD_JSON_BYTES)
    return {name: shortened(fields[name]) for name in _EXCERPTS if name in fields}


def shortened(value: object) -> str | None:
    """Truncate a text to the length of an excerpt.

    >>> shortened("short"), shortened(None), len(shortened("x" * 1000) or "")
    ('short', None, 300)
    """
    if value is None:
        return None
    text = str(value)
    return text if len(text) <= EXCERPT_CHARS else f"{text[: EXCERPT_CHARS - 1]}…"


def _bytes(body: object) -> bytes:
    if not isinstance(body, bytes):
        raise damaged_text("it is not a compressed text")
    return body


def _partial(text: bytes) -> object:
    """Parse a JSON text that may be truncated at any byte."""
    try:
        return from_json(text, allow_partial="trailing-strings", cache_strings="none")
    except ValueError:  # stored texts may have lone surrogates, which this parser refuses
        valid = _ESCAPE.sub(lambda match: b"\\ufffd" if match[1] else match[0], text)
        return from_json(valid, allow_partial="trailing-strings", cache_strings="none")
