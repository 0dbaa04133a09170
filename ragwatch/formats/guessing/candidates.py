"""The fields of a log, and which may be a part of its samples: by their names, and their values over all records."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from ragwatch.errors import FormatError
from ragwatch.formats import fields, names
from ragwatch.formats.guessing.suspicion import (
    MAX_STATUSES,
    MIN_DISTINCT,
    MIN_STATUS_SAMPLES,
    NO_WORDS,
    example,
    is_name,
    is_prompt,
)
from ragwatch.formats.record import Record

_MAX_DEPTH = 9
_MAX_ITEMS = 50
_GENERATED = re.compile(r"(?=.*\d)[0-9a-fA-F-]{16,}")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class LogField(NamedTuple):
    """A field of a log."""

    path: str  # JMESPath expression of it
    names: tuple[str, ...]  # its name, behind those of the objects and lists that it stands in
    # Its values, by the position of the record; of a field inside a list, all that the list has, as a list
    values: dict[int, object]
    in_list: bool  # whether it stands inside the items of a list

    @property
    def depth(self) -> int:
        """Number of objects and lists that it stands in."""
        return len(self.names) - 1

    @property
    def parent(self) -> tuple[str, ...]:
        """The names of the objects that it stands in."""
        return self.names[:-1]


def log_fields(records: Sequence[Record]) -> list[LogField]:
    """Return all fields of some records, those of the root first.

    >>> [(field.path, field.values[0]) for field in log_fields([{"a": {"b": 1}, "c": [{"d": 2}, {"d": 3}]}])]
    [('a', {'b': 1}), ('c', [{'d': 2}, {'d': 3}]), ('a.b', 1), ('c[].d', [2, 3])]
    """
    known: dict[str, LogField] = {}
    for position, record in enumerate(records):
        for path, place, value, in_list in _walk(record):
            field = known.setdefault(path, LogField(path, place, {}, in_list))
            field.values[position] = value
    return sorted(known.values(), key=lambda field: field.depth)


def _walk(record: Record) -> Iterator[tuple[str, tuple[str, ...], object, bool]]:
    """Yield path, names and value of every field, and whether it is in a list, breadth first."""
    places: deque[tuple[str, tuple[str, ...], Iterable[tuple[str, object]], bool]] = deque()
    places.append(("", (), record.items(), False))
    while places:
        place, around, held, in_list = places.popleft()
        for key, item in held if len(around) < _MAX_DEPTH else ():
            if _GENERATED.fullmatch(key):
                continue  # an id of one record
            path, names = f"{place}.{quoted(key)}" if place else quoted(key), (*around, *key.split("."))
            value = fields.embedded(item)
            path = path if value is item else f"from_json({path})"
            yield path, names, value, in_list
            if isinstance(value, dict):
                places.append((path, names, value.items(), False))
            elif isinstance(value, list) and (objects := [one for one in value if isinstance(one, dict)]):
                places.append((f"{path}[]", names, _of_items(objects), True))
            if key == "choices" and isinstance(value, list) and value:
                text = fields.at(value[0], ("message", "content"))  # of a chat completion
                if isinstance(text, str):
                    yield f"{path}[0].message.content", (*names, "completion"), text, in_list


def _of_items(items: Sequence[Mapping[str, object]]) -> Iterator[tuple[str, list[object]]]:
    """What a projection makes of the items of a list: the values of each key, those of lists in one list."""
    items = items[:_MAX_ITEMS]
    for key in dict.fromkeys(key for item in items for key in item):
        values = [item[key] for item in items if item.get(key) is not None]
        nested = bool(values) and all(isinstance(value, list) for value in values)
        yield key, [one for value in values for one in value] if nested else values  # type: ignore[attr-defined]


def quoted(key: str) -> str:
    """Return a key as JMESPath writes it."""
    return key if _IDENTIFIER.fullmatch(key) else '"' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'


_MOST = 0.8
_ROUTE = re.compile(r"(?!.*://)\S{1,128}")
_MAX_ROUTES = 50
_MAX_NAME_WORDS = 2
_MESSAGE_PARTS = ("text", "output_text", "input_text", "thinking", "tool_use")
_DETAILS = ("metadata", "meta")
Values = Mapping[int, object]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A field that may be a part of the samples."""

    expression: str  # JMESPath expression that extracts it
    rank: float  # how likely its name is, the lower the better; `names.UNNAMED` if it says nothing
    field: LogField  # the field
    values: Values  # what the expression extracts, by the position of the record
    fault: str = ""  # why its values cannot be the part; empty if they can

    @property
    def shown(self) -> str:
        """Its expression, with a value and what is wrong with it, for people."""
        value = next(iter(self.values.values()), None)
        first = value[-1 if self.expression.endswith("[-1]") else 0] if isinstance(value, list) and value else value
        return f"{self.expression}  {example(first)}" + (f" ({self.fault})" if self.fault else "")


def vary(known: Iterable[LogField]) -> bool:
    """Return whether some texts differ between records: in a log of one question, every field is the same."""
    lists = ((value if isinstance(value, list) else [value] for value in field.values.values()) for field in known)
    return any(len({str(one) for one in some if any(map(_is_sentence, one))}) >= MIN_DISTINCT for some in lists)


def _is_sentence(value: object) -> bool:
    return isinstance(value, str) and len(value.split()) > _MAX_NAME_WORDS


def text_candidates(part: str, known: Iterable[LogField], *, varied: bool) -> list[Candidate]:
    """The texts that may be the question or the answer, the best first; if texts vary, none that is the same."""
    listed = []
    for field in known:
        values = {position: value for position, value in field.values.items() if _is_text(value)}
        rank = names.rank(part, *field.names)
        last = [value[-1] if isinstance(value, list) else value for value in values.values()]
        is_prose = sum(isinstance(text, str) and not is_name(text) for text in last) >= _MOST * len(last)
        if not values or (names.says_little(part, rank) and not is_prose) or (rank == names.UNNAMED and field.in_list):
            continue
        fault = "stands inside a list" if field.in_list else _text_fault(part, values, varied=varied)
        expression = f"{field.path} | [-1]" if field.in_list else field.path
        listed.append(Candidate(expression, rank, field, values, fault))
    if any(not one.fault and not names.says_little(part, one.rank) for one in listed):  # instead of names that say less
        listed = [one for one in listed if one.rank == names.UNNAMED or not names.says_little(part, one.rank)]
    return sorted(listed, key=lambda one: (bool(one.fault), one.rank, one.field.depth))


def _is_text(value: object) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(item, str) for item in value)
    return isinstance(value, str) and bool(value.strip())


def _text_fault(part: str, values: Values, *, varied: bool) -> str:
    texts = [str(value) for value in values.values()]
    different = set(texts)
    if varied and len(texts) >= MIN_DISTINCT and len(different) == 1:
        return "is the same in every record"
    if sum(NO_WORDS.fullmatch(text.strip()) is not None for text in texts) > _MOST * len(texts):
        return "is an id, a number or a link"
    if part == "question" and sum(is_prompt(text) for text in texts) > _MOST * len(texts):
        return "is a whole prompt"
    words = all(len(text.split()) == 1 and text.isascii() for text in texts)
    if part == "answer" and words and len(different) <= MAX_STATUSES and len(texts) >= MIN_STATUS_SAMPLES:
        return "is one of a few words, like a status"
    return ""


def context_candidates(known: Sequence[LogField], *, varied: bool) -> list[Candidate]:
    """The lists and texts that may be what was retrieved, the best first; see `text_candidates`."""
    listed: list[Candidate] = []
    messages = tuple(f"{field.path}[]" for field in known if any(map(_is_conversation, field.values.values())))
    for field in known:
        if field.path.startswith(messages) or any(
            field.path.startswith(f"{one.field.path}[]") for one in listed if one.expression.endswith(("}", "})"))
        ):
            continue  # inside a list that is a candidate itself
        expression, values = _extracted(field)
        rank = names.rank("contexts", *field.names)
        if not values or (rank == names.UNNAMED and all(isinstance(value, str) for value in values.values())):
            continue
        fault = _contexts_fault(values, varied=varied)
        listed.append(Candidate(expression, rank, field, values, fault))
    return sorted(listed, key=lambda one: (bool(one.fault), are_single_texts(one), one.rank, one.field.depth))


def _extracted(field: LogField) -> tuple[str, Values]:
    """Expression and values of the passages in a field; no values if it holds none."""
    lists = {position: value for position, value in field.values.items() if isinstance(value, list)}
    items = [item for value in lists.values() for item in value]
    if items and all(isinstance(item, str) for item in items):
        return f"{field.path}[]" if field.in_list else field.path, {**lists}
    objects: list[Mapping[str, object]] = [item for item in items if isinstance(item, dict)]
    if objects and len(objects) == len(items):
        return _projected(field, lists, objects)
    texts = {position: value for position, value in field.values.items() if isinstance(value, str) and value.strip()}
    return field.path, {} if field.in_list else texts


def _projected(
    field: LogField, lists: Mapping[int, list[object]], objects: Sequence[Mapping[str, object]]
) -> tuple[str, Values]:
    """The projection of a list of objects to text, id, score and date, those that there are."""
    text = _key_of("text", objects, str) or _key_of("text", objects, str, _DETAILS)
    if text is None or any(map(_is_message, objects)):
        return field.path, {}
    ids, scores = _key_of("context_id", objects, (str, int)), _key_of("score", objects, (int, float))
    parts = {"id": ids, "text": text, "score": scores, "updated_at": _date_in(objects)}
    inner = ", ".join(f"{part}: {'.'.join(map(quoted, key))}" for part, key in parts.items() if key is not None)
    passages = {position: [fields.at(item, text) for item in items] for position, items in lists.items()}
    values = {position: [one for one in some if isinstance(one, str)] for position, some in passages.items()}
    expression = f"{field.path}[].{{{inner}}}"
    if any(len({*some}) < len(some) for some in values.values()):  # repeated for each of its uses
        return f"distinct({expression})", {position: [*dict.fromkeys(some)] for position, some in values.items()}
    return expression, values


def _date_in(objects: Sequence[Mapping[str, object]]) -> tuple[str, ...] | None:
    """Path of the most telling date of documents, in the objects or one level deeper."""
    places: list[tuple[tuple[str, ...], Mapping[str, object]]] = [((), item) for item in objects]
    places += [((key,), inner) for item in objects for key, inner in item.items() if isinstance(inner, dict)]
    dates = [(path, fields.logged_date(place)) for path, place in places]
    dated = [(*path, key) for path, (key, value) in dates if value is not None]
    return min(dated, key=lambda path: (fields.DATE_KEYS.index(path[-1]), len(path)), default=None)


def _is_message(item: Mapping[str, object]) -> bool:
    """Whether an item of a list is a message of a conversation, a part of one, or a choice of a completion."""
    inner = any(isinstance(value, dict) and "role" in value for value in item.values())
    return inner or "role" in item or item.get("type") in _MESSAGE_PARTS


def _key_of(
    part: str, objects: Sequence[Mapping[str, object]], kind: type | tuple[type, ...], also: Collection[str] = ()
) -> tuple[str, ...] | None:
    """Path of the most likely name of a part of passages, in the objects or one level deeper; `also` in details."""
    ranked: dict[tuple[str, ...], tuple[int, float]] = {}
    for item in objects:
        for path, value in _leaves(item, also):
            position = names.rank(part, *(path if part == "text" else path[-1:]))
            if position < names.UNNAMED and isinstance(value, kind) and not isinstance(value, bool) and value != "":
                ranked.setdefault(path, (len(path), position))
    times = Counter(path for item in objects for path in ranked if fields.at(item, path) is not None)
    often = [path for path in ranked if 2 * times[path] > max(times.values())]
    return min(often, key=ranked.__getitem__, default=None)


def _leaves(item: Mapping[str, object], also: Collection[str]) -> Iterator[tuple[tuple[str, ...], object]]:
    for key, value in item.items():
        yield (key,), value
        if isinstance(value, dict) and (key not in _DETAILS or key in also):
            yield from (((key, inner), one) for inner, one in value.items())


def _contexts_fault(values: Values, *, varied: bool) -> str:
    lists = [value if isinstance(value, list) else [value] for value in values.values()]
    texts = [text for value in lists for text in value if isinstance(text, str) and text.strip()]
    if not texts:
        return "holds no text"
    if sum(map(is_name, texts)) >= _MOST * len(texts):
        return "names of documents, not their texts"
    if varied and len(lists) >= MIN_DISTINCT and len({str(value) for value in lists}) == 1:
        return "is the same in every record"
    if all(map(is_prompt, texts)):
        return "is a whole prompt"
    objects = [value for text in texts if isinstance(value := fields.embedded(text), dict)]
    are_lists = all(isinstance(value, list) for value in values.values())
    return "is JSON in a text" if are_lists and len(objects) >= _MOST * len(texts) else ""


def _is_scalar(value: object) -> bool:
    return isinstance(value, (str, int)) and not isinstance(value, bool) and value != ""


def _is_time(value: object) -> bool:
    try:
        fields.plausible_time(value, "")
    except FormatError:
        return False
    return True


def _is_route(value: object) -> bool:
    return isinstance(value, str) and _ROUTE.fullmatch(value) is not None


def _is_conversation(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) and "role" in item for item in value)


_FITS: Mapping[str, Callable[[object], bool]] = MappingProxyType(
    {
        "history": _is_conversation,
        "id": _is_scalar,
        "at": _is_time,
        "route": _is_route,
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
    return sorted(listed, key=lambda one: (one.field.parent != tuple(parent), one.field.depth, one.rank))


def are_single_texts(contexts: Candidate) -> bool:
    """Return whether contexts are one text for each record, and no lists."""
    return all(isinstance(value, str) and fields.embedded(value) is value for value in contexts.values.values())
