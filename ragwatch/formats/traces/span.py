"""Spans, independent of their encoding, and their storage as bytes.

Keys of attributes come from outside: they are only ever keys of dictionaries, never names of Python attributes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import orjson

EARLIEST = 946_684_800 * 10**9
"""The year 2000: what is before it is no time."""
EVENT_OF = "ragwatch.event_of"
"""Attribute of a span that stands for an event of its parent, which was sent as a log record."""
NO_RESOURCE: Mapping[str, object] = {}


class Event(NamedTuple):
    """An event of a span: what happened, with attributes."""

    name: str
    attributes: dict[str, object]


class Span(NamedTuple):
    """One span. Values of attributes are JSON values."""

    trace_id: str  # 32 hexadecimal digits
    span_id: str  # 16 hexadecimal digits
    parent_id: str  # 16 hexadecimal digits; empty for the first span of a trace
    name: str  # name of the operation
    start: int  # in nanoseconds since the epoch
    end: int  # in nanoseconds since the epoch
    attributes: dict[str, object]  # by key
    events: tuple[Event, ...] = ()  # in the order in which they were sent
    remote: bool | None = None  # whether the parent is in another process; None if the sender does not say
    dropped: int = 0  # how many attributes the SDK has dropped because of its limit
    scope: str = ""  # name of the instrumentation
    failed: bool = False  # whether the operation ended with an error
    resource: Mapping[str, object] = NO_RESOURCE  # attributes of the process

    @property
    def is_local_root(self) -> bool:
        """Whether the request that this span belongs to starts here, as far as the span itself says."""
        return not self.parent_id or self.remote is True


def with_events(spans: Iterable[Span]) -> list[Span]:
    """Return spans with the events that were sent apart from them, in the order of their time."""
    whole: list[Span] = []
    apart: dict[str, list[Span]] = {}
    for span in spans:
        if EVENT_OF in span.attributes:
            apart.setdefault(span.parent_id, []).append(span)
        else:
            whole.append(span)
    for some in apart.values():
        some.sort(key=lambda span: (span.start, span.span_id))
    return [
        span._replace(events=span.events + tuple(event for one in apart[span.span_id] for event in one.events))
        if span.span_id in apart
        else span
        for span in whole
    ]


def packed(spans: Sequence[Span]) -> bytes:
    """Return spans as bytes. Each resource is written once.

    >>> span = Span("aa" * 16, "bb" * 8, "", "query", 1, 2, {"input.value": "why?"}, resource={"service.name": "rag"})
    >>> unpacked(packed([span])) == [span]
    True
    """
    resources: dict[int, int] = {}
    distinct: list[Mapping[str, object]] = []
    rows: list[tuple[object, ...]] = []
    for span in spans:
        number = resources.get(id(span.resource))
        if number is None:
            number = resources[id(span.resource)] = len(distinct)
            distinct.append(span.resource)
        rows.append((*span[:7], [tuple(event) for event in span.events], *span[8:12], number))
    return orjson.dumps({"resources": distinct, "spans": rows})


def unpacked(payload: bytes) -> list[Span]:
    """Return the spans in bytes that `packed` has written."""
    stored = orjson.loads(payload)
    resources = stored["resources"]
    return [
        Span._make((*row[:7], tuple(Event(*event) for event in row[7]), *row[8:12], resources[row[12]]))
        for row in stored["spans"]
    ]
