"""Tokens of commands: where they come from, and to whom they are sent."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.certificates import Authority

from ragwatch.commands import cli
from ragwatch.commands.api_client import ApiClient, read_token
from ragwatch.errors import ConfigError, ExternalError, RagwatchError

TOKEN = "0123456789abcdef"  # noqa: S105 - of a test


class Protected(ThreadingHTTPServer):
    """A server that wants a token; it sends /moved elsewhere. `seen` are the paths and headers it got."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen: list[tuple[str, str | None]] = []
        self.url = f"{'http' if context is None else 'https'}://127.0.0.1:{self.server_port}"
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_side=True)


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Protected

    def do_POST(self) -> None:
        """Answer whoever has the token."""
        authorization = self.headers["Authorization"]
        self.server.seen.append((self.path.partition("?")[0], authorization))
        moved = self.path.startswith("/moved/")
        right = authorization == f"Bearer {TOKEN}"
        body = b'{"tasks": []}' if right else b"This address needs a token.\n"
        self.send_response(303 if moved else 200 if right else 401)
        if moved:
            self.send_header("Location", self.server.url.replace("127.0.0.1", "localhost") + "/elsewhere")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        """The same."""
        self.do_POST()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def listening(context: ssl.SSLContext | None = None) -> Iterator[Protected]:
    """A server that listens."""
    with Protected(context) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def protected() -> Iterator[Protected]:
    """A server without TLS."""
    with listening() as server:
        yield server


def test_a_token_comes_from_the_option_a_file_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The option is first, then the file that a variable names, then the variable itself; else there is none."""
    monkeypatch.delenv("RAGWATCH_TOKEN", raising=False)
    monkeypatch.delenv("RAGWATCH_TOKEN_FILE", raising=False)
    assert read_token(None) is None
    monkeypatch.setenv("RAGWATCH_TOKEN", "of-the-environment")
    assert read_token(None) == "of-the-environment"
    (tmp_path / "named").write_text("of-the-named-file\n")
    monkeypatch.setenv("RAGWATCH_TOKEN_FILE", str(tmp_path / "named"))
    assert read_token(None) == "of-the-named-file"
    (tmp_path / "given").write_text("of-the-given-file")
    assert read_token(tmp_path / "given") == "of-the-given-file"


@pytest.mark.parametrize(
    ("content", "expected"), [(b"", "is empty"), (b"a b", "more than a token"), (b"\xff", "not text")]
)
def test_a_file_without_a_token_is_named(tmp_path: Path, content: bytes, expected: str) -> None:
    """What is wrong with the file, without what it holds."""
    (tmp_path / "token").write_bytes(content)
    with pytest.raises(ConfigError, match=f"--token-file: .*{expected}"):
        read_token(tmp_path / "token")
    with pytest.raises(ConfigError, match=r"--token-file: .* cannot be read"):
        read_token(tmp_path / "gone")


def test_commands_send_the_token(protected: Protected, tmp_path: Path) -> None:
    """`acknowledge` and the client of labels are let in with the token, and say what to give without it."""
    (tmp_path / "token").write_text(TOKEN)
    done = CliRunner().invoke(cli, ["acknowledge", "--url", protected.url, "--token-file", str(tmp_path / "token")])
    assert done.exit_code == 0, done.exception
    assert ApiClient(protected.url, TOKEN).tasks("ann", 1) == []
    refused = CliRunner().invoke(cli, ["acknowledge", "--url", protected.url], standalone_mode=False)
    assert isinstance(refused.exception, ExternalError)
    assert "401: This address needs a token. give a token with --token-file" in str(refused.exception)
    with pytest.raises(RagwatchError, match=r"401: This address needs a token\. give a token with --token-file"):
        ApiClient(protected.url).tasks("ann", 1)


def test_a_token_is_not_sent_elsewhere(protected: Protected) -> None:
    """Where a server redirects to gets no token."""
    with pytest.raises(RagwatchError):
        ApiClient(f"{protected.url}/moved", TOKEN).labels()
    assert protected.seen == [("/moved/api/v1/labels", f"Bearer {TOKEN}"), ("/elsewhere", None)]


def test_an_authority_of_your_own_is_named_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate that is not trusted says what to set; with SSL_CERT_FILE the commands are answered."""
    authority = Authority(tmp_path)
    pair = authority.issue("server", "server")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert, pair.key)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    with listening(context) as server:
        with pytest.raises(RagwatchError, match="name the file of that authority in SSL_CERT_FILE"):
            ApiClient(server.url, TOKEN).tasks("ann", 1)
        refused = CliRunner().invoke(cli, ["acknowledge", "--url", server.url], standalone_mode=False)
        assert "in SSL_CERT_FILE" in str(refused.exception)
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.cert))
        assert ApiClient(server.url, TOKEN).tasks("ann", 1) == []
