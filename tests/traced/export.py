"""What a traced service sets up: the OpenTelemetry SDK with its batch processor and the OTLP/HTTP exporter.

Run with the Python of `.venv/tracers`, which knows nothing of ragwatch.
"""

from __future__ import annotations

import sys

from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

QUESTION = "What is the capital of France?"
TEXTS = ("Paris is the capital of France.\n\nIt lies on the Seine.", "Lyon is a city in France.")


def provider() -> TracerProvider:
    """A provider of tracers that exports to the address in the first argument, in batches of two spans."""
    made = TracerProvider(resource=Resource.create({"service.name": "shop"}))
    exporter = OTLPSpanExporter(endpoint=sys.argv[1], compression=Compression.Gzip)
    made.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=50, max_export_batch_size=2))
    return made


def flush(made: TracerProvider) -> None:
    """Send what is left; an error if ragwatch does not take it."""
    if not made.force_flush():
        raise SystemExit("the exporter could not send its spans")
    made.shutdown()
