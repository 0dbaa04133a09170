"""Decodes a request in OTLP/protobuf."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from math import isfinite
from typing import TYPE_CHECKING, TypeVar

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ragwatch.formats.record import ADVICE, MAX_DECODED_BYTES
from ragwatch.formats.traces.span import Event, Span
from ragwatch.sources.otlp.request import (
    FAILED,
    MAX_SPANS,
    MAX_VALUE_DEPTH,
    Received,
    body_fields,
    is_id,
    is_wanted,
    remote_of,
    too_many_spans,
    without_vectors,
)
from ragwatch.sources.requests import RefusedError

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
    from opentelemetry.proto.trace.v1.trace_pb2 import Span as ProtobufSpan


_Request = TypeVar("_Request", ExportTraceServiceRequest, ExportLogsServiceRequest)


def spans_of(body: bytes) -> Received:
    """Return the spans in a body. Raises RefusedError: 400: it is no such request; 413: it takes too much memory."""
    received = Received()
    for resource_spans in _parsed(body, ExportTraceServiceRequest()).resource_spans:
        resource = _attributes(resource_spans.resource.attributes)
        for scope_spans in resource_spans.scope_spans:
            scope = scope_spans.scope.name
            for span in scope_spans.spans:
                _add(received, span, scope, resource)
    return received


def events_of(body: bytes) -> Received:
    """Return the events of generations in a body of log records, as spans of their own; see `with_events`."""
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


_MESSAGE = 160
"""Bytes of the smallest message, with the object of Python that is made of it."""
_FIELDS_PER_MESSAGE = 3  # on average; those of clients have fewer than two
UNCOUNTED_BYTES = MAX_DECODED_BYTES // _MESSAGE  # a message takes two bytes, so that these are 80 MiB at most
_MAX_DEPTH = 100  # protobuf itself refuses deeper messages
_SPANS = frozenset({"opentelemetry.proto.trace.v1.Span", "opentelemetry.proto.logs.v1.LogRecord"})


def check_size(body: bytes, kind: Descriptor = ExportTraceServiceRequest.DESCRIPTOR) -> None:
    """Refuse a request that would take too much memory, with 413. What is damaged is left to the decoder."""
    if len(body) > UNCOUNTED_BYTES:
        _Walk(body).messages(0, len(body), kind, 0)


class _Walk:
    """Counts the fields in a body: messages, those that are not known, which cost as much time, and all together."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._left = (MAX_DECODED_BYTES - len(body)) // _MESSAGE
        self._fields_left = _FIELDS_PER_MESSAGE * self._left
        self._spans_left = MAX_SPANS

    def messages(self, at: int, end: int, kind: Descriptor, depth: int) -> None:
        """Count the fields of the message from `at` to `end`. Raises RefusedError: 413: there are too many."""
        body, kinds = self._body, _kinds(kind)
        while at < end:
            tag, at = _varint(body, at)
            wire, inner = tag & 7, kinds.get(tag >> 3)
            self._count(inner, is_known=tag >> 3 in kinds)
            if wire == 2:
                length, at = _varint(body, at)
                if inner is not None and 0 < length <= end - at and depth < _MAX_DEPTH:
                    self.messages(at, at + length, inner, depth + 1)
                at += length
            elif wire == 0:
                _, at = _varint(body, at)
            elif wire in (1, 5):
                at += 8 if wire == 1 else 4
            else:  # a group, or garbage: the decoder says so
                return

    def _count(self, kind: Descriptor | None, *, is_known: bool) -> None:
        self._fields_left -= 1
        self._left -= kind is not None or not is_known
        if self._left < 0 or self._fields_left < 0:
            raise RefusedError(413, f"the request is too large: {ADVICE}; send fewer spans at a time")
        if kind is not None and kind.full_name in _SPANS:
            self._spans_left -= 1
            if self._spans_left < 0:
                raise too_many_spans()


@cache
def _kinds(kind: Descriptor) -> Mapping[int, Descriptor | None]:
    """The fields that a message can have, by their number; None for one that is no message."""
    return {field.number: field.message_type for field in kind.fields}


def _varint(body: bytes, at: int) -> tuple[int, int]:
    """Read a number; the place behind it is behind the body where the number is cut off."""
    value = shift = 0
    while at < len(body):
        byte = body[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80 or shift > 63:
            return value, at
        shift += 7
    return 0, len(body)
