"""Reads the JSON body of a request, within limits, and encodes values as JSON responses."""

from __future__ import annotations

import json

import orjson
from starlette.requests import Request
from starlette.responses import Response

from ragwatch.web.samples import ParameterError

MAX_BODY_BYTES = 4 << 20
MAX_VALUES = 250_000  # JSON values per body; commas and brackets in strings count as well
JSON = "application/json"


async def read_body(request: Request) -> bytes:
    """Reads the body of a request, up to `MAX_BODY_BYTES`. Raises ParameterError: the body is too large."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise ParameterError(f"body: more than {MAX_BODY_BYTES} bytes")
    return bytes(body)


def json_object(body: bytes, what: str) -> dict[str, object]:
    """Parses a body as a JSON object. Counts the values first, because each takes many times the memory of its text.

    Of `what` a client with too many is asked to send fewer.

    Raises:
        ParameterError: The body is no JSON object, or has too many values.
    """
    if sum(map(body.count, (b",", b"[", b"{"))) > MAX_VALUES:
        raise ParameterError(f"body: more than {MAX_VALUES} values; send fewer {what} at a time")
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
