"""Traces over gRPC reach the store of the real daemon; hostile calls take little memory; the end is announced."""

import signal
import zlib
from pathlib import Path

import pytest
from functional.daemon import RagwatchProcess, write_config
from support.patience import DEADLINE
from support.spans import a_span, as_protobuf, documents, field, said

grpc = pytest.importorskip("grpc", reason="needs the package grpcio: pip install 'ragwatch-exporter[grpc]'")
METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
SOURCES = "[{kind: otlp, name: traces, grace_seconds: 0.2, grpc: {listen: '127.0.0.1:0'}}]"
TOKEN = "0123456789abcdef"  # noqa: S105 - of a test


def a_trace() -> bytes:
    """One request: a chain that retrieves and answers."""
    kind = "openinference.span.kind"
    question, answer = "Where does the old mill stand?", "The old mill stands by the river."
    return as_protobuf(
        [
            a_span("chain", at=0, end=9, attributes={kind: "CHAIN", "input.value": question, "output.value": answer}),
            a_span("search", "chain", 1, 2, attributes={kind: "RETRIEVER"} | documents("The old mill stands by it.")),
            a_span(
                "model", "chain", 3, 8, attributes={kind: "LLM"} | said("llm.output_messages", ("assistant", answer))
            ),
        ]
    )


def nested(depth: int) -> bytes:
    """A message in a message in a message."""
    body = b""
    for _ in range(depth):
        body = field(1, body)
    return body


@pytest.mark.costly
def test_a_call_becomes_a_sample_and_hostile_ones_take_little_memory(tmp_path: Path) -> None:
    """Bombs, large messages, garbage and wrong tokens have their codes; a trace is judged; the end is told."""
    web = f"{{listen: '127.0.0.1:0', tokens: [{{name: shop, token: {TOKEN}, rights: [ingest]}}], open: [metrics]}}"
    packer = zlib.compressobj(1, wbits=31)
    bomb = b"".join(packer.compress(b" " * (1 << 20)) for _ in range(200)) + packer.flush()
    cases = [
        ("RESOURCE_EXHAUSTED", bomb),
        ("RESOURCE_EXHAUSTED", b"\x0a" * (30 << 20)),
        ("INVALID_ARGUMENT", b"garbage"),
        ("INVALID_ARGUMENT", nested(5_000)),
    ]
    with RagwatchProcess(write_config(tmp_path, sources=SOURCES, web=web)).wait_until_serving() as ragwatch:
        (address,) = (str(event["address"]) for event in ragwatch.log if event.get("source") == "traces")
        with grpc.insecure_channel(address) as channel:
            export = channel.unary_unary(METHOD)

            def code(message: bytes, token: str = TOKEN, compression: object = None) -> str:
                metadata = (("authorization", f"Bearer {token}"),)
                try:
                    export(message, timeout=DEADLINE, metadata=metadata, compression=compression)
                except grpc.RpcError as error:
                    return str(error.code().name)
                return "OK"

            assert code(b"") == "OK"
            before = ragwatch.memory()
            for expected, message in cases:
                assert code(message) == expected
            assert code(a_trace(), token="wrong-" + TOKEN) == "UNAUTHENTICATED"
            assert ragwatch.memory() - before < 50 << 20
            assert code(a_trace(), compression=grpc.Compression.Gzip) == "OK"
            series = ragwatch.wait_for('ragwatch_otlp_requests_total{outcome="assembled",source="traces"}', 1)
            assert series['ragwatch_otlp_spans_total{source="traces"}'] == 3
            assert series['ragwatch_web_refused_requests_total{reason="credentials"}'] == 1
            ragwatch.signal(signal.SIGTERM)
            assert ragwatch.end() == 0
            assert code(a_trace()) == "UNAVAILABLE"
