"""Merges the records of one request. The result depends on the records, not on the order in which they arrive."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import orjson

from ragwatch.errors import FormatError
from ragwatch.formats import fields
from ragwatch.formats.fields import epoch_seconds
from ragwatch.model.sample import RejectReason

PARTS = "parts"
_MAX_DEPTH = 32
KIND_NAMES = ("type", "event", "kind", "run_type", "level")
MIN_PIECES = 3
"""Different texts at one place of parts of one shape, from which on they are pieces; two may be an answer and another
one in its place."""
Extract = Callable[[Mapping[str, object]], object]


class Pieces(NamedTuple):
    """How fields are put together that are logged in pieces."""

    concat: Mapping[str, Extract]  # extracts the pieces of a field from a part, by field of the joined record
    order: Extract | None = None  # extracts the position of a part; None for the order of time, then of arrival

    def texts_in(self, record: Mapping[str, object]) -> dict[str, list[str]]:
        """Return the pieces in a part, by field."""
        return {name: _texts(extract(record)) for name, extract in self.concat.items()}


WHOLE = Pieces({})
"""No field is logged in pieces."""


class RecordPart(NamedTuple):
    """One of the records."""

    place: int  # position of its source in the option `of`
    text: bytes


def merged(parts: Sequence[RecordPart], group: str, pieces: Pieces = WHOLE) -> dict[str, object]:
    """Return one record with the fields of all parts, the id of the group, and the parts themselves as `parts`.

    Fields in pieces are the pieces of all parts, joined in their order; the last one if each repeats those before it.

    Parts are taken in the order of their sources in the configuration, then of their own times, then of their text. Of
    different values of a field the last one that is not null stands; objects are merged field by field.

    >>> record = merged([RecordPart(1, b'{"event": "answer", "answer": "a"}'), RecordPart(0, b'{"event": "ask"}')], "7")
    >>> record["id"], record["event"], record["answer"], [part["event"] for part in record["parts"]]
    ('7', 'answer', 'a', ['ask', 'answer'])
    """
    keyed: list[tuple[tuple[int, float, int, bytes], Mapping[str, object]]] = []
    for arrival, part in enumerate(parts):
        record = orjson.loads(part.text)
        tie = (arrival, b"") if pieces.concat else (0, part.text)  # the order of arrival alone tells equal pieces apart
        keyed.append(((part.place, _position(record, pieces.order), *tie), record))
    records = [record for _, record in sorted(keyed, key=lambda pair: pair[0])]
    result: dict[str, object] = {}
    for record in records:
        _merge(result, record, _MAX_DEPTH)
    taken = [pieces.texts_in(record) for record in records] if pieces.concat else []
    for name in pieces.concat:
        if any(texts[name] for texts in taken):
            result[name] = _whole([piece for texts in taken for piece in texts[name]])
    return {**result, "id": group, PARTS: records}


def _whole(texts: Sequence[str]) -> str:
    """The whole of some pieces: joined, or the last one if each repeats those before it."""
    grows = all(later.startswith(earlier) for earlier, later in pairwise(texts))
    if len(texts) >= MIN_PIECES and ((grows and texts[-1] != texts[0]) or texts[-1] == "".join(texts[:-1])):
        return texts[-1]
    return "".join(texts)


def _position(record: Mapping[str, object], order: Extract | None) -> float:
    """Where a record belongs among those of its source: by `order`, else by its time."""
    key, position = "order", None if order is None else order(record)
    if isinstance(position, (int, float)):
        return float(position)
    if position is None:
        key, position = fields.first(record, fields.TIME_KEYS)
    try:
        return 0.0 if position is None else epoch_seconds(position, key)
    except FormatError:
        return 0.0


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def shape_of(record: Mapping[str, object]) -> int:
    """Return a number that records with values in the same fields, and of the same kind, share."""
    names = [key for key, value in record.items() if value is not None]
    kinds = [f"{key}={record[key]}" for key in KIND_NAMES if isinstance(record.get(key), str)]
    return hash(frozenset(names + kinds))


def text_paths(record: Mapping[str, object]) -> dict[str, str]:
    """Return the texts in a record that are not blank, by path: in its objects, and in the first elements of its lists.

    >>> text_paths({"a": "x", "choices": [{"delta": {"content": "y"}}], "b": " "})
    {'choices[0].delta.content': 'y', 'a': 'x'}
    """
    texts: dict[str, str] = {}
    stack: list[tuple[str, object]] = [("", record)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, str) and value.strip():
            texts[path] = value
        elif isinstance(value, list) and value and path.count(".") < _MAX_DEPTH:
            stack.append((f"{path}[0]", value[0]))
        elif isinstance(value, dict) and path.count(".") < _MAX_DEPTH:
            stack += [(f"{path}.{key}" if path else key, item) for key, item in value.items()]
    return texts


def is_piece(joined: Mapping[str, object], text: str) -> bool:
    """Return whether a text of a joined record is most likely one piece of several.

    It is where parts of one shape have at least three different texts at the place from which it was taken. Spans of a
    trace, which name their parent, are no pieces.
    """
    records = joined[PARTS]
    if not isinstance(records, list) or len(records) < MIN_PIECES or any(map(_has_parent, records)):
        return False
    places = [path for path, value in text_paths(joined).items() if value == text and not path.startswith(PARTS)]
    texts: dict[tuple[str, int], set[str]] = {}
    for record in records:
        shape, values = shape_of(record), text_paths(record)
        for path in places:
            if path in values:
                texts.setdefault((path, shape), set()).add(values[path])
    return any(len(different) >= MIN_PIECES and text in different for different in texts.values())


def _has_parent(record: Mapping[str, object]) -> bool:
    return any(value is not None and "parent" in key.lower() for key, value in record.items())


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
    """Encode a record. Raises FormatError: too_deep: encoders have a lower limit than decoders."""
    try:
        return orjson.dumps(record)
    except (orjson.JSONEncodeError, RecursionError) as error:
        raise FormatError(RejectReason.TOO_DEEP, "", "nested too deeply to be joined") from error
