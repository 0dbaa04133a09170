"""What is received is bounded in memory before anything is built from it, whatever it is; and the daemon ends in time.

Each attack is a small request whose decoded form would take a gigabyte. The peak of the process and what it keeps ten
seconds later are read from the kernel.
"""

import gzip
import http.client
import json
import signal
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path

import pytest
from functional.daemon import RagwatchProcess, write_config
from support.http2 import CONTINUATION, HEADERS, PREFACE, SETTINGS, frame
from support.patience import DEADLINE
from support.spans import JSON, PROTOBUF, field, request_of

PEAK, KEPT = 256 << 20, 160 << 20
MIB = 1 << 20
SOURCES = "[{kind: push, name: app}, {kind: otlp, name: traces, grpc: {listen: '127.0.0.1:0'}}]"
SOME_AND_ALL = pytest.mark.parametrize(
    "number", [pytest.param(1, id="one of each sort"), pytest.param(None, id="all", marks=pytest.mark.slow)]
)
METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
ABSENT_JUDGE = (
    "[{name: llm, kind: openai, model: absent, base_url: 'http://127.0.0.1:9/v1', api_key: unused,"
    " allow_unknown_price: true}]"
)


def a_span(number: int, more: bytes = b"") -> bytes:
    """A span of a trace of its own."""
    return field(2, field(1, number.to_bytes(16, "big")) + field(2, number.to_bytes(8, "big")) + more)


def json_spans(count: int) -> bytes:
    """A request in JSON with many spans."""
    spans = [{"traceId": f"{n:032x}", "spanId": f"{n:016x}"} for n in range(1, count + 1)]
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()


def json_value(value: str) -> bytes:
    """A request in JSON with one span that has one attribute."""
    span = f'{{"traceId":"{1:032x}","spanId":"{1:016x}","attributes":[{{"key":"input.value","value":{value}}}]}}'
    return f'{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{span}]}}]}}]}}'.encode()


OF_JSON: dict[str, Callable[[], tuple[str, bytes]]] = {
    "340,000 empty objects": lambda: ("/v1/samples", b"[" + b"{}," * 339_999 + b"{}]"),
    "340,000 empty objects of feedback": lambda: ("/v1/feedback", b"[" + b"{}," * 339_999 + b"{}]"),
    "lines of nested arrays": lambda: ("/v1/samples", (b'{"a":[' + b"[]," * 300_000 + b"1]}\n") * 8),
    "300,000 spans in JSON": lambda: ("/v1/traces", json_spans(300_000)[: 20 * MIB]),
    "200,000 spans in JSON": lambda: ("/v1/traces", json_spans(200_000)),
    "6 million arrays in JSON": lambda: (
        "/v1/traces",
        json_value('{"arrayValue":{"values":[' + "[]," * 6_000_000 + "1]}}"),
    ),
}
OF_PROTOBUF: dict[str, Callable[[], bytes]] = {
    "300,000 spans": lambda: request_of(b"".join(a_span(n) for n in range(1, 300_001))),
    "9 million empty attributes": lambda: request_of(a_span(1, field(9, b"") * 9_000_000)),
    "5 million array values": lambda: request_of(
        a_span(1, field(9, field(1, b"k") + field(2, field(5, field(1, b"") * 5_000_000))))
    ),
}


def attacks(number: int | None) -> Iterator[tuple[str, str, bytes, str]]:
    """So many attacks over HTTP of each sort: what it is, its path, its body and the type of that."""
    for what, make in islice(OF_JSON.items(), number):
        yield what, *make(), JSON
    for what, encode in islice(OF_PROTOBUF.items(), number):
        yield what, "/v1/traces", encode(), PROTOBUF


def post(address: str, path: str, body: bytes, content_type: str) -> int:
    """Send a compressed body; the status of the reply."""
    host, _, port = address.removeprefix("http://").partition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=DEADLINE)
    try:
        connection.request(
            "POST", path, body, {"Content-Type": content_type, "Content-Encoding": "gzip", "Connection": "close"}
        )
        return connection.getresponse().status
    finally:
        connection.close()


def hold_memory(ragwatch: RagwatchProcess, attack: Callable[[], object], what: str, times: int = 8) -> list[object]:
    """Run an attack eight times at once, and check what the process takes and keeps."""
    Path(f"/proc/{ragwatch.process.pid}/clear_refs").write_text("5")  # the peak begins here
    with ThreadPoolExecutor(times) as pool:
        replies = [reply.result() for reply in [pool.submit(attack) for _ in range(times)]]
    deadline, peak = time.monotonic() + 10, ragwatch.memory()
    while (kept := ragwatch.memory("VmRSS")) > KEPT and time.monotonic() < deadline:
        time.sleep(0.2)
    print(f"{what}: peak {peak / MIB:.0f} MiB, kept {kept / MIB:.0f} MiB, replies {sorted(set(map(str, replies)))}")
    assert peak <= PEAK, f"{what}: peak of {peak / MIB:.0f} MiB"
    assert kept <= KEPT, f"{what}: keeps {kept / MIB:.0f} MiB"
    return replies


def ends_in_time(ragwatch: RagwatchProcess) -> None:
    """SIGTERM ends the daemon with 0."""
    ragwatch.signal(signal.SIGTERM)
    assert ragwatch.end() == 0


@pytest.mark.costly
@SOME_AND_ALL
def test_small_requests_take_no_gigabytes_over_http(tmp_path: Path, number: int | None) -> None:
    """Every attack over HTTP, eight at a time, is refused with 413 and its memory is given back."""
    config = write_config(tmp_path, sources=SOURCES)
    with RagwatchProcess(config, forked=False).wait_until_serving() as ragwatch:
        for what, path, body, kind in attacks(number):
            attack = partial(post, ragwatch.address, path, gzip.compress(body, 1), kind)
            replies = hold_memory(ragwatch, attack, what)
            assert set(replies) <= {413, 429, 503}, what
            assert 413 in replies
        ends_in_time(ragwatch)


@pytest.mark.costly
@SOME_AND_ALL
def test_small_requests_take_no_gigabytes_over_grpc(tmp_path: Path, number: int | None) -> None:
    """The same over gRPC, where the code is RESOURCE_EXHAUSTED."""
    grpc = pytest.importorskip("grpc", reason="needs the package grpcio")
    config = write_config(tmp_path, sources=SOURCES)
    with RagwatchProcess(config, forked=False).wait_until_serving() as ragwatch:
        address = next(str(line["address"]) for line in ragwatch.log if line.get("source") == "traces")
        for what, encode in islice(OF_PROTOBUF.items(), number):
            body = encode()

            def call(body: bytes = body) -> str:
                with grpc.insecure_channel(address, compression=grpc.Compression.Gzip) as channel:
                    try:
                        channel.unary_unary(METHOD)(body, timeout=DEADLINE)
                    except grpc.RpcError as error:
                        return str(error.code().name)
                return "OK"

            replies = hold_memory(ragwatch, call, what)
            assert set(replies) <= {"RESOURCE_EXHAUSTED", "UNAVAILABLE"}, what
            assert "RESOURCE_EXHAUSTED" in replies
        ends_in_time(ragwatch)


def flood(address: str, header: bytes) -> str:
    """Send a block of headers that does not end, up to 100 MB."""
    host, _, port = address.rpartition(":")
    headers = header * (16_000 // len(header))
    with socket.create_connection((host, int(port)), timeout=DEADLINE) as client:
        try:
            client.sendall(PREFACE + frame(SETTINGS, b"", 0) + frame(HEADERS, headers))
            for _ in range(100_000_000 // len(headers)):
                client.sendall(frame(CONTINUATION, headers))
        except ConnectionError:
            return "hung up on"
    return "received"


@pytest.mark.parametrize("header", [b"\x10\x03abc\x64" + b"v" * 100, b"\x10\x01a\x00"], ids=["long", "short"])
def test_x22_a_flood_of_headers_is_hung_up_on_over_grpc(tmp_path: Path, header: bytes) -> None:
    """The library would keep all of them; other clients are answered."""
    grpc = pytest.importorskip("grpc", reason="needs the package grpcio")
    config = write_config(tmp_path, sources=SOURCES)
    with RagwatchProcess(config, forked=False).wait_until_serving() as ragwatch:
        address = next(str(line["address"]) for line in ragwatch.log if line.get("source") == "traces")
        assert set(hold_memory(ragwatch, partial(flood, address, header), "headers")) == {"hung up on"}
        with grpc.insecure_channel(address) as channel:
            assert channel.unary_unary(METHOD)(b"\x0a\x00", timeout=DEADLINE) == b""
        ends_in_time(ragwatch)


def test_clients_that_wait_behind_a_judge_are_counted_by_what_they_take(tmp_path: Path) -> None:
    """40 clients with 10,000 small objects each, while no judge answers."""
    body = json.dumps([{"a": 1}] * 10_000).encode()
    packed = gzip.compress(body, 1)
    config = write_config(tmp_path, sources=SOURCES, judges=ABSENT_JUDGE)
    with RagwatchProcess(config, forked=False).wait_until_serving() as ragwatch:
        attack = partial(post, ragwatch.address, "/v1/samples", packed, JSON)
        replies = hold_memory(ragwatch, attack, "40 clients", 40)
        assert set(replies) <= {400, 429, 503}
        ends_in_time(ragwatch)
