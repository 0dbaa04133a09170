"""`ragwatch acknowledge`: sends a request to a running ragwatch and prints its reply or why there is none."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

import pytest
from click.testing import CliRunner, Result

from ragwatch.commands import cli
from ragwatch.errors import ConfigError, ExternalError


class Listener(ThreadingHTTPServer):
    """A loopback server that records its requests; it refuses one route."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[tuple[str, Mapping[str, str]]] = []

    @property
    def url(self) -> str:
        """Its base URL."""
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Listener

    def do_POST(self) -> None:
        """Record the request and reply."""
        parts = urlsplit(self.path)
        parameters = dict(parse_qsl(parts.query))
        self.server.requests.append((parts.path, parameters))
        refused = parameters.get("route") == "gone"
        body = b'{"error":"route: \'gone\' is not known"}\n' if refused else b"faithfulness/search: acknowledged\n"
        self.send_response(400 if refused else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def listener() -> Iterator[Listener]:
    """A server that listens."""
    with Listener() as found:
        thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def run(*arguments: str) -> Result:
    """Run the command."""
    return CliRunner().invoke(cli, ["acknowledge", *arguments], standalone_mode=False)


@pytest.mark.parametrize(
    ("arguments", "requests"),
    [
        ([], {}),
        (["--quantity", "faithfulness", "--route", "a b&c"], {"quantity": "faithfulness", "route": "a b&c"}),
        (["--renew"], {"renew": "true"}),
        (["--judge", "claude"], {"judge": "claude"}),
    ],
)
def test_asks_for_what_was_said(listener: Listener, arguments: list[str], requests: dict[str, str]) -> None:
    """Special characters in names arrive unchanged."""
    result = run("--url", f"{listener.url}/", *arguments)
    assert result.exception is None
    assert result.stdout == "faithfulness/search: acknowledged\n"
    assert listener.requests == [("/-/drift/acknowledge", requests)]


def test_a_refusal_is_told(listener: Listener) -> None:
    """As a usage error with the reason in the response, without the JSON around it."""
    result = run("--url", listener.url, "--route", "gone")
    assert isinstance(result.exception, ConfigError)
    assert str(result.exception) == f"{listener.url} refused: route: 'gone' is not known"


def test_nobody_there_is_told() -> None:
    """A closed port is no success."""
    with Listener() as closed:
        url = closed.url
    result = run("--url", url)
    assert isinstance(result.exception, ExternalError)
    assert "no response" in str(result.exception)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--url", "file:///etc/passwd"], "is not a URL"),
        (["--judge", "claude", "--route", "search"], "anchors have no quantity and no route"),
        (["--route", "caf\udce9"], "is not UTF-8"),
    ],
)
def test_what_makes_no_sense_is_not_sent(arguments: list[str], message: str) -> None:
    """As a usage error."""
    result = run(*arguments)
    assert isinstance(result.exception, ConfigError)
    assert message in str(result.exception)
