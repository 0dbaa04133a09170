"""Replies to export requests, in the content type of the request."""

from __future__ import annotations

from types import MappingProxyType

import orjson
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from ragwatch.ports.receiving import Reply
from ragwatch.sources.otlp.content_types import JSON, PROTOBUF
from ragwatch.sources.requests.refusal import RefusedError

_CODES = MappingProxyType({400: 3, 413: 8, 415: 3, 429: 8, 503: 14})
"""Codes of google.rpc.Status."""
_MAX_MESSAGE = 1_000


def accepted(kind: str, rejected: int = 0, problem: str = "") -> Reply:
    """Return the reply to a request whose spans are stored, but for `rejected` invalid ones."""
    if kind == JSON:
        partial = {"rejectedSpans": str(rejected), "errorMessage": problem}
        return Reply(200, orjson.dumps({"partialSuccess": partial} if rejected else {}), JSON)
    response = ExportTraceServiceResponse()
    if rejected:
        response.partial_success.rejected_spans = rejected
        response.partial_success.error_message = problem
    return Reply(200, response.SerializeToString(), PROTOBUF)


def refused(kind: str, error: RefusedError) -> Reply:
    """Return the reply to a request that failed: a google.rpc.Status."""
    code, message = _CODES.get(error.status, 2), error.message[:_MAX_MESSAGE]
    if kind != PROTOBUF:
        return Reply(error.status, orjson.dumps({"code": code, "message": message}), JSON, error.headers)
    text = message.encode()
    return Reply(error.status, b"\x08" + _varint(code) + b"\x12" + _varint(len(text)) + text, PROTOBUF, error.headers)


def _varint(value: int) -> bytes:
    r"""A number in the encoding of protobuf.

    >>> _varint(300)
    b'\xac\x02'
    """
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*encoded, value))
