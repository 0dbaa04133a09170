"""A real HTTP server on the loopback interface that replies as a test says, and records what it was asked."""

import json
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit


class Asked(NamedTuple):
    """A request: its path, the parameters of its query, its headers and its body."""

    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    content: bytes  # the body as it came

    @property
    def body(self) -> Any:
        """It as JSON; None if it is none."""
        try:
            return json.loads(self.content)
        except ValueError:
            return None


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
            content = self.rfile.read(int(self.headers.get("content-length", 0)))
            parts = urlsplit(self.path)
            query = dict(parse_qsl(parts.query))
            requests.append(Asked(parts.path, query, dict(self.headers), content))
            status, said, headers = reply(requests[-1])
            body = said if isinstance(said, bytes) else json.dumps(said).encode()
            self.send_response(status)
            named = {name.lower(): value for name, value in headers.items()}
            for name, value in {"content-type": "application/json", "content-length": str(len(body)), **named}.items():
                self.send_header(name, value)
            self.end_headers()
            with suppress(OSError):  # who asked may have seen enough
                self.wfile.write(body)

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


@contextmanager
def dripping(head: bytes) -> Iterator[str]:
    """The address of a server that answers one request with this, and a byte at a time, for at most five seconds."""

    def drip(listener: socket.socket) -> None:
        with suppress(OSError), listener.accept()[0] as connection:
            connection.recv(65536)
            connection.sendall(head)
            for _ in range(50):
                connection.sendall(b"x")
                time.sleep(0.1)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = Thread(target=drip, args=(listener,))
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread.join()
