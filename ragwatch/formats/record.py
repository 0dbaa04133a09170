"""Records of a log: how a line is decoded to a JSON object, and what reads one.

orjson decodes valid lines. Only a line that it refuses is examined further: what can be repaired unambiguously is
repaired (a byte order mark, bytes that are not UTF-8, escapes of no character), any other error is classified.
The last of duplicate keys wins, as in Python's json; integers beyond 64 bits become floats.

How much memory JSON takes once it is decoded is bounded from its bytes alone: every value becomes an object of Python,
so that one megabyte of `[{},{},...]` becomes 25. Separators are counted at the speed of memory, those within texts too.
"""

import codecs
import json
import re
from collections.abc import Callable, Mapping
from math import isinf
from types import MappingProxyType
from typing import Protocol

import orjson

from ragwatch.errors import FormatError, TooManyValuesError
from ragwatch.model.sample import RejectReason, Sample, SkipReason

Record = Mapping[str, object]
"""One JSON object as it was logged."""


class RecordReader(Protocol):
    """Converts records to samples."""

    def read(self, record: Record, fallback_id: str) -> Sample:
        """Return the sample in a record; `fallback_id` is its id if the record has none."""


class FormatReader(RecordReader, Protocol):
    """Converts records to samples by way of the canonical format."""

    def extract(self, record: Record) -> Record:
        """Return what `canonical` reads in place of a record."""


class Format(FormatReader, Protocol):
    """A known format: `canonical`, a row of `providers` or one of `traces.export`."""

    @property
    def NAME(self) -> str:  # noqa: N802  these three are constants, read-only here
        """Name in the configuration."""

    @property
    def KNOWN_BIAS(self) -> str:  # noqa: N802
        """What its records do not hold, and which figures that changes; empty if nothing is known."""

    @property
    def MAPPING(self) -> Mapping[str, str]:  # noqa: N802
        """The same format as JMESPath expressions, as a starting point for a custom mapping."""

    def matches(self, record: Record) -> bool:
        """Return whether a record looks like this format, by its keys alone. Never raises."""


Parsed = tuple[dict[str, object], bool] | SkipReason
"""A record and whether characters in it were replaced, or why the line is skipped (see `selection`)."""
Line = bytes | dict[str, object]
"""A line of a log; or a record that its source has decoded, of which `parse` would change nothing."""
Parse = Callable[[Line], Parsed]

READER_ERRORS = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Exceptions of readers at unexpected values. The record is rejected, so that it does not stop its source."""

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
BYTE_ORDER_MARKS: Mapping[bytes, str] = MappingProxyType({codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"})
_WIDE = MappingProxyType({"utf-16": 2, "utf-16-le": 2, "utf-16-be": 2})
_MIN_ZEROS = 0.4  # share of every second byte that is zero in UTF-16 of any script, because of JSON's own characters
_BOM = "\ufeff"
_NUL_ESCAPE = re.compile(rb"\\u0000")
# Escapes are matched from left to right, so that an escaped backslash does not start another escape.
_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(?P<invalid>\\u(?:[dD][89a-fA-F][0-9a-fA-F]{2}|0000))"
    r"|\\.",
    re.DOTALL,
)


def parse(line: Line) -> tuple[dict[str, object], bool]:
    """Decode the JSON object in one line. Returns it, and whether characters had to be replaced by U+FFFD.

    Bytes that are not UTF-8, lone surrogates and NUL are replaced, because they can be neither stored nor sent.

    Raises:
        FormatError: torn_json, not_an_object, not_finite, number_too_large, too_deep, binary or line_too_long.
    """
    if isinstance(line, dict):
        return line, False
    if is_too_large(line):
        raise FormatError(RejectReason.LINE_TOO_LONG, "", ADVICE)
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return _parse_carefully(line)
    if type(value) is not dict:
        raise _not_an_object(value)
    # NUL is valid JSON but refused by PostgreSQL: one record must not block a store.
    # The search for a backslash is ten times faster, and most lines have none.
    return _parse_carefully(line) if b"\\" in line and _NUL_ESCAPE.search(line) else (value, False)


def decode(text: str) -> object:
    """Decode JSON that a record holds as text, with the same characters replaced; JSONDecodeError where it is none."""
    try:
        if "\\u0000" not in text:
            return orjson.loads(text)
    except orjson.JSONDecodeError:
        if "\\u" not in text:
            raise
    return orjson.loads(_ESCAPE.sub(_character, text))


def decode_body(body: bytes) -> object:
    """Decode JSON that was sent by another program. Only where it is no JSON, what can be repaired is repaired.

    One text that was cut within an emoji must not cost all others of a request or a reply.

    Raises:
        JSONDecodeError: It is no JSON.
        TooManyValuesError: It would take too much memory; nothing was built of it.
    """
    if is_too_large(body):
        raise TooManyValuesError(ADVICE)
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        decoded, text = _repaired(body)
        if text == decoded and text.encode() == body:
            raise
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            raise error from None


def _parse_carefully(line: bytes) -> tuple[dict[str, object], bool]:
    if b"\x00" in line:
        halves = (line[::2], line[1::2])
        is_utf16 = any(len(half) > 1 and half.count(0) >= _MIN_ZEROS * len(half) for half in halves)
        likely = "looks like UTF-16: set encoding: utf-16" if is_utf16 else "a binary file, or a gap left by a crash"
        raise FormatError(RejectReason.BINARY, "", f"contains NUL bytes: {likely}")
    decoded, text = _repaired(line)
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise _error_of(text) from error
    if type(value) is not dict:
        raise _not_an_object(value)
    broken_bytes = decoded.count("\ufffd") != line.count("\ufffd".encode())
    return value, broken_bytes or text != decoded


def _repaired(line: bytes) -> tuple[str, str]:
    """A text as it is, and with escapes of no character replaced."""
    decoded = line.decode("utf-8", "replace").removeprefix(_BOM)
    return decoded, _ESCAPE.sub(_character, decoded)


def _character(escape: re.Match[str]) -> str:
    return "\\ufffd" if escape["invalid"] else escape[0]


def _not_an_object(value: object) -> FormatError:
    kind = {list: "an array", str: "a string", type(None): "null", bool: "a boolean"}.get(type(value), "a number")
    return FormatError(RejectReason.NOT_AN_OBJECT, "", f"a record is a JSON object, this is {kind}")


def _constant(constant: str) -> float:
    raise FormatError(RejectReason.NOT_FINITE, "", f"contains {constant}, which is not a number")


def _decimal(digits: str) -> float:
    if isinf(value := float(digits)):
        raise FormatError(RejectReason.NOT_FINITE, "", f"contains {digits[:20]}, beyond the largest number")
    return value


def _integer(digits: str) -> float:
    # As a float: int() takes quadratic time, and Python refuses more than 4300 digits.
    if isinf(value := float(digits)):
        raise FormatError(RejectReason.NUMBER_TOO_LARGE, "", f"contains an integer of {len(digits)} digits")
    return value


def _error_of(text: str) -> FormatError:
    """The error for which orjson refused a text, found with the slower but more detailed json module."""
    try:
        json.loads(text, parse_constant=_constant, parse_float=_decimal, parse_int=_integer)
    except FormatError as refused:
        return refused
    except json.JSONDecodeError as error:
        problem = error.msg.removesuffix(" at")
        return FormatError(RejectReason.TORN_JSON, "", f"not JSON: {problem} at character {error.pos}")
    except RecursionError:
        pass
    # json accepts it: it is nested deeper than the 1024 levels of orjson.
    return FormatError(RejectReason.TOO_DEEP, "", "nested too deeply")


def objects_size(text: bytes) -> int:
    """Return the most memory that the objects of a JSON text can take, without the characters of its texts.

    `count` looks at every byte, and takes several times as long as `replace`.
    """
    return sum(size * (len(text) - len(text.replace(mark, b""))) for mark, size in _SIZES)


def decoded_size(text: bytes) -> int:
    """Return the most memory that a JSON text can take once it is decoded, in bytes."""
    width = 1 if text.isascii() and b"\\u" not in text else _WIDEST
    return width * len(text) + objects_size(text)


def is_too_large(text: bytes) -> bool:
    """Return whether a JSON text may take more than `MAX_DECODED_BYTES` once it is decoded."""
    return len(text) > UNCOUNTED_BYTES and decoded_size(text) > MAX_DECODED_BYTES


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


def as_utf8(text: bytes, encoding: str) -> bytes:
    """Return a text in UTF-8; what is no character becomes U+FFFD."""
    return text.decode(encoding, "replace").removeprefix(_BOM).encode("utf-8", "replace")
