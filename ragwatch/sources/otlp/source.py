"""Source kind `otlp`: receives traces over OTLP and assembles one record for each RAG request.

A request of a client is answered when its spans are stored. They wait in memory and in the store until their trace is
complete (see `waiting`); the record is then admitted, and its spans deleted, in one transaction.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType

import orjson

from ragwatch.errors import SourceError
from ragwatch.formats.record import READER_ERRORS
from ragwatch.formats.traces.assemble import LIMIT_ADVICE, Assembled, Refused, assemble
from ragwatch.model.sample import RejectReason
from ragwatch.ports import Batch, Part, Rejection
from ragwatch.ports.sources import Handler, IncomingRequest, Reply
from ragwatch.sources.otlp import json_request, protobuf_request
from ragwatch.sources.otlp.options import Options
from ragwatch.sources.otlp.request import JSON, Received, accepted, content_type, refused
from ragwatch.sources.otlp.resolver import Resolver
from ragwatch.sources.otlp.waiting import Piece, Waiting, WaitingTraces, pieces_of, restored
from ragwatch.sources.requests import Body, ByteBudget, Queued, RefusedError, RequestQueue, answer, stopping
from ragwatch.statistics.snapshot import Lag
from ragwatch.statistics.tally import Tally, TallyKey

PATH = "/v1/traces"
METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
LOGS_PATH = "/v1/logs"
LOGS_METHOD = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
DEADLINE_SECONDS = 8.0
"""How long a client waits until its spans are stored; SDKs give up after 10 seconds."""

_LATE = "the spans are not stored yet: judging is behind, or the state cannot be written"
_SEND_LESS = "send fewer spans at once (OTEL_BSP_MAX_EXPORT_BATCH_SIZE)"
MAX_BATCH_BYTES = 8 << 20
MAX_TRACES = 500
"""Traces that are assembled in one batch."""
RETRY_SECONDS = 15.0
MAX_TRIES = 8


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


@dataclass(slots=True)
class _Draft:
    """The content of a batch, while it is made."""

    requests: list[Queued[Piece, None]]
    lines: list[bytes] = field(default_factory=list)
    rejections: list[Rejection] = field(default_factory=list)
    hold: list[Part] = field(default_factory=list)
    release: list[str] = field(default_factory=list)
    tallies: Counter[TallyKey] = field(default_factory=Counter)


class OtlpSource:
    """Receives spans and delivers records in the canonical format. See `ports.Source`, `ports.capabilities`.

    Args:
        clock: Monotonic seconds: for how long traces wait.
        dates: Seconds since the epoch: when stored spans arrived.

    Attributes:
        handlers: The handlers of `POST /v1/traces` and `POST /v1/logs`, and of the same requests over gRPC.
        recognises_resent: True: a client sends its spans again if it gets no reply.
    """

    recognises_resent = True

    def __init__(
        self,
        options: Options,
        clock: Callable[[], float] = time.monotonic,
        dates: Callable[[], float] = time.time,
    ) -> None:
        self.name = options.name
        self._options = options
        self._clock = clock
        self._dates = dates
        self._naming = options.naming
        self._queue: RequestQueue[Piece, None] = RequestQueue(options.queue_bytes)
        self.wake = self._queue.wake
        self._traces = WaitingTraces(
            options.grace_seconds, options.wait_seconds, options.waiting_bytes, options.max_body_bytes
        )
        self._resolver = None if options.resolve is None else Resolver(options.resolve)
        self._tries: Counter[str] = Counter()
        self._damaged = 0
        self._pending: tuple[Batch, list[Queued[Piece, None]]] | None = None
        budget = ByteBudget(options.queue_bytes)
        traces, logs = (
            OtlpHandler(self._queue, budget, options.max_body_bytes, kept=self._naming.attributes, logs=is_logs)
            for is_logs in (False, True)
        )
        self.handlers: Mapping[str, Handler] = MappingProxyType(
            {PATH: traces, METHOD: traces, LOGS_PATH: logs, LOGS_METHOD: logs}
        )

    def resume(self, cursors: Mapping[str, str]) -> None:
        """Clients remember what they have not sent: there are no cursors."""

    def restore(self, parts: Iterable[Part]) -> None:
        """Take back spans that were stored and not assembled. They wait for as long as if they had arrived now."""
        now = self._clock()
        for part in parts:
            try:
                self._traces.add(restored(part), now)
            except ValueError:
                self._damaged += 1

    def read(self) -> Batch | None:
        """Return the spans that arrived and the records that are complete; the same until they are committed."""
        if self._pending is None:
            draft = _Draft(self._queue.take(MAX_BATCH_BYTES))
            now = self._clock()
            self._receive(draft, now)
            self._complete(draft, now)
            if not (draft.requests or draft.release or draft.tallies):
                return None
            batch = Batch(
                stream="traces",
                file=PATH,
                lines=draft.lines,
                offsets=range(len(draft.lines)),
                numbers=range(1, len(draft.lines) + 1),
                cursor="",
                rejections=draft.rejections,
                hold=draft.hold,
                release=draft.release,
                tallies=draft.tallies,
            )
            self._pending = (batch, draft.requests)
        return self._pending[0]

    def commit(self, batch: Batch) -> None:
        """The batch is stored: answer the clients. Raises ValueError: it is not the batch that was read last."""
        if self._pending is None or self._pending[0] is not batch:
            raise ValueError("only the batch that was read last can be committed")
        answer((queued, None) for queued in self._pending[1])
        self._pending = None

    def lag(self) -> Lag:
        """Bytes of requests that are not stored, and for how long the oldest has waited."""
        return Lag(*self._queue.lag())

    def close(self) -> None:
        """Refuse further requests, and answer those that wait: their clients send them again."""
        rest = self._queue.close() + ([] if self._pending is None else self._pending[1])
        answer((queued, stopping()) for queued in rest)
        if self._resolver is not None:
            self._resolver.close()

    def _receive(self, draft: _Draft, now: float) -> None:
        """Add the spans of requests to their traces."""
        tallies, name = draft.tallies, self.name
        if self._damaged:
            tallies[Tally.SPANS_LEFT_OUT, (name, "damaged")] += self._damaged
            self._damaged = 0
        for queued in draft.requests:
            for piece in queued.items:
                tallies[Tally.SPANS, (name,)] += len(piece.span_ids)
                for problem, count in piece.times.items():
                    tallies[Tally.SPAN_TIMES, (name, problem)] += count
                fresh, late = self._traces.add(piece, now)
                if fresh is not None:
                    draft.hold.append(fresh.part(self._dates()))
                if late:
                    tallies[Tally.SPANS_LEFT_OUT, (name, "late")] += late

    def _complete(self, draft: _Draft, now: float) -> None:
        """Assemble the traces that are complete."""
        for trace in self._traces.complete(now):
            try:
                result = self._assembled(trace)
            except SourceError as error:
                self._tries[trace.trace_id] += 1
                if self._tries[trace.trace_id] <= MAX_TRIES:
                    self._traces.defer(trace, now + RETRY_SECONDS)
                    continue
                result = Assembled(refused=[Refused(RejectReason.NO_CONTENT, "contexts", str(error))])
            self._tries.pop(trace.trace_id, None)
            self._add(draft, trace, result)
            draft.release.append(trace.trace_id)
            if not trace.roots and not result.records:
                draft.tallies[Tally.SPANS_LEFT_OUT, (self.name, "no_root")] += len(trace.span_ids)
            if len(draft.release) >= MAX_TRACES:
                break

    def _assembled(self, trace: Waiting) -> Assembled:
        """What the spans of a trace are. Spans that nobody has foreseen must not stop all others."""
        if trace.too_large:
            detail = f"more spans than one request can have: ragwatch takes {self._options.max_body_bytes} bytes"
            return Assembled(refused=[Refused(RejectReason.TRUNCATED, "", f"{detail}; {LIMIT_ADVICE}")])
        try:
            return assemble(
                trace.spans(),
                self._naming,
                self._resolver,
                ungrounded=self._options.without_retrieval,
                continued=trace.continued,
            )
        except READER_ERRORS as error:
            detail = f"the spans of this trace cannot be read: {type(error).__name__}: {error}"
            return Assembled(refused=[Refused(RejectReason.WRONG_TYPE, "", detail)])

    def _add(self, draft: _Draft, trace: Waiting, result: Assembled) -> None:
        """Add what a trace was to the batch."""
        name, tallies = self.name, draft.tallies
        draft.lines += map(orjson.dumps, result.records)
        outcomes = {
            "assembled": len(result.records),
            "unrelated": result.unrelated,
            "without_retrieval": result.ungrounded,
            "failed": result.failed,
            "incomplete": result.incomplete,
        }
        for outcome, count in outcomes.items():
            if count:
                tallies[Tally.TRACES, (name, outcome)] += count
        for one in result.refused:
            tallies[Tally.TRACES, (name, "refused")] += 1
            if one.silent:
                tallies[Tally.SILENT, (name, one.silent)] += 1
            draft.rejections.append(Rejection(one.reason, f"trace {trace.trace_id}", 0, one.field, one.detail))
