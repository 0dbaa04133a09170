"""Shape: a reply cut to the JSON schema that was asked for, as constrained decoding would do it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

REFUSED = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength",
                     "maxLength", "maxItems", "uniqueItems", "pattern", "$dynamicRef"})  # fmt: skip
_BLANK: Mapping[str, Any] = {"string": "", "integer": 0, "number": 0.0, "boolean": False, "null": None}


def fit(value: Any, schema: Mapping[str, Any]) -> Any:
    """What of `value` the schema has a place for; the blank of its type where nothing is known.

    >>> fit({"a": 1, "b": 2}, {"type": "object", "properties": {"b": {"type": "integer"}, "c": {"type": "string"}}})
    {'b': 2, 'c': ''}
    """
    if "properties" in schema:
        known = value if isinstance(value, Mapping) else {}
        return {key: fit(known.get(key), inner) for key, inner in schema["properties"].items()}
    if "items" in schema:
        return [fit(each, schema["items"]) for each in value] if isinstance(value, list) else []
    if "enum" in schema:
        return value if value in schema["enum"] else schema["enum"][-1]
    if value is None:
        return _BLANK.get(str(schema.get("type")))
    return value


def complaint(schema: Any) -> str | None:
    """Why structured outputs refuse a schema; None when they take it."""
    if not isinstance(schema, Mapping):
        return "output_config.format.schema: Input should be an object"
    for part in _parts(schema):
        if "properties" in part and part.get("additionalProperties") is not False:
            return (
                "output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false"
            )
        if found := sorted(REFUSED & part.keys()):
            kind = part.get("type", "any")
            return f"output_config.format.schema: For '{kind}' type, property '{found[0]}' is not supported"
    return None


def _parts(schema: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(schema, Mapping):
        yield schema
        for key, inner in schema.items():
            if key == "properties":
                for each in inner.values():
                    yield from _parts(each)
            elif key in {"items", "$defs", "anyOf", "allOf"}:
                yield from _parts(inner)
    elif isinstance(schema, list):
        for each in schema:
            yield from _parts(each)
