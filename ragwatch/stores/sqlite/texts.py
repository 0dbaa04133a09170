"""Texts: JSON that lies packed in the database, read whole, in pieces, or only as far as a limit.

A sample may hold megabytes. Lists read the beginning of each, and whole texts leave the process in pieces, so that no
request needs as much memory as the texts that it is about.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from typing import Any

from pydantic_core import from_json

from ragwatch.errors import StoreError

PIECE_BYTES = 64 << 10
HEAD_BYTES = 16 << 10  # of a packed text, read by lists
OPENED_BYTES = 64 << 10  # of what these unpack to
EXCERPT_CHARS = 300
_EXCERPTS = ("id", "question", "answer")
# Escapes of a JSON string: a whole surrogate pair, half of one (which only a torn log holds), any other.
_ESCAPE = re.compile(rb"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F]..)|.)")


def damaged(error: object) -> StoreError:
    """What people are told about a text that is not what was written."""
    return StoreError(f"state: a stored text is damaged: {error}; restore a copy of the database")


class PackedText:
    """One packed JSON object.

    Args:
        body: What the database holds.
    """

    def __init__(self, body: object) -> None:
        self._body = body

    def size(self) -> int:
        """Bytes of its JSON. Unpacks all of it, a piece at a time, so that damage is found before anything is sent.

        Raises:
            StoreError: It is damaged.
        """
        size, first, last = 0, b"", b""
        for piece in self.pieces():
            size, first, last = size + len(piece), first or piece[:1], piece[-1:]
        if (first, last) != (b"{", b"}"):
            raise damaged("it is no JSON object")
        return size

    def pieces(self) -> Iterator[bytes]:
        """Its JSON, in pieces.

        Raises:
            StoreError: It is damaged.
        """
        unpacking, rest = zlib.decompressobj(), _bytes(self._body)
        try:
            while not unpacking.eof:
                piece = unpacking.decompress(rest, PIECE_BYTES)
                rest = unpacking.unconsumed_tail
                if piece:
                    yield piece
                elif not rest and not unpacking.eof:
                    raise damaged("its end is missing")
        except zlib.error as error:
            raise damaged(error) from error

    def beginning(self, most: int) -> tuple[dict[str, Any], bool]:
        """The fields that lie in its first bytes, the last of them perhaps cut short; and whether that is all of them.

        Args:
            most: Bytes of JSON that are read.

        Raises:
            StoreError: It is damaged.
        """
        unpacking = zlib.decompressobj()
        try:
            text = unpacking.decompress(_bytes(self._body), most)
            fields = json.loads(text) if unpacking.eof else _partial(text)
        except (zlib.error, ValueError) as error:
            raise damaged(error) from error
        if not isinstance(fields, dict):
            raise damaged("it is no JSON object")
        return fields, unpacking.eof


def excerpt(head: object) -> dict[str, Any]:
    """Id, question and answer of a sample, cut short: those that lie in the first bytes of its packed text.

    Raises:
        StoreError: It is damaged.
    """
    fields, _ = PackedText(head).beginning(OPENED_BYTES)
    return {name: shortened(fields[name]) for name in _EXCERPTS if name in fields}


def shortened(value: object) -> str | None:
    """A text cut to the length of an excerpt.

    >>> shortened("short"), shortened(None), len(shortened("x" * 1000) or "")
    ('short', None, 300)
    """
    if value is None:
        return None
    text = str(value)
    return text if len(text) <= EXCERPT_CHARS else f"{text[: EXCERPT_CHARS - 1]}…"


def _bytes(body: object) -> bytes:
    if not isinstance(body, bytes):
        raise damaged("it is no packed text")
    return body


def _partial(text: bytes) -> Any:  # noqa: ANN401 - JSON may be anything
    """The value of a JSON text that may end anywhere."""
    try:
        return from_json(text, allow_partial="trailing-strings", cache_strings="none")
    except ValueError:  # half of a surrogate pair is legal in what we keep, and this parser refuses it
        whole = _ESCAPE.sub(lambda found: b"\\ufffd" if found[1] else found[0], text)
        return from_json(whole, allow_partial="trailing-strings", cache_strings="none")
