"""Builds JSON Schemas of values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

Schema = dict[str, object]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
COUNT: Schema = {"type": "integer", "minimum": 0}
FLAG: Schema = {"type": "boolean"}
SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
TIME: Schema = {"type": "number", "description": "seconds since the epoch"}
KEY: Schema = {"type": "string", "pattern": "^[0-9a-f]{32}$", "description": "key of a sample"}
ANYTHING: Schema = {"type": "object"}
STATES = ("bad", "unsure", "good", "plain", "silent")


def one_of(values: Iterable[str]) -> Schema:
    """One of these texts."""
    return {"type": "string", "enum": [str(value) for value in values]}


def maybe(schema: Schema) -> Schema:
    """A value, or null where it is unknown.

    >>> maybe({"type": "string"})
    {'anyOf': [{'type': 'string'}, {'type': 'null'}]}
    """
    return {"anyOf": [schema, {"type": "null"}]}


def many(schema: Schema) -> Schema:
    """A list of values."""
    return {"type": "array", "items": schema}


def by_name(schema: Schema) -> Schema:
    """Values by name."""
    return {"type": "object", "additionalProperties": schema}


def named(name: str) -> Schema:
    """Reference to one of `shapes()`."""
    return {"$ref": f"#/components/schemas/{name}"}


def record(properties: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> Schema:
    """An object with these properties; `optional` ones may be absent. Later versions may add others."""
    return {"type": "object", "properties": {**properties, **(optional or {})}, "required": list(properties)}
