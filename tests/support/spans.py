"""Spans and export requests as SDKs send them, from short descriptions."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from ragwatch.formats.traces.span import Event, Span
from ragwatch.ports.sources import IncomingRequest

TRACE = "0af7651916cd43dd8448eb211c80319c"
START = 1_795_223_809_000_000_000
RESOURCE = {"service.name": "shop", "telemetry.sdk.language": "python"}
PROTOBUF, JSON = "application/x-protobuf", "application/json"


def span_id(name: str) -> str:
    """The id of a span, from its name."""
    return blake2b(name.encode(), digest_size=8).hexdigest()


def a_span(name: str, parent: str = "", at: int = 0, end: int | None = None, **parts: Any) -> Span:
    """A span that begins and ends so many milliseconds after the trace; `attributes` and others by name."""
    whole = {"attributes": {}, "remote": False if parent else None, "resource": RESOURCE} | parts
    whole["events"] = tuple(Event(*one) for one in whole.pop("events", ()))
    last = at + 1 if end is None else end
    return Span(
        whole.pop("trace_id", TRACE),
        span_id(name),
        span_id(parent) if parent else "",
        name,
        START + at * 1_000_000,
        START + last * 1_000_000,
        **whole,
    )


def flat(prefix: str, items: Sequence[Mapping[str, Any]], inner: str = "") -> dict[str, Any]:
    """A list as OpenInference flattens it to keys."""
    return {f"{prefix}.{rank}.{inner}{key}": value for rank, item in enumerate(items) for key, value in item.items()}


def documents(*texts: str, prefix: str = "retrieval.documents") -> dict[str, Any]:
    """Documents d0, d1 ... with these texts, as OpenInference sends them."""
    items = [{"id": f"d{rank}", "content": text, "score": 1.0 - rank / 10} for rank, text in enumerate(texts)]
    return flat(prefix, items, "document.")


def said(prefix: str, *messages: tuple[str, str]) -> dict[str, Any]:
    """Messages as OpenInference sends them."""
    return flat(prefix, [{"role": role, "content": text} for role, text in messages], "message.")


def _value(value: object) -> AnyValue:
    encoded = AnyValue()
    if isinstance(value, bool):
        encoded.bool_value = value
    elif isinstance(value, str):
        encoded.string_value = value
    elif isinstance(value, int):
        encoded.int_value = value
    elif isinstance(value, float):
        encoded.double_value = value
    elif isinstance(value, bytes):
        encoded.bytes_value = value
    elif isinstance(value, list):
        encoded.array_value.values.extend(map(_value, value))
        encoded.array_value.SetInParent()
    elif isinstance(value, dict):
        encoded.kvlist_value.SetInParent()
        for key, inner in value.items():
            encoded.kvlist_value.values.add(key=key).value.CopyFrom(_value(inner))
    return encoded


def export_request(spans: Iterable[Span]) -> ExportTraceServiceRequest:
    """The export request of these spans."""
    request = ExportTraceServiceRequest()
    for span in spans:
        resource = request.resource_spans.add()
        for key, value in span.resource.items():
            resource.resource.attributes.add(key=key).value.CopyFrom(_value(value))
        scope = resource.scope_spans.add()
        scope.scope.name = span.scope
        encoded = scope.spans.add(
            trace_id=bytes.fromhex(span.trace_id),
            span_id=bytes.fromhex(span.span_id),
            parent_span_id=bytes.fromhex(span.parent_id),
            name=span.name,
            start_time_unix_nano=span.start,
            end_time_unix_nano=span.end,
            dropped_attributes_count=span.dropped,
            flags={None: 0, False: 0x100, True: 0x300}[span.remote],
        )
        encoded.status.code = Status.STATUS_CODE_ERROR if span.failed else Status.STATUS_CODE_OK
        for key, value in span.attributes.items():
            encoded.attributes.add(key=key).value.CopyFrom(_value(value))
        for event in span.events:
            written = encoded.events.add(name=event.name)
            for key, value in event.attributes.items():
                written.attributes.add(key=key).value.CopyFrom(_value(value))
    return request


def as_protobuf(spans: Iterable[Span]) -> bytes:
    """The body of an export request in protobuf."""
    return export_request(spans).SerializeToString()


def as_json(spans: Iterable[Span]) -> bytes:
    """The body of an export request in strict OTLP/JSON."""
    return json_of(export_request(spans))


def json_of(message: ExportTraceServiceRequest) -> bytes:
    """A request in strict OTLP/JSON: ids in hexadecimal, enumerations as numbers."""
    request = MessageToDict(message, use_integers_for_enums=True)
    for resource in request.get("resourceSpans", ()):
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for key in ("traceId", "spanId", "parentSpanId"):
                    if span.get(key):
                        span[key] = base64.b64decode(span[key]).hex()
    return json.dumps(request).encode()


def single_spans(message: ExportTraceServiceRequest, trace_id: bytes) -> list[ExportTraceServiceRequest]:
    """One request for each span of a request, as spans of another trace."""
    requests = []
    for resource in message.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                request = ExportTraceServiceRequest()
                into = request.resource_spans.add(resource=resource.resource).scope_spans.add(scope=scope.scope)
                into.spans.add().CopyFrom(span)
                into.spans[0].trace_id = trace_id
                requests.append(request)
    return requests


def joined(requests: Iterable[ExportTraceServiceRequest]) -> ExportTraceServiceRequest:
    """One request with the spans of several."""
    whole = ExportTraceServiceRequest()
    for request in requests:
        whole.MergeFrom(request)
    return whole


def a_request(body: bytes, kind: str = PROTOBUF, **headers: str) -> IncomingRequest:
    """A POST of this body; headers by name with underscores."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}

    async def chunks() -> AsyncIterator[bytes]:
        for begin in range(0, len(body), 1 << 16):
            yield body[begin : begin + (1 << 16)]

    return IncomingRequest("/v1/traces", {"content-type": kind, "content-length": str(len(body))} | named, chunks())
