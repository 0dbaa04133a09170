"""Shared snapshot: the leader of several workers computes the figures and stores them, and the others show the same.

What belongs to one worker (how far its sources are behind, its disk, what it has counted) is its own everywhere.
It is stored as JSON by the types of its fields.
"""

from __future__ import annotations

import types
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from ragwatch.model.quantities import Quantity, quantity_of
from ragwatch.ports import Store
from ragwatch.statistics.snapshot import Snapshot
from ragwatch.statistics.tally import Tallies

STATE = "snapshot"


class SharedSnapshot:
    """The Snapshot of the leader, in the store.

    Args:
        store: The store of this worker; writes are refused unless it leads.
        own_tallies: What this worker has counted.
    """

    def __init__(self, store: Store, leads: Callable[[], bool], own_tallies: Callable[[], Tallies]) -> None:
        self._store = store
        self._leads = leads
        self.own_tallies = own_tallies

    @property
    def leads(self) -> bool:
        """Whether this worker computes the figures."""
        return self._leads()

    def save(self, snapshot: Snapshot) -> None:
        """Store the figures for the other workers.

        Raises:
            StoreError: They could not be written, or another worker leads.
        """
        shared = replace(snapshot, lags={}, probabilities={}, exported=None)
        self._store.remember(STATE, {"snapshot": to_record(shared)})

    def latest(self) -> Snapshot | None:
        """Return the figures of the leader; None if there are none, or only those of another version."""
        state = self._store.recall(STATE)
        if state is None:
            return None
        try:
            return snapshot_of(state.get("snapshot"))
        except ValueError:
            return None


def to_record(value: object) -> object:
    """Convert a value to JSON values: objects to lists of their fields, mappings to lists of pairs.

    >>> to_record({("a", "b"): 1.0})
    [[['a', 'b'], 1.0]]
    """
    if is_dataclass(value):
        return [to_record(getattr(value, field.name)) for field in fields(value)]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return [[to_record(key), to_record(item)] for key, item in value.items()]
    if isinstance(value, tuple):
        return [to_record(item) for item in value]
    return value


def snapshot_of(record: object) -> Snapshot:
    """Convert back.

    Raises:
        ValueError: The record is of a version with other fields.
    """
    try:
        snapshot = _value_of(Snapshot, record)
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"not a snapshot: {error}") from error
    if not isinstance(snapshot, Snapshot):
        raise ValueError("not a snapshot")  # noqa: TRY004 - a record of another version
    return snapshot


def _value_of(kind: Any, record: Any) -> Any:  # noqa: ANN401 - a type, and JSON
    if isinstance(kind, type) and is_dataclass(kind):
        pairs = zip(_fields(kind), record, strict=True)
        return kind(**{name: _value_of(hint, item) for (name, hint), item in pairs})
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):  # here always with None
        return None if record is None else _value_of(arguments[0], record)
    if origin is tuple:
        hints = arguments[:1] * len(record) if arguments[-1] is Ellipsis else arguments
        return tuple(_value_of(hint, item) for hint, item in zip(hints, record, strict=True))
    if origin is Counter:
        return Counter({_value_of(arguments[0], key): number for key, number in record})
    if origin is not None:
        return {_value_of(arguments[0], key): _value_of(arguments[1], item) for key, item in record}
    return _leaf_of(kind, record)


def _leaf_of(kind: Any, record: Any) -> Any:  # noqa: ANN401 - the same
    if isinstance(kind, type) and issubclass(kind, Enum):
        return quantity_of(record) if kind is Quantity else kind(record)  # a quantity may be a criterion
    return record


@cache
def _fields(kind: type) -> tuple[tuple[str, Any], ...]:
    hints = get_type_hints(kind)
    return tuple((field.name, hints[field.name]) for field in fields(kind))
