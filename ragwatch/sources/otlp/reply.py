"""Content types of OTLP/HTTP, and replies to export requests in the type of the request."""

from __future__ import annotations

from types import MappingProxyType

import orjson
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from ragwatch.ports.receiving import Reply
from ragwatch.sources.requests.queue import RefusedError

PROTOBUF, JSON = "application/x-protobuf", "application/json"
_TYPES = MappingProxyType({PROTOBUF: PROTOBUF, "application/protobuf": PROTOBUF, JSON: JSON})
_CODES = MappingProxyType({400: 3, 413: 8, 415: 3, 429: 8, 503: 14})
"""Codes of google.rpc.Status."""
_MAX_MESSAGE = 1_000
_RETRY_INFO = b"type.googleapis.com/google.rpc.RetryInfo"


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


def accepted(kind: str, rejected: int = 0, problem: str = "", *, logs: bool = False) -> Reply:
    """Return the reply to a request whose spans or log records are stored, but for `rejected` invalid ones.

    In protobuf both replies are the same bytes.
    """
    if kind == JSON:
        partial = {"rejectedLogRecords" if logs else "rejectedSpans": str(rejected), "errorMessage": problem}
        return Reply(200, orjson.dumps({"partialSuccess": partial} if rejected else {}), JSON)
    response = ExportTraceServiceResponse()
    if rejected:
        response.partial_success.rejected_spans = rejected
        response.partial_success.error_message = problem
    return Reply(200, response.SerializeToString(), PROTOBUF)


def refused(kind: str, error: RefusedError) -> Reply:
    """Return the reply to a request that failed: a google.rpc.Status, with RetryInfo where it may be sent again."""
    code, message = _CODES.get(error.status, 2), error.message[:_MAX_MESSAGE]
    if kind != PROTOBUF:
        body = orjson.dumps({"code": code, "message": message})
        return Reply(error.status, body, JSON, error.headers, message)
    status = b"\x08" + _varint(code) + _field(2, message.encode())
    if error.retry_seconds is not None:
        delay = _field(1, b"\x08" + _varint(error.retry_seconds))  # a google.protobuf.Duration
        status += _field(3, _field(1, _RETRY_INFO) + _field(2, delay))
    return Reply(error.status, status, PROTOBUF, error.headers, message)


def _field(number: int, content: bytes) -> bytes:
    r"""A text or a message in the encoding of protobuf.

    >>> _field(2, b"full")
    b'\x12\x04full'
    """
    return _varint(number << 3 | 2) + _varint(len(content)) + content


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
