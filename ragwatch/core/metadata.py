"""Reads values of the metadata of a sample, which come from a log and may have any shape."""

from __future__ import annotations

from collections.abc import Mapping


def value_at(metadata: Mapping[str, object], path: str) -> object:
    """Return the value under a key, or else under a path of keys; None if there is none.

    >>> [value_at(metadata, "user.id") for metadata in ({"user": {"id": 7}}, {"user.id": 8}, {"user": "x"})]
    [7, 8, None]
    """
    if path in metadata:
        return metadata[path]
    value: object = metadata
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value
