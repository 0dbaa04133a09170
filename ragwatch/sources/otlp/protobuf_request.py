"""Decodes a request in OTLP/protobuf."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import TYPE_CHECKING, TypeVar

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ragwatch.formats.traces.span import Event, Span
from ragwatch.sources.otlp.protobuf_size import check_size
from ragwatch.sources.otlp.request import (
    FAILED,
    MAX_VALUE_DEPTH,
    Received,
    body_fields,
    is_id,
    is_wanted,
    remote_of,
    without_vectors,
)
from ragwatch.sources.requests.queue import RefusedError

if TYPE_CHECKING:
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
    from opentelemetry.proto.trace.v1.trace_pb2 import Span as ProtobufSpan

_Request = TypeVar("_Request", ExportTraceServiceRequest, ExportLogsServiceRequest)


def spans_of(body: bytes) -> Received:
    """Return the spans in a body.

    Raises:
        RefusedError: 400: it is not a request of this kind; 413: it would take too much memory.
    """
    received = Received()
    for resource_spans in _parsed(body, ExportTraceServiceRequest()).resource_spans:
        resource = _attributes(resource_spans.resource.attributes)
        for scope_spans in resource_spans.scope_spans:
            scope = scope_spans.scope.name
            for span in scope_spans.spans:
                _add(received, span, scope, resource)
    return received


def events_of(body: bytes) -> Received:
    """Return the events of generations in a body of log records, as spans of their own; see `with_events`.

    Raises:
        RefusedError: As `spans_of`.
    """
    received = Received()
    for resource_logs in _parsed(body, ExportLogsServiceRequest()).resource_logs:
        resource = _attributes(resource_logs.resource.attributes)
        for scope_logs in resource_logs.scope_logs:
            for log in scope_logs.log_records:
                attributes = _attributes(log.attributes)
                name = log.event_name or attributes.get("event.name") or ""
                event = Event(str(name), attributes | body_fields(_value(log.body, MAX_VALUE_DEPTH)))
                ids = log.trace_id.hex(), log.span_id.hex()
                at = log.time_unix_nano or log.observed_time_unix_nano
                received.add_event(ids, at, event, (scope_logs.scope.name, resource))
    return received


def _parsed(body: bytes, request: _Request) -> _Request:
    check_size(body, request.DESCRIPTOR)
    try:
        request.ParseFromString(body)
    except DecodeError as error:
        raise RefusedError(400, f"the body is not an {request.DESCRIPTOR.name} in protobuf: {error}") from None
    return request


def _add(received: Received, span: ProtobufSpan, scope: str, resource: dict[str, object]) -> None:
    trace_id, span_id, parent_id = span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex()
    if not is_id(trace_id, 32) or not is_id(span_id, 16):
        received.reject("a span without a valid trace_id of 16 and span_id of 8 bytes")
        return
    start, end = received.span_times(span.start_time_unix_nano, span.end_time_unix_nano)
    received.spans.append(
        Span(
            trace_id=trace_id,
            span_id=span_id,
            parent_id=parent_id if is_id(parent_id, 16) else "",
            name=span.name,
            start=start,
            end=end,
            attributes=_attributes(span.attributes),
            events=tuple(Event(event.name, _attributes(event.attributes)) for event in span.events),
            remote=remote_of(span.flags),
            dropped=span.dropped_attributes_count,
            scope=scope,
            failed=span.status.code == FAILED,
            resource=resource,
        )
    )


def _attributes(pairs: Iterable[KeyValue]) -> dict[str, object]:
    attributes: dict[str, object] = {}
    for pair in pairs:
        key = pair.key
        if is_wanted(key):
            held = pair.value
            # Most values are texts.
            value = held.string_value or _value(held, MAX_VALUE_DEPTH)
            if value is not None:
                attributes[key] = value
    return attributes


def _value(value: AnyValue, depth: int) -> object:
    """The value of an AnyValue; None for one that is empty, binary, nested too deeply, or not a number."""
    kind = value.WhichOneof("value")
    if kind is None or kind == "bytes_value" or depth == 0:
        return None
    if kind == "array_value":
        return without_vectors([_value(item, depth - 1) for item in value.array_value.values])
    if kind == "kvlist_value":
        return {item.key: _value(item.value, depth - 1) for item in value.kvlist_value.values}
    part = getattr(value, kind)
    return None if isinstance(part, float) and not isfinite(part) else part
