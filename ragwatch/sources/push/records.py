"""Splits the body of a request into records: lines of a log that has one JSON object per line, or decoded objects."""

import codecs
import json
from collections.abc import Iterator, Sequence
from hashlib import sha256

import orjson

from ragwatch.errors import FormatError
from ragwatch.formats.feedback import FEEDBACK_FOR
from ragwatch.formats.fields import ID_KEYS
from ragwatch.formats.record import (
    ADVICE,
    MAX_DECODED_BYTES,
    Line,
    decode_body,
    decoded_size,
    is_too_large,
    objects_size,
    parse,
)
from ragwatch.sources.requests import RefusedError

MAX_RECORDS = 10_000
RECORD_BYTES = 512
"""Memory that a record takes beside its text while it waits and is read."""
KEPT_DECODED = 4
"""Elements of an array are kept decoded if their objects take at most so many times the memory of their text."""
_SPACE = b" \t\r\n"


def records_of(body: bytes, *, lines: bool) -> Sequence[Line]:
    r"""Return the records of a body: lines of JSONL, elements of an array, or one object.

    >>> records_of(b'[{"a": 1}, {"b": 2}]', lines=False), records_of(b'{"a": 1}\n\n{"b": 2}\n', lines=True)
    ([b'{"a":1}', b'{"b":2}'], [b'{"a": 1}', b'{"b": 2}'])
    >>> records_of(b'[{"question": "How long did the water of the old river turn the stone?"}]', lines=False)
    [{'question': 'How long did the water of the old river turn the stone?'}]

    Raises:
        RefusedError: 400: nothing can be read; 413: there are too many records.
    """
    text = body.strip(_SPACE)
    if not text:
        raise RefusedError(400, "the body is empty; send a JSON object, an array of objects, or JSONL")
    records: Sequence[Line]
    if not lines and text.startswith(b"["):
        records = _elements(text)
    elif lines or (b"\n" in text and not _is_one(text)):
        records = list(_lines(text))
    else:
        records = [text]
    if len(records) > MAX_RECORDS:
        raise _too_many()
    # A record that is too large alone is rejected when it is read, and costs no other.
    if is_too_large(text):
        sizes = (decoded_size(one) for one in records if isinstance(one, bytes))
        if sum(size for size in sizes if size <= MAX_DECODED_BYTES) > MAX_DECODED_BYTES:
            raise _too_large()
    return records


def _too_large() -> RefusedError:
    return RefusedError(413, f"the body is too large: {ADVICE}; send fewer records at a time")


def _too_many() -> RefusedError:
    return RefusedError(413, f"the body has more than {MAX_RECORDS} records; send fewer at a time")


def _lines(text: bytes) -> Iterator[bytes]:
    """Yield the lines that are not blank. A search for each end is faster than `split`, which looks at every byte."""
    start = 0
    for _ in range(2 * MAX_RECORDS):  # every other one may be blank
        end = text.find(b"\n", start)
        if line := text[start : end if end >= 0 else None].strip(_SPACE):
            yield line
        if end < 0:
            return
        start = end + 1
    raise _too_many()


def waiting_size(records: Sequence[Line], body: bytes) -> int:
    """Return the memory that the records of a body take while they wait, in bytes."""
    decoded = any(isinstance(record, dict) for record in records)
    return (decoded_size(body) if decoded else len(body)) + RECORD_BYTES * len(records)


def _is_one(text: bytes) -> bool:
    """Whether a text with several lines is one JSON value, and not JSONL."""
    if is_too_large(text):
        return False
    is_indented = text.removeprefix(codecs.BOM_UTF8).partition(b"\n")[0].strip(_SPACE) == b"{"  # no line of JSONL is
    try:
        (decode_body if is_indented else orjson.loads)(text)
    except orjson.JSONDecodeError:
        return False
    return True


def _elements(text: bytes) -> list[Line]:
    """Elements of an array; one that is no valid JSON is left as it is written, for intake to say what is wrong.

    Objects stay decoded unless this takes much memory, or characters in them have to be replaced.
    """
    if is_too_large(text):
        raise _too_large()
    has_nul = b"\\" in text and b"\\u0000" in text  # the first search is much faster, and often enough
    keep = objects_size(text) <= KEPT_DECODED * len(text) and not has_nul
    try:
        elements = orjson.loads(text)
        if len(elements) > MAX_RECORDS:
            raise _too_many()
        # orjson returns bytes in the kilobyte that it has reserved; a copy takes what it needs.
        return [
            element if keep and type(element) is dict else bytes(memoryview(orjson.dumps(element)))
            for element in elements
        ]
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):  # NaN, half of a surrogate pair, a syntax error
        return list(_slices(text.decode("utf-8", "replace")))


def _slices(text: str) -> Iterator[bytes]:
    """Yield the elements of an array as they are written, for intake to say what is wrong with each."""
    decoder = json.JSONDecoder(parse_int=float, parse_float=float)
    place = _skip(text, 1)
    while text[place : place + 1] != "]":
        try:
            _, end = decoder.raw_decode(text, place)
        except json.JSONDecodeError as error:
            raise RefusedError(400, f"the array is not JSON: {error.msg} at character {error.pos}") from None
        except (ValueError, RecursionError):
            raise RefusedError(400, "the array is not JSON: nested too deeply") from None
        yield text[place:end].encode()
        place = _skip(text, end)
        if text[place : place + 1] == ",":
            place = _skip(text, place + 1)
        elif text[place : place + 1] != "]":
            raise RefusedError(400, f"the array is not JSON: a comma or ] is missing at character {place}")
    if _skip(text, place + 1) < len(text):
        raise RefusedError(400, f"the body has text after the array, at character {place + 1}; or send JSONL")


def _skip(text: str, place: int) -> int:
    """Return the place of the next character that is no space."""
    while text[place : place + 1] in (" ", "\t", "\r", "\n"):
        place += 1
    return place


def as_feedback(record: Line) -> Line:
    """Return a record that was sent as feedback in the form that a log has: `feedback_for` names the answer.

    >>> as_feedback(b'{"id": "r1", "thumbs": "up"}')
    {'thumbs': 'up', 'feedback_for': 'r1'}
    """
    try:
        fields, _ = parse(record)
    except FormatError:  # intake says why
        return record
    given = next((fields.pop(name) for name in (FEEDBACK_FOR, *ID_KEYS) if fields.get(name) not in (None, "")), "")
    return {**fields, FEEDBACK_FOR: given}


class ContentHashes(Sequence[int]):
    """A hash of the content of each record, made when it is asked for: few records have no id."""

    def __init__(self, records: Sequence[Line]) -> None:
        self._records = records

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, index: int) -> int:  # type: ignore[override]  # nobody takes a slice
        record = self._records[index]
        return int.from_bytes(sha256(_encoded(record) if isinstance(record, dict) else record).digest()[:8])


def _encoded(record: dict[str, object]) -> bytes:
    try:
        return orjson.dumps(record)
    except orjson.JSONEncodeError:  # a field that no record needs is nested too deeply: the others tell records apart
        shallow = {key: value for key, value in record.items() if not isinstance(value, (dict, list))}
        return orjson.dumps({**shallow, "fields": sorted(record)})
