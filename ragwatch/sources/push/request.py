"""Content types of requests to a source of kind `push`, and the response to refused ones."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import orjson

from ragwatch.ports.receiving import Reply
from ragwatch.sources.requests.refusal import RefusedError

_LINES_BY_TYPE: Mapping[str, bool] = MappingProxyType(
    {
        "application/json": False,
        "application/x-ndjson": True,
        "application/ndjson": True,
        "application/jsonl": True,
        "application/x-jsonlines": True,
    }
)


def refused(error: RefusedError) -> Reply:
    """Return the response to a request that is not accepted."""
    return Reply(error.status, orjson.dumps({"error": error.message}) + b"\n", headers=error.headers)


def has_lines(content_type: str) -> bool:
    """Return whether the body of a request is JSONL rather than JSON.

    >>> has_lines("application/x-ndjson"), has_lines("application/json; charset=utf-8")
    (True, False)

    Raises:
        RefusedError: 415 for any other type.
    """
    kind = _LINES_BY_TYPE.get(content_type.partition(";")[0].strip().lower())
    if kind is None:
        raise RefusedError(
            415, "Content-Type must be application/json (an object or an array) or application/x-ndjson (JSONL)"
        )
    return kind
