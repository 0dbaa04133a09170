"""Splits the body of a request into records, each as the line of a log that has one JSON object per line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NoReturn

import orjson

from ragwatch.formats.feedback import FEEDBACK_FOR
from ragwatch.formats.fields import ID_KEYS
from ragwatch.sources.requests.refusal import RefusedError

MAX_VALUES = 300_000
UNCOUNTED_BYTES = 1 << 20
MAX_RECORDS = 10_000
_SPACE = b" \t\r\n"
_SEPARATORS = (b",", b"[", b"{")


def records_of(body: bytes, *, lines: bool) -> list[bytes]:
    r"""Return the records of a body: lines of JSONL, elements of an array, or one object.

    >>> records_of(b'[{"a": 1}, {"b": 2}]', lines=False), records_of(b'{"a": 1}\n\n{"b": 2}\n', lines=True)
    ([b'{"a":1}', b'{"b":2}'], [b'{"a": 1}', b'{"b": 2}'])

    Args:
        body: Unpacked.
        lines: Whether it is JSONL.

    Raises:
        RefusedError: 400: nothing can be read; 413: there are too many records.
    """
    text = body.strip(_SPACE)
    if not text:
        raise RefusedError(400, "the body is empty; send a JSON object, an array of objects, or JSONL")
    if not lines and text.startswith(b"["):
        records = _elements(text)
    elif lines or (b"\n" in text and not _is_one(text)):
        if text.count(b"\n") > 2 * MAX_RECORDS:  # before they are split; every other one may be blank
            raise _too_many()
        records = [line for line in (part.strip(_SPACE) for part in text.split(b"\n")) if line]
    else:
        records = [text]
    if len(records) > MAX_RECORDS:
        raise _too_many()
    return records


def _too_many() -> RefusedError:
    return RefusedError(413, f"the body has more than {MAX_RECORDS} records; send fewer at a time")


def has_too_many_values(record: bytes) -> bool:
    """Return whether a record may have so many JSON values that they would take much memory.

    Commas and brackets in texts count as well. Short records are not counted, which takes longer than to decode them.
    """
    return len(record) > UNCOUNTED_BYTES and sum(map(record.count, _SEPARATORS)) > MAX_VALUES


def _is_one(text: bytes) -> bool:
    """Whether a text with several lines is one JSON value, and not JSONL."""
    if has_too_many_values(text):
        return False
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def _elements(text: bytes) -> list[bytes]:
    """Elements of an array, each encoded again; an element that is no valid JSON is left as it is."""
    if has_too_many_values(text):
        raise RefusedError(413, f"the array has more than {MAX_VALUES} values; send fewer records at a time, or JSONL")
    try:
        return [orjson.dumps(element) for element in orjson.loads(text)]
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):  # NaN, half of a surrogate pair, a syntax error
        return list(_slices(text.decode("utf-8", "replace")))


def _slices(text: str) -> Iterator[bytes]:
    """Yield the elements of an array as they are written, for intake to say what is wrong with each."""
    decoder = json.JSONDecoder(parse_int=float, parse_float=float)
    place = _skip(text, 1)
    while text[place : place + 1] != "]":
        try:
            _, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            _refuse(error)
        yield text[place:end].encode()
        place = _skip(text, end)
        if text[place : place + 1] == ",":
            place = _skip(text, place + 1)
        elif text[place : place + 1] != "]":
            raise RefusedError(400, f"the array is not JSON: a comma or ] is missing at character {place}")
    if _skip(text, place + 1) < len(text):
        raise RefusedError(400, f"the body has text after the array, at character {place + 1}; or send JSONL")


def _refuse(error: Exception) -> NoReturn:
    detail = f"{error.msg} at character {error.pos}" if isinstance(error, json.JSONDecodeError) else "nested too deeply"
    raise RefusedError(400, f"the array is not JSON: {detail}") from None


def _skip(text: str, place: int) -> int:
    """Return the place of the next character that is no space."""
    while text[place : place + 1] in (" ", "\t", "\r", "\n"):
        place += 1
    return place


def as_feedback(record: bytes) -> bytes:
    """Return a record that was sent as feedback in the form that a log has: `feedback_for` names the answer.

    >>> as_feedback(b'{"id": "r1", "thumbs": "up"}')
    b'{"feedback_for":"r1","thumbs":"up"}'
    """
    if has_too_many_values(record):
        return record
    try:
        fields = orjson.loads(record)
    except orjson.JSONDecodeError:  # intake says why
        return record
    if not isinstance(fields, dict):
        return record
    given = next((fields.pop(name) for name in (FEEDBACK_FOR, *ID_KEYS) if fields.get(name) is not None), None)
    return orjson.dumps({FEEDBACK_FOR: given, **fields})
