"""Encodes values as JSON responses."""

from __future__ import annotations

import json

import orjson
from starlette.responses import Response

JSON = "application/json"


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
