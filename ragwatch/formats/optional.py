"""Reads a record although an optional field of it is wrong: the field is left out and counted, the answer is kept.

Without its time an answer has that of its reading, without its id its position in the log, without a route the route
`other`; all else is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from ragwatch.errors import FormatError
from ragwatch.formats import canonical, fields
from ragwatch.formats.shape import Record
from ragwatch.model.sample import RejectReason, Sample

_NAMES: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(fields.TIME_KEYS, "at")
    | dict.fromkeys(fields.ID_KEYS, "id")
    | {name: name for name in ("route", "metadata", "trace_id", "history", "reference")}
)
_OF_CONTEXT: Mapping[str, str] = MappingProxyType(
    {"score": "score"}
    | dict.fromkeys(fields.CONTEXT_ID_KEYS, "context_id")
    | dict.fromkeys(fields.DATE_KEYS, "updated_at")
)
FIELDS = tuple(sorted({*_NAMES.values(), *_OF_CONTEXT.values()}))
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_MAX_FIELDS = 200  # of one record


class LostField(NamedTuple):
    """An optional field, one of `FIELDS`, that could not be read; why, and the same as text for people."""

    name: str
    reason: RejectReason
    detail: str


MAX_AHEAD_SECONDS = 1800.0
"""How far the clock of a service may be ahead of ours; later times count as lost, and answers as given now."""
AHEAD = LostField("at", RejectReason.FUTURE_TIME, "lies in the future: local times without an offset need `timezone`")


def name_of(path: str) -> str | None:
    """Return the name under which an optional field is counted; None for one that is required.

    >>> name_of("created_at"), name_of("hits[2].score"), name_of("metadata.tenant"), name_of("contexts[0].text")
    ('at', 'score', 'metadata', None)
    """
    steps = [name or number for name, number in _STEP.findall(path)]
    if len(steps) > 1 and path.rpartition(".")[0].endswith("]"):
        return _OF_CONTEXT.get(steps[-1])
    return _NAMES.get(steps[0]) if steps else None


def read_without_wrong_fields(record: Record, fallback_id: str) -> tuple[Sample, tuple[LostField, ...]]:
    """Return the sample in a record of the canonical format, and the optional fields that had to be left out.

    Raises:
        FormatError: A required field is wrong, or so many fields are that the record is no answer.
    """
    lost: list[LostField] = []
    while True:
        try:
            return canonical.read(record, fallback_id), tuple(lost)
        except FormatError as error:
            name = name_of(error.field)
            smaller = None if name is None or len(lost) == _MAX_FIELDS else _without(record, error.field)
            if name is None or smaller is None:
                raise
            lost.append(LostField(name, RejectReason(error.reason), str(error)))
            record = smaller


def _without(record: Record, path: str) -> Record | None:
    """Return a record without the field at a path, or without the list or object at the start of it; None if absent."""
    name, *rest = [name or number for name, number in _STEP.findall(path)]
    if name in _NAMES:
        return {key: value for key, value in record.items() if key != name} if name in record else None
    items, rank = fields.embedded(record.get(name)), int(rest[0])
    if not isinstance(items, list) or rank >= len(items) or not isinstance(items[rank], dict):
        return None
    smaller = {key: value for key, value in items[rank].items() if key != rest[-1]}
    return {**record, name: [*items[:rank], smaller, *items[rank + 1 :]]}
