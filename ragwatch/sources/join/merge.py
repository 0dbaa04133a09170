"""Merges the records of one request. The result depends on the records, not on the order in which they arrive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import orjson

from ragwatch.core.sample import RejectReason
from ragwatch.errors import FormatError
from ragwatch.formats import fields
from ragwatch.formats.times import epoch_seconds

PARTS = "parts"
_MAX_DEPTH = 32


class RecordPart(NamedTuple):
    """One of the records.

    Attributes:
        place: Position of its source in the option `of`.
        text: The record as JSON.
    """

    place: int
    text: bytes


def merged(parts: Sequence[RecordPart], group: str) -> dict[str, object]:
    """Return one record with the fields of all parts, the id of the group, and the parts themselves as `parts`.

    Parts are taken in the order of their sources in the configuration, then of their own times, then of their text. Of
    different values of a field the last one that is not null stands; objects are merged field by field.

    >>> record = merged([RecordPart(1, b'{"event": "answer", "answer": "a"}'), RecordPart(0, b'{"event": "ask"}')], "7")
    >>> record["id"], record["event"], record["answer"], [part["event"] for part in record["parts"]]
    ('7', 'answer', 'a', ['ask', 'answer'])
    """
    records = [record for _, record in sorted(map(_ordered, parts), key=lambda pair: pair[0])]
    result: dict[str, object] = {}
    for record in records:
        _merge(result, record, _MAX_DEPTH)
    return {**result, "id": group, PARTS: records}


def _ordered(part: RecordPart) -> tuple[tuple[int, float, bytes], Mapping[str, object]]:
    record = orjson.loads(part.text)
    return (part.place, _time(record), part.text), record


def _time(record: Mapping[str, object]) -> float:
    key, value = fields.first(record, fields.TIME_KEYS)
    try:
        return 0.0 if value is None else epoch_seconds(value, key)
    except FormatError:
        return 0.0


def _merge(result: dict[str, object], record: Mapping[str, object], depth: int) -> None:
    """Add the fields of a record. Objects in the result are copies, because the parts are kept as they are."""
    for key, value in record.items():
        known = result.get(key)
        if isinstance(known, dict) and isinstance(value, dict) and depth:
            _merge(known, value, depth - 1)
        elif value is not None or key not in result:
            result[key] = _copy(value, depth) if isinstance(value, dict) else value


def _copy(value: dict[str, object], depth: int) -> dict[str, object]:
    if not depth:
        return value
    return {key: _copy(item, depth - 1) if isinstance(item, dict) else item for key, item in value.items()}


def json_of(record: Mapping[str, object]) -> bytes:
    """Encode a record.

    Raises:
        FormatError: too_deep: encoders have a lower limit than decoders.
    """
    try:
        return orjson.dumps(record)
    except (orjson.JSONEncodeError, RecursionError) as error:
        raise FormatError(RejectReason.TOO_DEEP, "", "nested too deeply to be joined") from error
