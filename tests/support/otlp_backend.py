"""A backend that receives OTLP over HTTP on loopback, with faults in the order that a test gives."""

from __future__ import annotations

import gzip
import socket
import struct
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span


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
