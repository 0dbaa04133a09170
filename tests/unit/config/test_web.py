"""The section `web`: rights, tokens, host names, and whether others can connect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ragwatch.config import Config, parse
from ragwatch.errors import ConfigError

TOKEN = "0123456789abcdef"  # noqa: S105 - of a test


def configured(**web: Any) -> Config:
    """A configuration with this section."""
    return parse({"web": web, "sources": [{"kind": "tail", "name": "app", "path": "/log"}]}, folder=Path("/etc/rag"))


@pytest.mark.parametrize(
    ("listen", "local"),
    [
        ("127.0.0.1:1", True),
        ("127.8.0.1:1", True),
        ("localhost:1", True),
        ("[::1]:1", True),
        ("0.0.0.0:1", False),
        ("[::]:1", False),
        ("10.0.0.1:1", False),
        ("rag.internal:1", False),
    ],
)
def test_only_loopback_is_local(listen: str, local: bool) -> None:  # noqa: FBT001 - a parameter of the table
    """A name other than localhost may be anything, so it counts as reachable."""
    assert configured(listen=listen).settings.web.is_local is local


@pytest.mark.parametrize(
    ("web", "expected"),
    [
        ({"open": ["page"]}, "web.open[0]: 'page' is not known; use 'metrics', 'pages', 'write' or 'ingest'"),
        ({"users": {"anna": ["read"]}}, "web.users.anna[0]: 'read' is not known"),
        ({"hosts": ["https://rag"]}, "web.hosts[0]: 'https://rag' is not a host name"),
        ({"trace_url": "https://t.example/x"}, "web.trace_url: is not an address with {trace_id} once after the host"),
        ({"trace_url": "https://{trace_id}/"}, "web.trace_url: is not an address"),
        ({"trace_url": "https://{trace_id}.example/{trace_id}"}, "web.trace_url: is not an address"),
        ({"trace_url": "https:///{trace_id}"}, "web.trace_url: is not an address"),
        ({"trace_url": "javascript:alert(1)//{trace_id}"}, "web.trace_url: is not an address"),
        ({"trace_url": "https://t.example/{trace_id}/{span}"}, "web.trace_url: is not an address"),
        ({"hosts": ["*"]}, "web.hosts[0]: '*' is not a host name"),
        ({"tokens": [{"name": "ci", "token": "short", "rights": []}]}, "web.tokens[0].token: is not a token of 16"),
        ({"tokens": [{"name": "ci", "token": "sha256:1", "rights": []}]}, "web.tokens[0].token: a hash is sha256:"),
        ({"tokens": [{"name": "ci", "token": TOKEN}]}, "web.tokens[0].rights: is missing; add it"),
        ({"listen": "127.0.0.1:99999"}, "web.listen: port 99999 does not exist"),
    ],
)
def test_what_is_wrong_is_named(web: dict[str, Any], expected: str) -> None:
    """The key, what is wrong and what to write; a token is not shown."""
    with pytest.raises(ConfigError) as raised:
        configured(**web)
    assert expected in str(raised.value)
    assert "short" not in str(raised.value)


def test_tokens_are_masked_and_paths_belong_to_the_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    """A token from the environment is not shown; `config_file` is relative to the configuration."""
    monkeypatch.setenv("CI_TOKEN", TOKEN)
    web = configured(
        tokens=[{"name": "ci", "token": "${CI_TOKEN}", "rights": ["write"]}],
        config_file="web.yml",
        hosts=["RAG", "[::2]"],
    ).settings.web
    assert web.tokens[0].token.get_secret_value() == TOKEN
    assert TOKEN not in repr(web)
    assert web.config_file == Path("/etc/rag/web.yml")
    assert web.hosts == ("rag", "::2")
