"""What a traced service sets up: the OpenTelemetry SDK with its batch processor and an OTLP exporter.

Run with the Python of `.venv/tracers`, which knows nothing of ragwatch.
"""

import sys

import grpc
from opentelemetry.exporter.otlp.proto import http
from opentelemetry.exporter.otlp.proto.grpc import trace_exporter as over_grpc
from opentelemetry.exporter.otlp.proto.http import trace_exporter as over_http
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

QUESTION = "What is the capital of France?"
TEXTS = ("Paris is the capital of France.\n\nIt lies on the Seine.", "Lyon is a city in France.")


def provider() -> TracerProvider:
    """A provider of tracers that exports to the address in the first argument, in batches of two spans."""
    made = TracerProvider(resource=Resource.create({"service.name": "shop"}))
    made.add_span_processor(
        BatchSpanProcessor(exporter(sys.argv[1]), schedule_delay_millis=50, max_export_batch_size=2)
    )
    return made


def exporter(address: str) -> SpanExporter:
    """The exporter over HTTP for a URL, over gRPC for `host:port`; compressed."""
    if address.startswith("http"):
        return over_http.OTLPSpanExporter(endpoint=address, compression=http.Compression.Gzip)
    return over_grpc.OTLPSpanExporter(endpoint=address, insecure=True, compression=grpc.Compression.Gzip)


def flush(made: TracerProvider) -> None:
    """Send what is left; an error if ragwatch does not take it."""
    if not made.force_flush():
        raise SystemExit("the exporter could not send its spans")
    made.shutdown()
