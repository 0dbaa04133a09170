"""`ragwatch check` of a source that receives answers: it prints the command that sends one, or says who may not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.command_line import findings

from ragwatch.commands.check_web import EXAMPLE
from ragwatch.commands.finding import OK, WARNING, Finding
from ragwatch.formats import build
from ragwatch.formats.record import parse as parse_line

TOKEN = "0123456789abcdef"  # noqa: S105 - a made up one


def finding(folder: Path, web: dict[str, Any], names: tuple[str, ...] = ("app",)) -> Finding:
    """What `check` says of the first source."""
    sources = [{"kind": "push", "name": name} for name in names]
    return findings(folder, web={"listen": "127.0.0.1:10999", **web}, sources=sources)["sources[0]"]


def test_the_command_that_sends_an_answer(tmp_path: Path) -> None:
    """It has the address of this configuration, and no token where none is needed."""
    one = finding(tmp_path, {})
    assert (one.state, one.detail.endswith(" http://127.0.0.1:10999/v1/samples")) == (OK, True)
    assert "curl -H 'Content-Type: application/json' -d" in one.detail
    assert "Bearer" not in one.detail


@pytest.mark.parametrize(
    ("web", "names", "says"),
    [
        ({"tokens": [{"name": "a", "token": TOKEN, "rights": ["ingest"]}]}, ("app",), "Authorization: Bearer $TOKEN"),
        ({}, ("app", "other"), "'http://127.0.0.1:10999/v1/samples?source=app'"),
        ({"listen": "0.0.0.0:10999", "open": ["ingest"]}, ("app",), " http://localhost:10999/v1/samples"),
        ({"listen": "[::1]:10999"}, ("app",), "'http://[::1]:10999/v1/samples'"),
        ({"external_url": "https://rag.example/w/"}, ("app",), " https://rag.example/w/v1/samples"),
    ],
)
def test_addresses_and_tokens(tmp_path: Path, web: dict[str, Any], names: tuple[str, ...], says: str) -> None:
    """A token where one is needed, the name where there are several sources, an address that a client can use."""
    one = finding(tmp_path, web, names)
    assert one.state == OK
    assert says in one.detail


def test_nobody_may_send(tmp_path: Path) -> None:
    """Where no client has the right, that is a warning, with what to add."""
    one = finding(tmp_path, {"tokens": [{"name": "ci", "token": TOKEN, "rights": ["write"]}]})
    assert one.state == WARNING
    assert one.detail.startswith("nobody has the right ingest: give it to a token")


def test_the_example_is_a_sample() -> None:
    """What the command sends is read as a sample."""
    sample = build("auto").read(parse_line(EXAMPLE.encode())[0], "fallback")
    assert (sample.id, sample.answer, len(sample.contexts)) == ("1", "Goethe.", 1)
