"""The fields of a log, with their values over all records, as JMESPath reads them."""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ragwatch.formats import fields
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
