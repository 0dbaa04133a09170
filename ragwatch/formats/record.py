"""A line of a log to a JSON object.

orjson reads the lines that are right. Only a line it refuses goes the careful way: what can be mended without
guessing is mended (a byte order mark, bytes that are not UTF-8, escapes that are no character), all else is named.
Of a repeated key the last one counts, as everywhere in Python; integers beyond 64 bits become floats.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from math import isinf
from typing import Any

import orjson

from ragwatch.core.sample import RejectReason
from ragwatch.errors import FormatError

Parse = Callable[[bytes], tuple[dict[str, Any], bool]]

_BOM = "\ufeff"
_NUL_ESCAPE = re.compile(rb"\\u0000")
_OBJECT = re.compile(rb'\{\s*"')
# Every escape is consumed from left to right, so that the backslash of an escaped backslash starts nothing.
_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(?P<mend>\\u(?:[dD][89a-fA-F][0-9a-fA-F]{2}|0000))"
    r"|\\.",
    re.DOTALL,
)


def parse(line: bytes) -> tuple[dict[str, Any], bool]:
    """The JSON object in one line, and whether characters had to be replaced by U+FFFD to read it.

    Replaced are bytes that are not UTF-8, lone surrogates and NUL: none of them can be stored or sent on.

    >>> parse(b'{"question": "why?"}')
    ({'question': 'why?'}, False)

    Raises:
        FormatError: torn_json, not_an_object, not_finite, number_too_large, too_deep or binary.
    """
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return _parse_carefully(line)
    if type(value) is not dict:
        raise _not_an_object(value)
    # A NUL is legal JSON and refused by PostgreSQL: one record must not stop a store for good.
    # The single backslash is looked for first because it costs a tenth, and most lines hold none.
    return _parse_carefully(line) if b"\\" in line and _NUL_ESCAPE.search(line) else (value, False)


def parse_behind_text(line: bytes) -> tuple[dict[str, Any], bool]:
    """The same for a line that a logger has begun with text of its own, such as a time and a level.

    The object begins at the first brace that a quoted key follows, and ends with the line. Only where a source is
    configured so: in a log of any other kind, users' text at the end of a line could pass for a record.

    >>> parse_behind_text(b'2026-01-01 12:00:00 INFO {app} {"question": "why?"}')
    ({'question': 'why?'}, False)

    Raises:
        FormatError: As `parse`.
    """
    begin = _OBJECT.search(line)
    return parse(line[begin.start() :] if begin else line)


def _parse_carefully(line: bytes) -> tuple[dict[str, Any], bool]:
    if b"\x00" in line:
        raise FormatError(RejectReason.BINARY, "", "holds NUL bytes: not text, or a hole that a crash left")
    decoded = line.decode("utf-8", "replace").removeprefix(_BOM)
    text = _ESCAPE.sub(_mended, decoded)
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise _why(text) from error
    if type(value) is not dict:
        raise _not_an_object(value)
    broken_bytes = decoded.count("\ufffd") != line.count("\ufffd".encode())
    return value, broken_bytes or text != decoded


def _mended(escape: re.Match[str]) -> str:
    return "\\ufffd" if escape["mend"] else escape[0]


def _not_an_object(value: object) -> FormatError:
    names = {list: "an array", str: "a string", type(None): "null", bool: "a boolean"}
    found = names.get(type(value), "a number")
    return FormatError(RejectReason.NOT_AN_OBJECT, "", f"a record is a JSON object, this is {found}")


class _RefusedRecord(Exception):  # noqa: N818  it carries a verdict through the json module and never leaves this file
    def __init__(self, reason: RejectReason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def _constant(word: str) -> float:
    raise _RefusedRecord(RejectReason.NOT_FINITE, f"holds {word}, which is no number")


def _decimal(digits: str) -> float:
    value = float(digits)
    if isinf(value):
        raise _RefusedRecord(RejectReason.NOT_FINITE, f"holds {digits[:20]}, beyond the largest number")
    return value


def _integer(digits: str) -> float:
    # As a float: int() of many digits takes quadratic time, and Python refuses more than 4300.
    value = float(digits)
    if isinf(value):
        raise _RefusedRecord(RejectReason.NUMBER_TOO_LARGE, f"holds an integer of {len(digits)} digits")
    return value


def _why(text: str) -> FormatError:
    """The reason for which orjson refused the text, found with the slower but talkative reader."""
    try:
        json.loads(text, parse_constant=_constant, parse_float=_decimal, parse_int=_integer)
    except _RefusedRecord as refused:
        return FormatError(refused.reason, "", str(refused))
    except json.JSONDecodeError as error:
        return FormatError(RejectReason.TORN_JSON, "", f"not JSON: {error.msg} at character {error.pos}")
    except RecursionError:
        pass
    # What json reads and orjson does not is nested deeper than orjson's 1024.
    return FormatError(RejectReason.TOO_DEEP, "", "nested too deeply")
