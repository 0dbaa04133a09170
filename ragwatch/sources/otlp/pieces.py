"""Spans of one trace from one request, in the compact form in which they wait for the rest of the trace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ragwatch.formats.traces.kinds import Kind, kind_of
from ragwatch.formats.traces.span import EVENT_OF, Span, packed, unpacked
from ragwatch.ports import Part

NO_TIMES: Mapping[str, int] = {}
_OF_EXPORT = "ragwatch.judge"  # an attribute of spans with scores that ragwatch itself has sent; see `pipeline.export`


PIECE_BYTES, SPAN_BYTES = 2048, 160
"""Memory of a trace with one piece, and of the id of a span, beside their payload."""


class Piece(NamedTuple):
    """Spans of one trace that arrived together.

    Attributes:
        roots: Those of them that are local roots.
        times: How many spans of the request have times in another unit or none; only in its first piece.
    """

    trace_id: str
    span_ids: frozenset[str]
    roots: frozenset[str]
    payload: bytes
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
