"""A backend that receives OTLP over HTTP on loopback, with faults in the order that a test gives."""

import gzip
import socket
import struct
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from ragwatch.model.quantities import Quantity
from ragwatch.pipeline.export.evaluation import ExportRules, ExportTarget, Signal
from ragwatch.pipeline.export.loop import ExportLoop
from ragwatch.pipeline.export.otlp import OtlpClient
from ragwatch.ports import LoopContext
from ragwatch.statistics.verdict import Verdict
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import EventCount, Telemetry
from support.kit import AT, Clock, a_draw, a_verdict, an_admission, an_unjudged


@dataclass(frozen=True)
class Fault:
    """A reply that is not a plain 200: another status, a body, a hang until the backend is released, or a reset."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    hangs: bool = False
    resets: bool = False


@dataclass(frozen=True)
class Received:
    """A request that arrived."""

    path: str
    headers: Mapping[str, str]
    body: bytes
    accepted: bool


class OtlpBackend:
    """Accepts everything but for the faults, which strike one request each."""

    def __init__(self, faults: Sequence[Fault] = ()) -> None:
        self.faults = list(faults)
        self.received: list[Received] = []
        self.released = threading.Event()
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"backend": self}))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def take(self, path: str, headers: Mapping[str, str], body: bytes) -> Fault:
        """Record a request, and return what strikes it."""
        with self._lock:
            fault = self.faults.pop(0) if self.faults else Fault()
            good = fault.status == 200 and not fault.hangs and not fault.resets
            self.received.append(Received(path, headers, body, good))
        return fault

    def logs(self) -> list[LogRecord]:
        """Log records of all requests that were accepted."""
        requests = [ExportLogsServiceRequest.FromString(one.body) for one in self._accepted("/v1/logs")]
        groups = [group for request in requests for one in request.resource_logs for group in one.scope_logs]
        return [record for group in groups for record in group.log_records]

    def spans(self) -> list[Span]:
        """Spans of all requests that were accepted."""
        requests = [ExportTraceServiceRequest.FromString(one.body) for one in self._accepted("/v1/traces")]
        groups = [group for request in requests for one in request.resource_spans for group in one.scope_spans]
        return [span for group in groups for span in group.spans]

    def close(self) -> None:
        """End."""
        self.released.set()
        self._server.shutdown()
        self._server.server_close()

    def _accepted(self, path: str) -> list[Received]:
        return [one for one in self.received if one.accepted and one.path.endswith(path)]


class _Handler(BaseHTTPRequestHandler):
    backend: OtlpBackend
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """One request."""
        body = gzip.decompress(self.rfile.read(int(self.headers["Content-Length"])))
        fault = self.backend.take(self.path, dict(self.headers), body)
        if fault.hangs:
            self.backend.released.wait()
        if fault.resets or fault.hangs:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            self.connection.close()
            return
        self.send_response(fault.status)
        for name, value in fault.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(fault.body)))
        self.end_headers()
        self.wfile.write(fault.body)

    def finish(self) -> None:
        """End the connection, which may be closed already."""
        try:
            super().finish()
        except (OSError, ValueError):
            return

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def plain(attributes: Sequence[KeyValue]) -> dict[str, Any]:
    """Attributes as a mapping."""
    return {one.key: getattr(one.value, str(one.value.WhichOneof("value"))) for one in attributes}


TRACE, SPAN, ANSWER = "0af7651916cd43dd8448eb211c80319c", "00f067aa0ba902b7", "b7ad6b7169203331"
ONE = ExportRules(default=(Quantity.FAITHFULNESS,))


class Exporting:
    """An export loop on a store, with clocks that are wound by hand."""

    def __init__(self, backend: OtlpBackend | str, store: SqliteStore, telemetry: Telemetry) -> None:
        self.url = backend if isinstance(backend, str) else backend.url
        self.store, self.telemetry = store, telemetry
        self.clock, self.timer = Clock(AT + 60), Clock(1000.0)

    def loop(self, signal: Signal = Signal.LOGS, rules: ExportRules = ONE, **target: Any) -> ExportLoop:
        """A new loop: that of a new process."""
        client = OtlpClient(ExportTarget(self.url, **target), self.clock)
        return ExportLoop(
            signal, rules, LoopContext(self.store, self.telemetry, self.clock), client=client, timer=self.timer
        )

    def settle(self, *verdicts: Verdict) -> None:
        """Store verdicts."""
        self.store.admit(an_admission(*(verdict.draw for verdict in verdicts)))
        assert self.store.settle(verdicts) == len(verdicts)

    async def run(self, *signals: Signal, rules: ExportRules = ONE) -> None:
        """Send all that is there."""
        for signal in signals or (Signal.LOGS,):
            loop = self.loop(signal, rules)
            while await loop.step():
                pass
            await loop.close()

    def counts(self, count: EventCount) -> dict[str, float]:
        """Counters above 0, summed over signals, by the other label."""
        counts: Counter[str] = Counter()
        for (name, labels), n in self.telemetry.counts().items():
            counts[str(labels[-1])] += int(n) if name is count else 0
        return dict(+counts)


def traced(name: str = "r1", verdict: str = "judged", **metadata: Any) -> Verdict:
    """A verdict on an answer with a trace."""
    metadata = {"trace_id": TRACE, "span_id": SPAN} | metadata
    draw = a_draw(name, metadata=metadata)
    return a_verdict(draw) if verdict == "judged" else an_unjudged(draw, verdict)
