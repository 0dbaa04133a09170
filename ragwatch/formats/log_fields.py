"""Lists the fields of the records of a log, with the JMESPath expression of each and its values over all records."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ragwatch.formats import fields
from ragwatch.formats.shape import Record

_MAX_DEPTH = 9
_MAX_ITEMS = 50
_GENERATED = re.compile(r"(?=.*\d)[0-9a-fA-F-]{16,}")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class LogField(NamedTuple):
    """A field of a log.

    Attributes:
        path: JMESPath expression of it.
        names: Its name, behind those of the objects and lists that it stands in.
        values: Its values, by the position of the record; of a field inside a list, all that the list has, as a list.
        in_list: Whether it stands inside the items of a list.
    """

    path: str
    names: tuple[str, ...]
    values: dict[int, object]
    in_list: bool

    @property
    def depth(self) -> int:
        """Number of objects and lists that it stands in."""
        return len(self.names) - 1

    @property
    def parent(self) -> tuple[str, ...]:
        """The names of the objects that it stands in."""
        return self.names[:-1]


class _Place(NamedTuple):
    path: str
    names: tuple[str, ...]
    content: Mapping[str, object] | Sequence[Mapping[str, object]]


def log_fields(records: Sequence[Record]) -> list[LogField]:
    """Return all fields of some records, those of the root first.

    >>> [(field.path, field.values[0]) for field in log_fields([{"a": {"b": 1}, "c": [{"d": 2}, {"d": 3}]}])]
    [('a', {'b': 1}), ('c', [{'d': 2}, {'d': 3}]), ('a.b', 1), ('c[].d', [2, 3])]
    """
    known: dict[str, LogField] = {}
    for position, record in enumerate(records):
        for path, names, value, in_list in _walk(record):
            field = known.setdefault(path, LogField(path, names, {}, in_list))
            field.values[position] = value
    return sorted(known.values(), key=lambda field: field.depth)


def _walk(record: Record) -> Iterator[tuple[str, tuple[str, ...], object, bool]]:
    """Yield path, names and value of every field, and whether it is in a list, breadth first."""
    places = deque([_Place("", (), record)])
    while places:
        place = places.popleft()
        if len(place.names) >= _MAX_DEPTH:
            continue
        in_list = not isinstance(place.content, Mapping)
        for key, item in _of_items(place.content) if in_list else place.content.items():  # type: ignore[arg-type, union-attr]
            if _GENERATED.fullmatch(key):
                continue  # an id of one record
            name = key if _IDENTIFIER.fullmatch(key) else _quoted(key)
            path, names = f"{place.path}.{name}" if place.path else name, (*place.names, *key.split("."))
            value = fields.embedded(item)
            path = path if value is item else f"from_json({path})"
            yield path, names, value, in_list
            places.extend(_inside(path, names, value))
            if key == "choices" and (text := _first_choice(value)) is not None:
                yield f"{path}[0].message.content", (*names, "completion"), text, in_list


def _of_items(items: Sequence[Mapping[str, object]]) -> Iterator[tuple[str, list[object]]]:
    """What a projection makes of the items of a list: the values of each key, those of lists in one list."""
    items = items[:_MAX_ITEMS]
    for key in dict.fromkeys(key for item in items for key in item):
        values = [item[key] for item in items if item.get(key) is not None]
        nested = bool(values) and all(isinstance(value, list) for value in values)
        yield key, [one for value in values for one in value] if nested else values  # type: ignore[attr-defined]


def _inside(path: str, names: tuple[str, ...], value: object) -> Iterator[_Place]:
    if isinstance(value, dict):
        yield _Place(path, names, value)
    elif isinstance(value, list) and (objects := [item for item in value if isinstance(item, dict)]):
        yield _Place(f"{path}[]", names, objects)


def _first_choice(choices: object) -> str | None:
    """The text of a chat completion."""
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    text = message.get("content") if isinstance(message, dict) else None
    return text if isinstance(text, str) else None


def _quoted(key: str) -> str:
    escaped = key.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
