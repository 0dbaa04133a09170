"""Derives JSON Schemas from the types of replies."""

from __future__ import annotations

from collections.abc import Iterable
from enum import EnumType
from types import NoneType, UnionType
from typing import Annotated, NotRequired, Union, cast, get_args, get_origin, get_type_hints, is_typeddict

Schema = dict[str, object]

TEXT: Schema = {"type": "string"}
_PLAIN = {str: "string", float: "number", int: "integer", bool: "boolean", NoneType: "null"}


class Also:
    """What `Annotated` adds to the schema of a type."""

    def __init__(self, **properties: object) -> None:
        self.properties = properties


def one_of(values: Iterable[str]) -> Schema:
    """One of these texts."""
    return {"type": "string", "enum": [str(value) for value in values]}


def named(name: str) -> Schema:
    """Reference to a reply by its name."""
    return {"$ref": f"#/components/schemas/{name}"}


def schema_of(hint: object, names: Iterable[object] = ()) -> Schema:
    """Returns the schema of a type: a TypedDict, or what one consists of. Later versions may add properties.

    Args:
        hint: The type. `Annotated` adds to a schema, `NotRequired` is a property that may be absent.
        names: TypedDicts that are referred to by their name.

    >>> schema_of(list[int] | None)
    {'anyOf': [{'type': 'array', 'items': {'type': 'integer'}}, {'type': 'null'}]}
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        schema = {**schema_of(arguments[0], names), **arguments[1].properties}
    elif origin in (Union, UnionType):
        schema = {"anyOf": [schema_of(one, names) for one in arguments]}
    elif is_typeddict(hint):
        reply = cast("type", hint)
        schema = named(reply.__name__) if reply in names else record_of(reply, names)
    elif isinstance(hint, EnumType):
        schema = one_of(hint)
    elif len(arguments) == 2:  # a mapping
        values = schema_of(arguments[1], names)
        schema = {"type": "object"} | ({"additionalProperties": values} if values else {})
    elif arguments:  # a sequence
        schema = {"type": "array", "items": schema_of(arguments[0], names)}
    else:
        schema = {"type": _PLAIN[hint]} if hint in _PLAIN else {}
    return schema


def record_of(reply: type, names: Iterable[object] = ()) -> Schema:
    """Returns the schema of a TypedDict itself."""
    hints = get_type_hints(reply, include_extras=True)
    optional = {name: get_args(hint)[0] for name, hint in hints.items() if get_origin(hint) is NotRequired}
    properties = {name: schema_of(optional.get(name, hint), names) for name, hint in hints.items()}
    return {"type": "object", "properties": properties, "required": [name for name in hints if name not in optional]}
