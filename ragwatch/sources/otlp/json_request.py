"""Decodes a request in OTLP/JSON: ids in hexadecimal, 64-bit integers as text or number, unknown fields ignored."""

from collections.abc import Callable, Iterator, Sequence

import orjson

from ragwatch.errors import TooManyValuesError
from ragwatch.formats.record import decode_body
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

_Add = Callable[[Received, dict[str, object], str, dict[str, object]], None]
_SPANS = (("resourceSpans", "resource_spans"), ("scopeSpans", "scope_spans", "instrumentationLibrarySpans"), ("spans",))
_LOGS = (("resourceLogs", "resource_logs"), ("scopeLogs", "scope_logs"), ("logRecords", "log_records"))
_MAX_DIGITS = 20


def spans_of(body: bytes) -> Received:
    """Return the spans in a body. Raises RefusedError: 400: it is no such request; 413: it takes too much memory."""
    return _received(body, _SPANS, _add)


def events_of(body: bytes) -> Received:
    """Return the events of generations in a body of log records, as spans of their own; see `with_events`."""
    return _received(body, _LOGS, _add_event)


def _received(body: bytes, names: Sequence[Sequence[str]], add: _Add) -> Received:
    try:
        request = decode_body(body) if body.strip() else {}
    except TooManyValuesError as error:
        raise RefusedError(413, f"the request is too large: {error.msg}; send fewer spans at a time") from None
    except orjson.JSONDecodeError as error:
        raise RefusedError(400, f"the body is not JSON: {error.msg} at character {error.pos}") from None
    if not isinstance(request, dict):
        raise RefusedError(400, f"the body must be a JSON object with the field {names[0][0]}")
    received = Received()
    for of_resource in _objects(request, *names[0]):
        resource = _attributes(_object(of_resource, "resource"))
        for of_scope in _objects(of_resource, *names[1]):
            sent = next((of_scope[name] for name in names[2] if name in of_scope), None)
            if isinstance(sent, list) and len(received.spans) + received.rejected + len(sent) > MAX_SPANS:
                raise too_many_spans()
            scope = str(_object(of_scope, "scope").get("name") or "")
            for item in _objects(of_scope, *names[2]):
                add(received, item, scope, resource)
    return received


def _add_event(received: Received, log: dict[str, object], scope: str, resource: dict[str, object]) -> None:
    attributes, body = _attributes(log), _value(log.get("body"), MAX_VALUE_DEPTH)
    name = log.get("eventName") or log.get("event_name") or attributes.get("event.name") or ""
    at = _integer(log, "timeUnixNano", "time_unix_nano") or _integer(log, "observedTimeUnixNano")
    ids = _hex(log, "traceId", "trace_id"), _hex(log, "spanId", "span_id")
    received.add_event(ids, at, Event(str(name), attributes | body_fields(body)), (scope, resource))


def _add(received: Received, span: dict[str, object], scope: str, resource: dict[str, object]) -> None:
    trace_id, span_id = _hex(span, "traceId", "trace_id"), _hex(span, "spanId", "span_id")
    if not is_id(trace_id, 32) or not is_id(span_id, 16):
        received.reject("a span without a valid traceId of 32 and spanId of 16 hexadecimal digits")
        return
    parent_id = _hex(span, "parentSpanId", "parent_span_id")
    status = _object(span, "status")
    start, end = received.span_times(
        _integer(span, "startTimeUnixNano", "start_time_unix_nano"),
        _integer(span, "endTimeUnixNano", "end_time_unix_nano"),
    )
    received.spans.append(
        Span(
            trace_id=trace_id,
            span_id=span_id,
            parent_id=parent_id if is_id(parent_id, 16) else "",
            name=str(span.get("name") or ""),
            start=start,
            end=end,
            attributes=_attributes(span),
            events=tuple(Event(str(event.get("name") or ""), _attributes(event)) for event in _objects(span, "events")),
            remote=remote_of(_integer(span, "flags")),
            dropped=_integer(span, "droppedAttributesCount", "dropped_attributes_count"),
            scope=scope,
            failed=_integer(status, "code") == FAILED or status.get("code") == "STATUS_CODE_ERROR",
            resource=resource,
        )
    )


def _objects(parent: dict[str, object], *names: str) -> Iterator[dict[str, object]]:
    for name in names:
        value = parent.get(name)
        if value is None:
            continue
        if not isinstance(value, list):
            raise RefusedError(400, f"{name} must be a list")
        for item in value:
            if not isinstance(item, dict):
                raise RefusedError(400, f"{name} must be a list of objects")
            yield item
        return


def _object(parent: dict[str, object], name: str) -> dict[str, object]:
    value = parent.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise RefusedError(400, f"{name} must be an object")
    return value


def _hex(span: dict[str, object], *names: str) -> str:
    value = next((span[name] for name in names if span.get(name) is not None), "")
    return value.lower() if isinstance(value, str) else ""


def _integer(parent: dict[str, object], *names: str) -> int:
    """An integer that may be written as text; 0 if it is missing or no integer. Negative ones are invalid here."""
    value = _signed(next((parent[name] for name in names if parent.get(name) is not None), 0))
    return 0 if value is None or isinstance(value, bool) else max(0, value)


def _attributes(parent: dict[str, object]) -> dict[str, object]:
    attributes = {}
    for pair in _objects(parent, "attributes"):
        key, value = pair.get("key"), _value(pair.get("value"), MAX_VALUE_DEPTH)
        if isinstance(key, str) and is_wanted(key) and value is not None:
            attributes[key] = value
    return attributes


def _value(value: object, depth: int) -> object:  # noqa: PLR0911 - any value, one return for each kind
    """The value of an AnyValue; None for one that is empty, binary, or nested too deeply."""
    if not isinstance(value, dict) or depth == 0:
        return None
    for kind, part in value.items():
        name = kind.replace("_v", "V")
        if name in ("stringValue", "boolValue"):
            return part if isinstance(part, (str, bool)) else None
        if name == "doubleValue":
            return part if isinstance(part, (int, float)) else None
        if name == "intValue":
            return _signed(part)
        if name == "arrayValue":
            values = part.get("values") if isinstance(part, dict) else None
            return without_vectors([_value(item, depth - 1) for item in values]) if isinstance(values, list) else []
        if name == "kvlistValue":
            pairs = part.get("values") if isinstance(part, dict) else None
            return {
                item["key"]: _value(item.get("value"), depth - 1)
                for item in (pairs if isinstance(pairs, list) else ())
                if isinstance(item, dict) and isinstance(item.get("key"), str)
            }
    return None


def _signed(part: object) -> int | None:
    if isinstance(part, str):
        digits = part.removeprefix("-")
        if not (digits.isdecimal() and digits.isascii() and len(digits) <= _MAX_DIGITS):
            return None
        part = int(part)
    return part if isinstance(part, int) and -(1 << 63) <= part < 1 << 63 else None
