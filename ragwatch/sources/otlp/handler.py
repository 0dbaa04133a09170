"""Handles OTLP export requests over HTTP and gRPC, in protobuf or JSON, compressed or not."""

from __future__ import annotations

from functools import partial

from ragwatch.ports.receiving import IncomingRequest, Reply
from ragwatch.sources.otlp import json_request, protobuf_request
from ragwatch.sources.otlp.pieces import Piece, pieces_of
from ragwatch.sources.otlp.reply import JSON, accepted, content_type, refused
from ragwatch.sources.otlp.request import Received
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


class OtlpHandler:
    """Decodes requests, queues their spans, and answers when these are stored.

    Args:
        logs: Whether requests hold log records, of which the events of generations are taken, instead of spans.
    """

    def __init__(
        self,
        queue: RequestQueue[Piece, None],
        budget: ByteBudget,
        max_body_bytes: int,
        *,
        kept: frozenset[str] = frozenset(),
        logs: bool = False,
        deadline_seconds: float = DEADLINE_SECONDS,
    ) -> None:
        self._queue = queue
        self._budget = budget
        self._max_body_bytes = max_body_bytes
        self._kept = kept
        self._logs = logs
        self._deadline_seconds = deadline_seconds

    async def __call__(self, request: IncomingRequest) -> Reply:
        """Handle one request."""
        kind = JSON
        body = Body(request, self._max_body_bytes, self._budget, _SEND_LESS)
        try:
            kind = content_type(request.headers.get("content-type", ""))
            sent = await body.read()
            spans, pieces = await body.decoded(partial(self._decoded, body, sent, kind))
            rejected, problem = spans.rejected, spans.problem
            del sent, spans  # not needed while the pieces wait
            body.free()
            if pieces:
                size = sum(piece.size for piece in pieces)
                await self._queue.stored(pieces, size, self._deadline_seconds, _LATE, keep=True)
        except RefusedError as error:
            await body.discard()
            return refused(kind, error)
        finally:
            body.free()
        return accepted(kind, rejected, problem, logs=self._logs)

    def _decoded(self, body: Body, sent: bytes, kind: str) -> tuple[Received, list[Piece]]:
        plain = body.unpacked(sent)
        module = json_request if kind == JSON else protobuf_request
        spans = (module.events_of if self._logs else module.spans_of)(plain)
        pieces = pieces_of(spans.spans, self._kept)
        if pieces and spans.times:
            pieces[0] = pieces[0]._replace(times=spans.times)
        return spans, pieces
