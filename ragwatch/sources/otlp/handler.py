"""Handles OTLP export requests over HTTP and gRPC, in protobuf or JSON, compressed or not."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import orjson
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from ragwatch.ports.receiving import IncomingRequest, Reply
from ragwatch.sources.otlp import json_request, protobuf_request
from ragwatch.sources.otlp.request import Received
from ragwatch.sources.otlp.waiting import Piece, pieces_of
from ragwatch.sources.requests.body import Body, ByteBudget
from ragwatch.sources.requests.queue import RefusedError, RequestQueue

PATH = "/v1/traces"
METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
LOGS_PATH = "/v1/logs"
LOGS_METHOD = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
DEADLINE_SECONDS = 8.0
"""How long a client waits until its spans are stored; SDKs give up after 10 seconds."""

_LATE = "the spans are not stored yet: judging is behind, or the state cannot be written"
_SEND_LESS = "send fewer spans at once (OTEL_BSP_MAX_EXPORT_BATCH_SIZE)"


@dataclass(frozen=True, slots=True)
class OtlpHandler:
    """Decodes requests, queues their spans, and answers when these are stored.

    Args:
        logs: Whether requests hold log records, of which the events of generations are taken, instead of spans.
    """

    queue: RequestQueue[Piece, None]
    budget: ByteBudget
    max_body_bytes: int
    kept: frozenset[str] = frozenset()
    logs: bool = False
    deadline_seconds: float = DEADLINE_SECONDS

    async def __call__(self, request: IncomingRequest) -> Reply:
        """Handle one request."""
        kind = JSON
        body = Body(request, self.max_body_bytes, self.budget, _SEND_LESS)
        try:
            kind = content_type(request.headers.get("content-type", ""))
            sent = await body.read()
            spans, pieces = await body.decoded(partial(self._decoded, body, sent, kind))
            rejected, problem = spans.rejected, spans.problem
            del sent, spans  # not needed while the pieces wait
            body.free()
            if pieces:
                size = sum(piece.size for piece in pieces)
                await self.queue.stored(pieces, size, self.deadline_seconds, _LATE, keep=True)
        except RefusedError as error:
            await body.discard()
            return refused(kind, error)
        finally:
            body.free()
        return accepted(kind, rejected, problem, logs=self.logs)

    def _decoded(self, body: Body, sent: bytes, kind: str) -> tuple[Received, list[Piece]]:
        plain = body.unpacked(sent)
        module = json_request if kind == JSON else protobuf_request
        spans = (module.events_of if self.logs else module.spans_of)(plain)
        pieces = pieces_of(spans.spans, self.kept)
        if pieces and spans.times:
            pieces[0] = pieces[0]._replace(times=spans.times)
        return spans, pieces


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
