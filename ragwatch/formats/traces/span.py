"""Spans, independent of their encoding, and their storage as bytes.

Keys of attributes come from outside: they are only ever keys of dictionaries, never names of Python attributes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import orjson

NO_RESOURCE: Mapping[str, object] = {}


class Event(NamedTuple):
    """An event of a span: what happened, with attributes."""

    name: str
    attributes: dict[str, object]


class Span(NamedTuple):
    """One span. Values of attributes are JSON values.

    Attributes:
        trace_id: 32 hexadecimal digits.
        span_id: 16 hexadecimal digits.
        parent_id: 16 hexadecimal digits; empty for the first span of a trace.
        name: Name of the operation.
        start: In nanoseconds since the epoch.
        end: In nanoseconds since the epoch.
        attributes: By key.
        events: In the order in which they were sent.
        remote: Whether the parent is in another process; None if the sender does not say.
        dropped: How many attributes the SDK has dropped because of its limit.
        scope: Name of the instrumentation.
        failed: Whether the operation ended with an error.
        resource: Attributes of the process.
    """

    trace_id: str
    span_id: str
    parent_id: str
    name: str
    start: int
    end: int
    attributes: dict[str, object]
    events: tuple[Event, ...] = ()
    remote: bool | None = None
    dropped: int = 0
    scope: str = ""
    failed: bool = False
    resource: Mapping[str, object] = NO_RESOURCE

    @property
    def is_local_root(self) -> bool:
        """Whether the request that this span belongs to starts here, as far as the span itself says."""
        return not self.parent_id or self.remote is True


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
