"""Encodings of logs other than UTF-8: the option `encoding` of a source."""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from types import MappingProxyType

BYTE_ORDER_MARKS: Mapping[bytes, str] = MappingProxyType({codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"})
_WIDE = MappingProxyType({"utf-16": 2, "utf-16-le": 2, "utf-16-be": 2})
_MIN_ZEROS = 0.4  # share of every second byte that is zero in UTF-16 of any script, because of JSON's own characters


def known_encoding(name: str) -> str:
    """Return the canonical name of an encoding.

    >>> known_encoding("UTF16"), known_encoding("latin1")
    ('utf-16', 'iso8859-1')

    Raises:
        ValueError: It is unknown, or lines cannot be cut in it.
    """
    try:
        encoding = codecs.lookup(name).name
        newline = "\n".encode(encoding)
    except (LookupError, UnicodeError, TypeError) as error:
        raise ValueError(f"{name!r} is unknown; write utf-16, cp1252, shift_jis or the like") from error
    if encoding not in _WIDE and newline != b"\n":
        raise ValueError(f"{name!r} has no line ends of one byte; convert the log to UTF-8")
    return encoding


def width_of(encoding: str | None) -> int:
    """Return the bytes of a line end in an encoding."""
    return _WIDE.get(encoding or "", 1)


def byte_order(block: bytes, encoding: str) -> str:
    """Return an encoding of UTF-16 with its byte order, which every block of JSON tells."""
    if encoding != "utf-16":
        return encoding
    return "utf-16-le" if block[1::2].count(0) >= block[::2].count(0) else "utf-16-be"


def is_utf16(line: bytes) -> bool:
    """Return whether a line with NUL bytes is most likely one of UTF-16."""
    return any(len(half) > 1 and half.count(0) >= _MIN_ZEROS * len(half) for half in (line[::2], line[1::2]))


def as_utf8(text: bytes, encoding: str) -> bytes:
    """Return a text in UTF-8; what is no character becomes U+FFFD."""
    return text.decode(encoding, "replace").removeprefix("\ufeff").encode("utf-8", "replace")
