"""Content types of OTLP/HTTP."""

from __future__ import annotations

from types import MappingProxyType

from ragwatch.sources.requests.refusal import RefusedError

PROTOBUF, JSON = "application/x-protobuf", "application/json"
_TYPES = MappingProxyType({PROTOBUF: PROTOBUF, "application/protobuf": PROTOBUF, JSON: JSON})


def content_type(header: str) -> str:
    """Return the content type of a request, without parameters.

    >>> content_type("application/json; charset=utf-8")
    'application/json'

    Raises:
        RefusedError: 415: any other type.
    """
    kind = _TYPES.get(header.partition(";")[0].strip().lower())
    if kind is None:
        raise RefusedError(415, f"Content-Type must be {PROTOBUF} or {JSON}")
    return kind
