"""Serves the demo service over HTTP, on the loopback interface only."""

import json
import sys
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import socket
from threading import Thread
from urllib.parse import parse_qs, urlsplit

from ragwatch.demo.service import DEFAULT_K, RagService, Reply
from ragwatch.errors import RagwatchError

LOOPBACK = "127.0.0.1"
_MAX_BODY_BYTES = 65_536
_MAX_HITS = 50


class BadRequestError(Exception):
    """The request is invalid; the message says what to send."""


class Endpoint:
    """`POST /ask`, `GET|POST /search` and `GET /`, served from a background thread; port 0 is any free one."""

    def __init__(self, service: RagService, port: int = 0) -> None:
        try:
            self._server = _Server(service, port)
        except OSError as error:
            raise RagwatchError(f"the demo service cannot listen on {LOOPBACK}:{port}: {error.strerror}") from error
        self._thread = Thread(target=self._server.serve_forever, args=(0.05,), name="demo-endpoint", daemon=True)

    @property
    def address(self) -> str:
        """URL without a path."""
        return f"http://{LOOPBACK}:{self._server.server_port}"

    def start(self) -> None:
        """Starts the server thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stops listening after the requests in progress."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # an open keep-alive connection must not delay the shutdown

    def __init__(self, service: RagService, port: int) -> None:
        self.service = service
        super().__init__((LOOPBACK, port), _Handler)

    def handle_error(self, request: socket | tuple[bytes, socket], client_address: object) -> None:
        """Ignores clients that disconnect before the response."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    timeout = 30
    disable_nagle_algorithm = True  # header and body are two writes; a delayed acknowledgement between them costs 40 ms

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if url.path == "/":
            self._send(
                HTTPStatus.OK, b"ragwatch demo service: POST /ask, GET /search?q=\n", "text/plain; charset=utf-8"
            )
        elif url.path == "/search":
            parameters = {name: values[-1] for name, values in parse_qs(url.query).items()}
            self._answer(lambda: self._search({"query": parameters.get("q"), "k": parameters.get("k", DEFAULT_K)}))
        else:
            self._not_found()

    def do_POST(self) -> None:
        path = urlsplit(self.path).path
        if path == "/ask":
            self._answer(lambda: self._ask(self._body()))
        elif path == "/search":
            self._answer(lambda: self._search(self._body()))
        else:
            self._not_found()

    def log_message(self, *_: object) -> None:
        """Omits the access log: the terminal shows a table."""

    def _not_found(self) -> None:
        self.close_connection = True  # a body may be unread
        self._json(HTTPStatus.NOT_FOUND, {"error": f"there is no {self.command} {self.path}"})

    def _answer(self, handle: Callable[[], Mapping[str, object]]) -> None:
        try:
            reply = handle()
        except BadRequestError as error:
            self.close_connection = True  # part of the body may be unread
            self._json(HTTPStatus.BAD_REQUEST, {"error": str(error)})
        except OSError as error:  # answers that cannot be logged are not sent
            self._json(HTTPStatus.INTERNAL_SERVER_ERROR, {"error": f"cannot write the log: {error.strerror}"})
        else:
            self._json(HTTPStatus.OK, reply)

    def _ask(self, body: Mapping[str, object]) -> Reply:
        route = body.get("route")
        return self.server.service.ask(_text(body, "question"), route if isinstance(route, str) else None)

    def _search(self, body: Mapping[str, object]) -> Mapping[str, object]:
        query, k = _text(body, "query"), str(body.get("k", DEFAULT_K))
        if not k.isdecimal() or not 1 <= int(k) <= _MAX_HITS:
            raise BadRequestError(f"k must be a number from 1 to {_MAX_HITS}")
        hits = self.server.service.search(query, int(k))
        return {"query": query, "hits": [{"id": hit.id, "text": hit.text, "score": hit.score} for hit in hits]}

    def _body(self) -> Mapping[str, object]:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > _MAX_BODY_BYTES:
            raise BadRequestError(f"send a JSON object of at most {_MAX_BODY_BYTES} bytes, with its Content-Length")
        try:
            body = json.loads(self.rfile.read(int(length)))
        except ValueError as error:
            raise BadRequestError(f"the body is not JSON: {error}") from error
        if not isinstance(body, dict):
            raise BadRequestError("the body must be a JSON object")
        return body

    def _json(self, status: HTTPStatus, reply: object) -> None:
        self._send(status, json.dumps(reply).encode(), "application/json")

    def _send(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _text(body: Mapping[str, object], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str) or not value.strip():
        raise BadRequestError(f"{name} must be a non-empty string")
    return value
