"""The fields of a log that may be what a sample can do without: its id, time, route and the like."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType

from ragwatch.errors import FormatError
from ragwatch.formats import fields, names
from ragwatch.formats.guessing.candidates import Candidate, is_conversation
from ragwatch.formats.guessing.log_fields import LogField
from ragwatch.formats.guessing.suspicion import MIN_DISTINCT

_ROUTE = re.compile(r"(?!.*://)\S{1,128}")
_MAX_ROUTES = 50
_DATE_CHARS = len("2026-01-31")
_MOST = 0.9  # share of the records


def _is_scalar(value: object) -> bool:
    return isinstance(value, (str, int)) and not isinstance(value, bool) and value != ""


def _is_time(value: object) -> bool:
    if isinstance(value, str) and len(value.strip()) <= _DATE_CHARS and "-" in value:
        return False  # a day: all its answers would be given at midnight
    try:
        fields.plausible_time(value, "")
    except FormatError:
        return False
    return True


_FITS: Mapping[str, Callable[[object], bool]] = MappingProxyType(
    {
        "history": is_conversation,
        "id": _is_scalar,
        "at": _is_time,
        "route": lambda value: isinstance(value, str) and _ROUTE.fullmatch(value) is not None,
        "trace_id": _is_scalar,
        "reference": lambda value: isinstance(value, str) and bool(value.strip()),
        "relevant_ids": lambda value: isinstance(value, list) and bool(value) and all(map(_is_scalar, value)),
    }
)
OPTIONAL = tuple(_FITS)
"""The parts that a sample can do without, but for the question."""


def optional_candidates(
    part: str, known: Iterable[LogField], parent: Sequence[str], answers: Collection[int]
) -> list[Candidate]:
    """The fields that may be an optional part, the best first: those beside the answer, then those of the root.

    `parent` names the objects that the answer stands in, `answers` are the positions of the records that are answers.
    """
    listed = []
    for field in known:
        rank = names.UNNAMED if field.in_list else names.rank(part, *field.names)
        values = {position: value for position, value in field.values.items() if _FITS[part](value)}
        known_values = sum(value is not None for value in field.values.values())
        if rank == names.UNNAMED or not values or 2 * len(values) < known_values:
            continue
        own = [str(value) for place, value in values.items() if place in answers]
        if part == "id" and len({*own}) < len(own):
            continue  # one id for several answers
        if part == "route" and len({*values.values()}) > max(_MAX_ROUTES, len(values) / 2):
            continue
        listed.append(Candidate(field.path, rank, field, values))
    if part == "at" and not listed:
        listed = [*_rising_times(known)]
    return sorted(listed, key=lambda one: (one.field.parent != tuple(parent), one.field.depth, one.rank))


def _rising_times(known: Iterable[LogField]) -> Iterator[Candidate]:
    """The fields with a date and time that rises from record to record, as that of a log does, whatever their name."""
    for field in known:
        texts = [value for value in field.values.values() if value is not None]
        if field.in_list or not all(isinstance(text, str) and ":" in text and _is_time(text) for text in texts):
            continue
        times = [fields.plausible_time(text, "") for text in texts]
        rising = sum(one <= other for one, other in pairwise(times))
        if len({*times}) >= MIN_DISTINCT and rising >= _MOST * (len(times) - 1):
            yield Candidate(field.path, names.UNNAMED, field, {**field.values})
