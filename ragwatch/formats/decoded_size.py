"""How much memory JSON takes once it is decoded, from its bytes alone: an upper bound, before anything is built.

Every value becomes an object of Python: one megabyte of `[{},{},...]` becomes 25. Separators are counted at the speed
of memory; those within texts count as well, so that the bound is never too low.
"""

from __future__ import annotations

MAX_DECODED_BYTES = 96 << 20
"""Most memory that one body, record or reply may take once it is decoded."""
_BRACE, _BRACKET, _COMMA = 200, 90, 100
"""Bytes of an object with its first entry, of an array with its first value, and of a further entry or value."""
_SIZES = ((b"{", _BRACE), (b"[", _BRACKET), (b",", _COMMA))
_WIDEST = 4
"""Bytes of a character in a text of which one character is outside the Basic Multilingual Plane."""
UNCOUNTED_BYTES = MAX_DECODED_BYTES // (_BRACE + _WIDEST)
"""Shorter texts cannot take more, whatever they hold."""
ADVICE = f"decoded it would take more than {MAX_DECODED_BYTES >> 20} MiB of memory: it has too many values for its size"


def objects_size(text: bytes) -> int:
    """Return the most memory that the objects of a JSON text can take, without the characters of its texts.

    `count` looks at every byte, and takes several times as long as `replace`.
    """
    return sum(size * (len(text) - len(text.replace(mark, b""))) for mark, size in _SIZES)


def decoded_size(text: bytes) -> int:
    """Return the most memory that a JSON text can take once it is decoded, in bytes.

    >>> decoded_size(b'[{}, {"a": 1}]')
    604
    """
    width = 1 if text.isascii() and b"\\u" not in text else _WIDEST
    return width * len(text) + objects_size(text)


def is_too_large(text: bytes) -> bool:
    """Return whether a JSON text may take more than `MAX_DECODED_BYTES` once it is decoded."""
    return len(text) > UNCOUNTED_BYTES and decoded_size(text) > MAX_DECODED_BYTES
