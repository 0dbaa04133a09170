"""JSON: bodies of requests, within limits; values as responses; and the schemas of the types of replies."""

import json
from collections.abc import Iterable, Sequence
from enum import EnumType
from types import NoneType, UnionType
from typing import Annotated, NotRequired, Union, cast, get_args, get_origin, get_type_hints, is_typeddict

import orjson
from starlette.requests import Request
from starlette.responses import Response

MAX_BODY_BYTES = 4 << 20
MAX_VALUES = 250_000  # JSON values per body; commas and brackets in strings count as well
JSON = "application/json"
Schema = dict[str, object]
TEXT: Schema = {"type": "string"}
_PLAIN = {str: "string", float: "number", int: "integer", bool: "boolean", NoneType: "null"}


class ParameterError(ValueError):
    """A parameter of a request is invalid; the message names it and the allowed values."""


class TooLargeError(ParameterError):
    """A body exceeds a limit, which the message names."""


def check_names(given: Iterable[str], known: Sequence[str]) -> None:
    """Checks the names of parameters or fields. Raises ParameterError: one is unknown."""
    if unknown := set(given) - set(known):
        raise ParameterError(f"{min(unknown)}: is not known; use {', '.join(known)}")


def chosen(name: str, value: str, known: Iterable[str]) -> str:
    """Returns the value of a parameter that is one of these. Raises ParameterError: it is none of them."""
    names = list(map(str, known))
    if value not in names:
        raise ParameterError(f"{name}: {value!r:.100} is not known; use one of: {', '.join(names)}")
    return value


async def read_body(request: Request, limit: int = MAX_BODY_BYTES) -> bytes:
    """Reads the body of a request. Raises TooLargeError: it has more bytes than the limit."""
    too_large = TooLargeError(f"body: more than {limit} bytes, the limit of this address; send less at a time")
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length[:20]) > limit:
        raise too_large
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            raise too_large
    return bytes(body)


def json_object(body: bytes, what: str) -> dict[str, object]:
    """Parses a body as a JSON object. Counts the values first, because each takes many times the memory of its text.

    Of `what` a client with too many is asked to send fewer. Raises TooLargeError; ParameterError: no JSON object.
    """
    if sum(map(body.count, (b",", b"[", b"{"))) > MAX_VALUES:
        raise TooLargeError(f"body: more than {MAX_VALUES} values; send fewer {what} at a time")
    try:
        value = orjson.loads(body)
    except ValueError as error:
        raise ParameterError(f"body: not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ParameterError("body: not an object")
    return value


def dumps(value: object) -> bytes:
    r"""Encodes a value as JSON.

    >>> dumps({"half of a pair": "\ud800"})
    b'{"half of a pair": "\\ud800"}'
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS, default=dict)
    except TypeError:  # an unpaired surrogate (a truncated escape in a log) is legal in JSON, but not in UTF-8
        return json.dumps(value, default=dict).encode("ascii")


def json_reply(value: object, status: int = 200) -> Response:
    """Encodes a value as a JSON response."""
    return Response(dumps(value) + b"\n", status_code=status, media_type=JSON)


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

    `Annotated` adds to a schema, `NotRequired` is a property that may be absent; TypedDicts in `names` are referred to.

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
