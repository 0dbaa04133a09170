"""Requests: what is decoded, what is refused with which status, and that nothing hostile takes memory or time."""

import gzip
import json
import resource
import time
import zlib
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)
from support.spans import JSON, PROTOBUF, a_request, a_span, as_json, as_protobuf, field, request_of

from ragwatch.ports.sources import Reply
from ragwatch.sources.otlp import json_request, protobuf_request
from ragwatch.sources.otlp.options import Options
from ragwatch.sources.otlp.protobuf_request import UNCOUNTED_BYTES, check_size
from ragwatch.sources.otlp.request import MAX_SPANS, refused
from ragwatch.sources.otlp.source import OtlpSource
from ragwatch.sources.requests import Body, ByteBudget, RefusedError

MIB = 1 << 20
VALUES = {"text": "a", "true": True, "int": -5, "float": 0.5, "list": ["a", 1], "map": {"a": {"b": "c"}}}


def unpacked(sent: bytes, encoding: str, limit: int) -> bytes:
    """A body without its compression."""
    return Body(a_request(b"", content_encoding=encoding), limit, ByteBudget(limit), "send less").unpacked(sent)


async def reply_to(body: bytes, kind: str = PROTOBUF, **headers: str) -> Reply:
    """The reply to a request whose spans are never stored."""
    source = OtlpSource(Options(name="traces", max_body_bytes=MIB))
    return await source.handlers["/v1/traces"](a_request(body, kind, **headers))


def message_in(reply: Reply) -> str:
    """The message of a google.rpc.Status, in the reply's own encoding."""
    if reply.content_type == JSON:
        return str(json.loads(reply.body)["message"])
    status = ExportTracePartialSuccess.FromString(reply.body)  # has the same fields: a number and a text
    assert status.rejected_spans > 0
    return str(status.error_message)


def test_both_encodings_mean_the_same() -> None:
    """Every field and every type of value; values of no use are left out."""
    left_out = {"empty": None, "embedding.embeddings.0.embedding.vector": [0.5], "vector": [0.5] * 100}
    span = a_span(
        "root",
        attributes=VALUES | left_out,
        events=[("event", {"a": "b"})],
        remote=True,
        dropped=3,
        scope="library",
        failed=True,
    )
    child = a_span("child", "root")
    expected = [span._replace(attributes=VALUES), child]
    for spans_of, encode in ((protobuf_request.spans_of, as_protobuf), (json_request.spans_of, as_json)):
        received = spans_of(encode([span, child]))
        assert (received.spans, received.rejected) == (expected, 0)


def test_a_text_that_was_cut_within_an_emoji_costs_no_other_span() -> None:
    """JavaScript cuts texts between the halves of a surrogate pair, and writes the half as an escape."""
    spans = [
        {"traceId": "ab" * 16, "spanId": f"{number:016x}", "attributes": [{"key": "a", "value": {"stringValue": "@"}}]}
        for number in range(1, 4)
    ]
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})
    received = json_request.spans_of(body.replace("@", r"cut \ud83d", 1).replace("@", r"\ud83d\ude00", 1).encode())
    assert [span.attributes["a"] for span in received.spans] == ["cut \ufffd", "\U0001f600", "@"]


def test_json_is_read_leniently() -> None:
    """Unknown fields are ignored, 64-bit integers may be numbers or text, and upper-case ids are the same ids."""
    span: dict[str, Any] = {"traceId": "AB" * 16, "spanId": "CD" * 8, "parentSpanId": "", "flags": "768", "new": [1]}
    span |= {"startTimeUnixNano": 5, "endTimeUnixNano": "7", "droppedAttributesCount": -1, "status": None}
    span["attributes"] = [
        {"key": "a", "value": {"intValue": "12", "x": 1}},
        {"key": "b", "value": {"intValue": "1" * 30}},
        {"key": "c", "value": {"doubleValue": "NaN"}},
        {"key": "d", "value": {"arrayValue": {}}},
        {"key": "e", "value": {"kvlistValue": {"values": [{"key": "k", "value": {"stringValue": "v"}}, 3]}}},
        {"key": "f", "value": {"stringValue": 3}},
        {"key": 4, "value": {"stringValue": "x"}},
        {"key": "g", "value": {"bytesValue": "AA=="}},
    ]
    body = {"resourceSpans": [{"resource": {}, "scopeSpans": [{"spans": [span]}], "z": {}}], "unknown": 1}
    (read,) = json_request.spans_of(json.dumps(body).encode()).spans
    assert (read.trace_id, read.span_id, read.remote, read.start, read.end) == ("ab" * 16, "cd" * 8, True, 5, 7)
    assert (read.dropped, read.attributes) == (0, {"a": 12, "d": [], "e": {"k": "v"}})


@pytest.mark.parametrize("kind", [PROTOBUF, JSON])
async def test_invalid_spans_are_a_partial_success(kind: str) -> None:
    """Spans without valid ids are rejected and counted in the reply; the client must not send them again."""
    spans = [a_span("a", trace_id="0" * 32), a_span("b", trace_id="1" * 30)]
    reply = await reply_to((as_protobuf if kind == PROTOBUF else as_json)(spans), f"{kind}; charset=utf-8")
    assert (reply.status, reply.content_type) == (200, kind)
    if kind == PROTOBUF:
        partial = ExportTraceServiceResponse.FromString(reply.body).partial_success
        assert (partial.rejected_spans, "trace_id" in partial.error_message) == (2, True)
    else:
        assert json.loads(reply.body)["partialSuccess"]["rejectedSpans"] == "2"


@pytest.mark.parametrize(("kind", "body"), [(PROTOBUF, b""), (JSON, b"{}"), (JSON, b"")])
async def test_an_empty_request_succeeds(kind: str, body: bytes) -> None:
    """A request without spans is answered as success, in its encoding."""
    reply = await reply_to(body, kind)
    assert (reply.status, reply.content_type, reply.body) == (200, kind, b"" if kind == PROTOBUF else b"{}")


DEEP = b'{"resourceSpans":' + b"[" * 100_000
NESTED = b'{"resourceSpans":[{"scopeSpans":[{"spans":[' + b'{"a":' * 5_000
FIELDS = ({"resourceSpans": [3]}, {"resourceSpans": {}}, {"resourceSpans": [{"scopeSpans": 1}]},
          {"resourceSpans": [{"resource": [], "scopeSpans": []}]}, [1])  # fmt: skip


@pytest.mark.parametrize(
    ("status", "kind", "body", "headers"),
    [
        (400, PROTOBUF, b"garbage, not protobuf", {}),
        (400, PROTOBUF, as_protobuf([a_span("a")])[:-3], {}),
        (400, JSON, b"{", {}),
        (400, JSON, b"\xff\xfe", {}),
        (400, JSON, DEEP, {}),
        (400, JSON, NESTED, {}),
        *((400, JSON, json.dumps(fields).encode(), {}) for fields in FIELDS),
        (400, JSON, b"not gzip", {"content_encoding": "gzip"}),
        (400, JSON, b"not zstd", {"content_encoding": "zstd"}),
        (413, JSON, b" " * (MIB + 1), {}),
        (413, JSON, b"{}", {"content_length": str(10**12)}),
        (413, JSON, b" " * (MIB + 1), {"content_length": "x"}),
        (415, "text/plain", b"{}", {}),
        (415, "", b"{}", {}),
        (415, JSON, b"{}", {"content_encoding": "br"}),
    ],
)
async def test_what_is_refused(status: int, kind: str, body: bytes, headers: dict[str, str]) -> None:
    """Each with its status and a message, none to be sent again."""
    reply = await reply_to(body, kind, **headers)
    assert (reply.status, reply.content_type) == (status, kind if kind == PROTOBUF else JSON)
    assert message_in(reply)
    assert "Retry-After" not in reply.headers


def test_when_to_send_again_is_said_in_protobuf_too() -> None:
    """A google.rpc.Status has RetryInfo where a client of gRPC may send again, and none where it may not."""
    full = refused(PROTOBUF, RefusedError(429, "full", 300)).body
    retry_info = b"\x0a\x28type.googleapis.com/google.rpc.RetryInfo\x12\x05\x0a\x03\x08\xac\x02"  # Any, Duration, 300 s
    assert full == b"\x08\x08\x12\x04full\x1a" + bytes([len(retry_info)]) + retry_info
    assert b"RetryInfo" not in refused(PROTOBUF, RefusedError(413, "large")).body


@pytest.mark.parametrize("encoding", ["", "identity", "gzip", "x-gzip", "deflate", "zstd", " GZIP "])
def test_compression(encoding: str) -> None:
    """What was compressed is the same afterwards; gzip may have several members, zstd several frames."""
    body = as_protobuf([a_span("a")])
    compress = {"gzip": gzip.compress, "x-gzip": gzip.compress, "deflate": zlib.compress}
    compress["zstd"] = zstandard.ZstdCompressor().compress
    sent = compress[name](body) * 2 if (name := encoding.strip().lower()) in compress else body * 2
    assert unpacked(sent, encoding, MIB) == body * 2


@pytest.mark.costly
@pytest.mark.parametrize("encoding", ["gzip", "deflate", "zstd"])
def test_many_empty_members_take_linear_time(encoding: str) -> None:
    """What is behind a member is not copied for each: of four times as many, unpacking takes no ten times as long."""
    compress = {"gzip": gzip.compress, "deflate": zlib.compress, "zstd": zstandard.ZstdCompressor().compress}[encoding]
    empty = compress(b"")

    def seconds(size: int) -> float:
        body = empty * (size // len(empty))
        start = time.process_time()
        assert unpacked(body, encoding, MIB) == b""
        return time.process_time() - start

    small = min(seconds(MIB // 4) for _ in range(3))
    assert seconds(MIB) < 10 * small


@pytest.mark.costly
@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
async def test_a_bomb_takes_no_memory(encoding: str) -> None:
    """100 MB in some hundred KB are refused with 413, without unpacking them: memory does not grow by 50 MiB."""
    zeros = b" " * MIB
    if encoding == "gzip":
        packer = zlib.compressobj(1, wbits=31)
        bomb = b"".join(packer.compress(zeros) for _ in range(100)) + packer.flush()
    else:
        writer = zstandard.ZstdCompressor().compressobj()
        bomb = b"".join(writer.compress(zeros) for _ in range(100)) + writer.flush()
    source = OtlpSource(Options(name="traces"))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    reply = await source.handlers["/v1/traces"](a_request(bomb, JSON, content_encoding=encoding))
    assert reply.status == 413
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 * 1024


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_the_limit_holds_for_what_is_unpacked(encoding: str) -> None:
    """One byte more than the limit is refused, as many as the limit are not."""
    compress = gzip.compress if encoding == "gzip" else zstandard.ZstdCompressor().compress
    assert len(unpacked(compress(b"x" * 1000), encoding, 1000)) == 1000
    with pytest.raises(RefusedError, match="max_body_bytes") as caught:
        unpacked(compress(b"x" * 1001), encoding, 1000)
    assert caught.value.status == 413


SPAN = b"\x0a\x10" + bytes(15) + b"\x01\x12\x08" + bytes(7) + b"\x01"


@pytest.mark.parametrize(
    ("spans", "limit"),
    [
        (field(2, SPAN) * (MAX_SPANS + 1), "50000 spans"),
        pytest.param(field(2, SPAN + field(9, b"") * 700_000), "96 MiB", marks=pytest.mark.costly),
        pytest.param(
            field(2, SPAN + field(11, field(3, field(2, field(5, field(1, b"") * 700_000))))),
            "96 MiB",
            marks=pytest.mark.costly,
        ),
        (field(2, SPAN + b"\x98\x01\x01" * 700_000), "96 MiB"),
        (field(2, SPAN + b"\x48\x01" * 700_000), "96 MiB"),
        pytest.param(field(2, SPAN + b"\x30\x01" * 2_100_000), "96 MiB", marks=pytest.mark.costly),
    ],
    ids=["spans", "attributes", "values of an array in an event", "unknown fields", "no messages", "known fields"],
)
def test_more_than_a_limit_is_refused(spans: bytes, limit: str) -> None:
    """With 413 and the name of the limit."""
    with pytest.raises(RefusedError, match=limit) as caught:
        protobuf_request.spans_of(request_of(spans))
    assert caught.value.status == 413


def test_long_texts_are_no_messages() -> None:
    """A text of a megabyte counts as one value, whatever bytes it has. Spans of clients have room for many more."""
    attribute = field(9, field(1, b"input.value") + field(2, field(1, b"\x4a\x00" * UNCOUNTED_BYTES)))
    assert len(protobuf_request.spans_of(request_of(field(2, SPAN + attribute))).spans) == 1


@given(st.binary(max_size=40))
def test_damaged_requests_end_the_walk(noise: bytes) -> None:
    """Whatever stands behind a large field, the walk ends without an error of its own."""
    check_size(field(7, bytes(UNCOUNTED_BYTES)) + noise)
