"""Fields that many shapes share, read with the field's own name in every error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from sys import float_info
from typing import Any

import orjson

from ragwatch.core.sample import NOTHING, Context, RejectReason, Sample
from ragwatch.errors import FormatError
from ragwatch.formats.shape import Record
from ragwatch.formats.times import epoch_seconds

TEXT_KEYS = ("text", "content", "page_content", "chunk", "body")
ID_KEYS = ("id", "request_id", "run_id")
CONTEXT_ID_KEYS = ("id", "chunk_id", "doc_id", "document_id")
TIME_KEYS = ("at", "timestamp", "ts", "created_at", "created")
DEEPEST_METADATA = 32
LARGEST = float_info.max

_KINDS = {str: "text", list: "a list", dict: "an object", bool: "a boolean", type(None): "null"}


def missing(path: str, message: str = "is missing") -> FormatError:
    """The error for a field that is not there."""
    return FormatError(RejectReason.MISSING_FIELD, path, message)


def wrong(path: str, wanted: str, value: object) -> FormatError:
    """The error for a field that is there and is something else."""
    return FormatError(RejectReason.WRONG_TYPE, path, f"must be {wanted}, not {_KINDS.get(type(value), 'a number')}")


def required(record: Record, key: str, path: str = "") -> Any:  # noqa: ANN401  a JSON value is any value
    """The value under `key`, null included. `path` names it where it is not at the top."""
    try:
        return record[key]
    except KeyError:
        raise missing(path or key) from None


def text(value: object, path: str) -> str:
    """A text, never null."""
    if isinstance(value, str):
        return value
    raise wrong(path, "text", value)


def optional_text(value: object, path: str) -> str | None:
    """A text, or None for null."""
    return None if value is None else text(value, path)


def identity(value: object, path: str) -> str | None:
    """An id: text or an integer; None for null and for empty text.

    A float is refused: JSON integers beyond 64 bits arrive rounded, and two requests would share one id.
    """
    if isinstance(value, str):
        return value or None
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise wrong(path, "text or an integer of at most 64 bits", value)


def first(record: Record, keys: Sequence[str]) -> tuple[str, Any]:
    """The first of `keys` that has a value, and that value; the last key and None when none has."""
    for key in keys:
        value = record.get(key)
        if value is not None:
            return key, value
    return keys[-1], None


def embedded(value: object) -> object:
    """A JSON object or array that was logged as text, opened; anything else as it is.

    >>> embedded('{"id_": "n1"}'), embedded("{ not JSON"), embedded(3)
    ({'id_': 'n1'}, '{ not JSON', 3)
    """
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return value


_tuple = tuple.__new__  # what `Context(...)` and `Sample(...)` come down to, without the call around it: half the time
_CONTAINERS = frozenset({dict, list})


def contexts(value: object, path: str) -> tuple[Context, ...]:
    """A list of texts or of objects with a text (see TEXT_KEYS), in the order of the list."""
    if not isinstance(value, list):
        raise wrong(path, "a list", value)
    made: list[Context] = []
    for item in value:
        # The commonest context, an object with text, id and score, at half the cost; all else goes the full way.
        if type(item) is dict:
            try:
                passage, name, score = item["text"], item["id"], item["score"]
            except KeyError:
                pass
            else:
                # JSON knows no infinity and no NaN: score - score is 0 for every number but those.
                if type(passage) is str and type(name) is str and type(score) is float and score - score == 0.0:
                    made.append(_tuple(Context, (passage, name, score)))
                    continue
        made.append(context(item, path, len(made)))
    return tuple(made)


def context(item: object, path: str, rank: int) -> Context:
    """The context at `rank` of the list named `path`."""
    if isinstance(item, str):
        return Context(item)
    if not isinstance(item, dict):
        raise wrong(f"{path}[{rank}]", "text or an object", item)
    key, found = first(item, TEXT_KEYS)
    if found is None:
        raise missing(f"{path}[{rank}].text", f"is missing (none of {', '.join(TEXT_KEYS)})")
    if not isinstance(found, str):
        raise wrong(f"{path}[{rank}].{key}", "text", found)
    name = item.get("id")
    if not isinstance(name, str):
        key, name = first(item, CONTEXT_ID_KEYS)
        name = None if name is None else identity(name, f"{path}[{rank}].{key}")
    score = item.get("score")
    return Context(found, name, None if score is None else number(score, f"{path}[{rank}].score"))


def number(value: object, path: str) -> float:
    """A finite number."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= LARGEST:
        return float(value)
    raise wrong(path, "a finite number", value)


def metadata(record: Record) -> Mapping[str, Any]:
    """The record's metadata, with a `trace_id` of the record itself among them."""
    found = record.get("metadata")
    trace_id = record.get("trace_id")
    if found is None:
        return {"trace_id": trace_id} if isinstance(trace_id, str) else NOTHING
    if not isinstance(found, dict):
        raise wrong("metadata", "an object", found)
    # Most metadata is flat, and one look in C tells.
    if not _CONTAINERS.isdisjoint(map(type, found.values())) and not _shallow(found, DEEPEST_METADATA):
        # Deeper values cannot be written again: JSON writers stop where JSON readers do not.
        raise FormatError(RejectReason.TOO_DEEP, "metadata", f"is nested deeper than {DEEPEST_METADATA}")
    return {**found, "trace_id": trace_id} if isinstance(trace_id, str) else found


def _shallow(value: dict[str, Any] | list[Any], room: int) -> bool:
    if not room:
        return False
    for part in value.values() if isinstance(value, dict) else value:
        if isinstance(part, (dict, list)) and not _shallow(part, room - 1):
            return False
    return True


def assemble(
    record: Record,
    fallback_id: str,
    *,
    question: str | None,
    contexts: tuple[Context, ...],
    answer: str,
    reference: object = None,
    inner: Record = NOTHING,
) -> Sample:
    """A Sample of the parts that shapes spell differently, and of the envelope that all spell alike.

    Args:
        record: Where id, time, route, trace id and metadata are looked for first.
        fallback_id: Name of the sample where neither record nor `inner` has one.
        question: What was asked; blank text is an unknown question.
        contexts: What was retrieved.
        answer: What was answered.
        reference: A known good answer: text or null.
        inner: A part of the record that may hold id and time when the record itself does not.
    """
    id_key, id_value = "id", record.get("id")
    if id_value is None:
        id_key, id_value = first(record, ID_KEYS)
    time_key, time_value = "at", record.get("at")
    if time_value is None:
        time_key, time_value = first(record, TIME_KEYS)
    if inner:
        id_key, id_value = first(inner, ID_KEYS) if id_value is None else (id_key, id_value)
        time_key, time_value = first(inner, TIME_KEYS) if time_value is None else (time_key, time_value)
    route = record.get("route")
    parts = (
        (id_value if type(id_value) is str else identity(id_value, id_key)) or fallback_id,
        question if question and not question.isspace() else None,
        contexts,
        answer,
        None if time_value is None else epoch_seconds(time_value, time_key),
        "" if route is None else text(route, "route"),
        metadata(record),
        None if reference is None else text(reference, "reference"),
    )
    return _tuple(Sample, parts)
