"""Tokens of commands: where they come from, and to whom they are sent."""

from __future__ import annotations

import re
import ssl
from pathlib import Path

import pytest
from support.answering import Asked, Reply, answering
from support.certificates import Authority
from support.command_line import command, refused

from ragwatch.commands.api_client import ApiClient, read_token
from ragwatch.errors import ConfigError, ExternalError, RagwatchError

TOKEN = "0123456789abcdef"  # noqa: S105 - of a test


def reply(asked: Asked) -> Reply:
    """Answer whoever has the token; requests below /moved are sent elsewhere."""
    if asked.path.startswith("/moved/"):
        return 303, b"", {"Location": f"http://localhost:{asked.headers['Host'].partition(':')[2]}/elsewhere"}
    right = asked.headers.get("Authorization") == f"Bearer {TOKEN}"
    return (200, {"tasks": []}, {}) if right else (401, b"This address needs a token.\n", {})


def test_a_token_comes_from_the_option_a_file_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The option is first, then the file that a variable names, then the variable itself; else there is none.

    What is wrong with a file is told, without what it holds.
    """
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
    for content, expected in ((b"", "is empty"), (b"a b", "more than a token"), (b"\xff", "not text")):
        (tmp_path / "token").write_bytes(content)
        with pytest.raises(ConfigError, match=f"--token-file: .*{expected}"):
            read_token(tmp_path / "token")
    with pytest.raises(ConfigError, match=r"--token-file: .* cannot be read"):
        read_token(tmp_path / "gone")


def test_commands_send_the_token(tmp_path: Path) -> None:
    """`acknowledge` and the client of labels are let in with the token, and say what to give without it."""
    (tmp_path / "token").write_text(TOKEN)
    wanted = r"401: This address needs a token\. give a token with --token-file"
    with answering(reply) as (url, _):
        assert command("acknowledge", "--url", url, "--token-file", tmp_path / "token").exception is None
        assert ApiClient(url, TOKEN).tasks("ann", 1) == []
        assert re.search(wanted, refused(command("acknowledge", "--url", url), ExternalError))
        with pytest.raises(RagwatchError, match=wanted):
            ApiClient(url).tasks("ann", 1)


def test_a_token_is_not_sent_elsewhere() -> None:
    """Where a server redirects to gets no token."""
    with answering(reply) as (url, asked), pytest.raises(RagwatchError):
        ApiClient(f"{url}/moved", TOKEN).labels()
    seen = [(one.path, one.headers.get("Authorization")) for one in asked]
    assert seen == [("/moved/api/v1/labels", f"Bearer {TOKEN}"), ("/elsewhere", None)]


def test_an_authority_of_your_own_is_named_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate that is not trusted says what to set; with SSL_CERT_FILE the commands are answered."""
    authority = Authority(tmp_path)
    pair = authority.issue("server", "server")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert, pair.key)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    with answering(reply, context) as (url, _):
        with pytest.raises(RagwatchError, match="name the file of that authority in SSL_CERT_FILE"):
            ApiClient(url, TOKEN).tasks("ann", 1)
        assert "in SSL_CERT_FILE" in refused(command("acknowledge", "--url", url), ExternalError)
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.cert))
        assert ApiClient(url, TOKEN).tasks("ann", 1) == []
