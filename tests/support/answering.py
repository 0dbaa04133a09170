"""A real HTTP server on the loopback interface that replies as a test says, and records what it was asked."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit


class Asked(NamedTuple):
    """A request: its path, the parameters of its query, its headers and its body as JSON."""

    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any


Reply = tuple[int, Any, Mapping[str, str]]
"""Status, body (bytes, or what becomes JSON) and headers."""


@contextmanager
def answering(
    reply: Callable[[Asked], Reply], context: ssl.SSLContext | None = None
) -> Iterator[tuple[str, list[Asked]]]:
    """Yield the address of the server, and the requests so far."""
    requests: list[Asked] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            parts = urlsplit(self.path)
            query = dict(parse_qsl(parts.query))
            requests.append(Asked(parts.path, query, dict(self.headers), json.loads(body) if body else None))
            status, content, headers = reply(requests[-1])
            content = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            for name, value in {"content-type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            with suppress(ConnectionError):  # a client that has seen enough hangs up
                self.wfile.write(content)

        do_GET = do_POST = _answer  # noqa: N815 - names that the library looks for

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"{'http' if context is None else 'https'}://127.0.0.1:{server.server_port}", requests
        finally:
            server.shutdown()
            thread.join()
