"""Traces that are not complete: their spans wait in memory, and the store has a copy for the next start.

A trace is complete when its local root has arrived and then nothing for `grace_seconds`, or at the latest after
`MAX_GRACES` times as long: spans of other processes come later. One whose root never arrives is given up after
`wait_seconds` without a new span. If memory is full, the oldest go first.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ragwatch.formats.traces.span import EVENT_OF, Span, packed, unpacked
from ragwatch.formats.traces.steps import Kind, kind_of
from ragwatch.ports import Part

NO_TIMES: Mapping[str, int] = {}
_OF_EXPORT = "ragwatch.judge"  # an attribute of spans with scores that ragwatch itself has sent; see `pipeline.export`


PIECE_BYTES, SPAN_BYTES = 2048, 160
"""Memory of a trace with one piece, and of the id of a span, beside their payload."""


class Piece(NamedTuple):
    """Spans of one trace that arrived together."""

    trace_id: str
    span_ids: frozenset[str]
    roots: frozenset[str]  # those of them that are local roots
    payload: bytes
    # how many spans of the request have times in another unit or none; only in its first piece
    times: Mapping[str, int] = NO_TIMES

    @property
    def size(self) -> int:
        """The memory that it takes while it waits, in bytes."""
        return len(self.payload) + PIECE_BYTES + SPAN_BYTES * len(self.span_ids)

    def without(self, known: frozenset[str]) -> Piece | None:
        """The spans that are not known; None if all are."""
        if known.isdisjoint(self.span_ids):
            return self
        fresh = [span for span in unpacked(self.payload) if span.span_id not in known]
        return piece_of(self.trace_id, fresh) if fresh else None

    def part(self, at: float) -> Part:
        """The form in which the store holds it. No other part of the trace has a span of the same name."""
        return Part(self.trace_id, min(self.span_ids), self.payload, at)


def piece_of(trace_id: str, spans: list[Span]) -> Piece:
    """Return the piece of these spans of one trace."""
    return Piece(
        trace_id,
        frozenset(span.span_id for span in spans),
        frozenset(span.span_id for span in spans if span.is_local_root),
        packed(spans),
    )


def pieces_of(spans: Iterable[Span], kept: frozenset[str] = frozenset()) -> list[Piece]:
    """Return spans by trace, without those that ragwatch itself has sent.

    Of spans that have nothing to do with generation only the attributes in `kept` are stored: those that become fields
    of a record.
    """
    by_trace: dict[str, list[Span]] = {}
    for span in spans:
        if _OF_EXPORT in span.attributes:
            continue
        one = span
        if kind_of(span) is Kind.OTHER and span.attributes:
            if EVENT_OF in span.attributes:
                continue
            attributes = {key: value for key, value in span.attributes.items() if key in kept}
            one = span._replace(attributes=attributes, events=())
        by_trace.setdefault(span.trace_id, []).append(one)
    return [piece_of(trace_id, some) for trace_id, some in by_trace.items()]


def restored(part: Part) -> Piece:
    """Return the piece that a part holds. Raises ValueError: it is damaged."""
    try:
        return piece_of(part.group, unpacked(part.payload))
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(f"a stored part of trace {part.group} is damaged: {error}") from error


MAX_DONE = 50_000
"""Completed traces that are remembered, to recognise spans that arrive late."""
MAX_GRACES = 12
MAX_SPANS = 5_000
"""Spans of one trace; a trace with more is not one request."""


@dataclass(slots=True)
class Waiting:
    """A trace that waits for more spans."""

    trace_id: str
    due: float  # when it is complete or given up, in monotonic seconds
    continued: bool = False  # whether a request of this trace was completed before
    pieces: list[Piece] = field(default_factory=list)
    span_ids: set[str] = field(default_factory=set)
    roots: set[str] = field(default_factory=set)  # those of them that are local roots
    root_at: float | None = None  # when the first of those has arrived, in monotonic seconds; None before
    size: int = 0  # memory of all pieces, in bytes
    too_large: bool = False  # whether spans were left out because there are too many

    def spans(self) -> list[Span]:
        """All spans that have arrived."""
        return [span for piece in self.pieces for span in unpacked(piece.payload)]


class WaitingTraces:
    """The traces that wait, bounded in number and size.

    Args:
        grace_seconds: How long to wait for spans after the last one, once the local root is there.
        wait_seconds: How long to wait for the local root after the last span.
        max_bytes: Memory of spans from which on the oldest traces wait no longer.
        max_trace_bytes: Bytes of one trace from which on its spans are left out.
    """

    def __init__(self, grace_seconds: float, wait_seconds: float, max_bytes: int, max_trace_bytes: int) -> None:
        self._grace = grace_seconds
        self._wait = wait_seconds
        self._max_bytes = max_bytes
        self._max_trace_bytes = max_trace_bytes
        self._traces: OrderedDict[str, Waiting] = OrderedDict()  # oldest first
        self._due: list[tuple[float, str]] = []
        self._done: OrderedDict[str, frozenset[str]] = OrderedDict()  # local roots of completed traces
        self.size = 0

    def __len__(self) -> int:
        return len(self._traces)

    def add(self, piece: Piece, now: float) -> tuple[Piece | None, int]:
        """Add spans. Returns those that are new, and how many belong to requests that are completed already."""
        trace = self._traces.get(piece.trace_id)
        done = self._done.get(piece.trace_id)
        if done is not None and trace is None and not piece.roots - done:
            return None, len(piece.span_ids)
        if trace is None:
            trace = self._traces[piece.trace_id] = Waiting(piece.trace_id, now + self._wait, done is not None)
        fresh = piece.without(frozenset(trace.span_ids)) if trace.pieces else piece
        if fresh is None:
            return None, 0
        if trace.size + fresh.size > self._max_trace_bytes or len(trace.span_ids) >= MAX_SPANS:
            trace.too_large = True
            return None, 0
        self._insert(trace, fresh, now)
        return fresh, 0

    def _insert(self, trace: Waiting, piece: Piece, now: float) -> None:
        trace.pieces.append(piece)
        trace.span_ids |= piece.span_ids
        trace.size += piece.size
        self.size += piece.size
        trace.roots |= piece.roots
        if trace.roots:
            trace.root_at = now if trace.root_at is None else trace.root_at
            trace.due = min(now, trace.root_at + (MAX_GRACES - 1) * self._grace) + self._grace
        else:
            trace.due = now + self._wait
        heapq.heappush(self._due, (trace.due, trace.trace_id))

    def complete(self, now: float) -> Iterator[Waiting]:
        """Remove and yield traces that are complete or given up, and the oldest ones while memory is full."""
        while self._due and self._due[0][0] <= now:
            due, trace_id = heapq.heappop(self._due)
            trace = self._traces.get(trace_id)
            if trace is not None and trace.due <= due:
                yield self._removed(trace)
        while self.size > self._max_bytes:
            yield self._removed(next(iter(self._traces.values())))

    def defer(self, trace: Waiting, due: float) -> None:
        """Let a trace that was just completed wait again."""
        self._done.pop(trace.trace_id, None)
        trace.due = due
        self._traces[trace.trace_id] = trace
        self.size += trace.size
        heapq.heappush(self._due, (due, trace.trace_id))

    def _removed(self, trace: Waiting) -> Waiting:
        del self._traces[trace.trace_id]
        self.size -= trace.size
        self._done[trace.trace_id] = self._done.pop(trace.trace_id, frozenset()) | trace.roots
        if len(self._done) > MAX_DONE:
            self._done.popitem(last=False)
        return trace
