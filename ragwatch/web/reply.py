"""Reply: values as JSON responses."""

from __future__ import annotations

import json

import orjson
from starlette.responses import Response

JSON = "application/json"


def dumps(value: object) -> bytes:
    r"""A value as JSON text.

    >>> dumps({"half of a pair": "\ud800"})
    b'{"half of a pair": "\\ud800"}'
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS, default=dict)
    except TypeError:  # a torn escape in a log leaves half of a surrogate pair, which is legal in JSON, not in UTF-8
        return json.dumps(value, default=dict).encode("ascii")


def json_reply(value: object, status: int = 200) -> Response:
    """A value as a response."""
    return Response(dumps(value) + b"\n", status_code=status, media_type=JSON)
