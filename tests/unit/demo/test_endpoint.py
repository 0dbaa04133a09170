"""The service over HTTP, on the loopback interface."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from support.patience import DEADLINE

from ragwatch.demo.endpoint import Endpoint
from ragwatch.demo.service import RagService
from ragwatch.errors import RagwatchError

pytestmark = pytest.mark.servers


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[Endpoint]:
    """A started endpoint on a free port."""
    service = RagService(tmp_path / "rag.jsonl")
    made = Endpoint(service)
    made.start()
    yield made
    made.stop()
    service.close()


def call(endpoint: Endpoint, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, Any]:
    """Status and body, decoded where it is JSON."""
    connection = HTTPConnection(urlsplit(endpoint.address).netloc, timeout=DEADLINE)
    connection.request(method, path, body, headers)
    reply = connection.getresponse()
    text = reply.read().decode()
    kind = reply.headers["Content-Type"]
    connection.close()
    return reply.status, json.loads(text) if kind == "application/json" else text


def test_ask_answers_and_logs(endpoint: Endpoint, tmp_path: Path) -> None:
    """The reply holds what the contract names, and the log the same answer."""
    status, reply = call(endpoint, "POST", "/ask", b'{"question": "What does textwrap.dedent do?", "route": "support"}')
    record = json.loads((tmp_path / "rag.jsonl").read_text())
    assert (status, sorted(reply)) == (200, ["answer", "contexts", "id", "trace_id"])
    assert (record["answer"], record["route"]) == (reply["answer"], "support")


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [("GET", "/search?q=textwrap.dedent&k=3", None), ("POST", "/search", b'{"query": "textwrap.dedent", "k": 3}')],
)
def test_search_is_the_retriever_alone(
    endpoint: Endpoint, tmp_path: Path, method: str, path: str, body: bytes | None
) -> None:
    """Ranked passages and no line in the log, by GET as by POST."""
    status, reply = call(endpoint, method, path, body)
    assert (status, len(reply["hits"]), reply["hits"][0]["id"]) == (200, 3, "textwrap.dedent#0")
    assert sorted(reply["hits"][0]) == ["id", "score", "text"]
    assert not (tmp_path / "rag.jsonl").exists()


def test_the_front_page_says_what_it_is(endpoint: Endpoint) -> None:
    """A person or a health check finds a line of text, on this machine only."""
    status, text = call(endpoint, "GET", "/")
    assert (status, "POST /ask" in text) == (200, True)
    assert endpoint.address.startswith("http://127.0.0.1:")


@pytest.mark.costly
@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/ask", None, 400),  # and of unknown length
        ("POST", "/ask", b"no json", 400),
        ("POST", "/ask", b"[]", 400),
        ("POST", "/ask", b"{}", 400),
        ("POST", "/ask", b'{"question": 7}', 400),
        ("POST", "/ask", b'{"question": "  "}', 400),
        ("POST", "/ask", b'{"question": "' + b"x" * 70_000 + b'"}', 400),
        ("POST", "/search", b'{"query": "x", "k": "many"}', 400),
        ("GET", "/search", None, 400),
        ("GET", "/search?q=x&k=0", None, 400),
        ("GET", "/ask", None, 404),
        ("POST", "/nowhere", b"{}", 404),
    ],
)
def test_what_is_no_question_is_refused_with_a_reason(
    endpoint: Endpoint, method: str, path: str, body: bytes | None, status: int
) -> None:
    """The caller's mistake is named, and nothing crashes."""
    headers = {"Content-Length": "many"} if (path, body) == ("/ask", None) and method == "POST" else {}
    actual, reply = call(endpoint, method, path, body, **headers)
    assert (actual, list(reply)) == (status, ["error"])


def test_an_answer_that_cannot_be_logged_is_not_given(endpoint: Endpoint, tmp_path: Path) -> None:
    """The reason is named; the service goes on."""
    (tmp_path / "rag.jsonl").mkdir()
    status, reply = call(endpoint, "POST", "/ask", b'{"question": "What does textwrap.dedent do?"}')
    assert (status, reply["error"].startswith("cannot write the log")) == (500, True)
    assert call(endpoint, "GET", "/")[0] == 200


def test_a_taken_port_is_an_error_for_people(endpoint: Endpoint, tmp_path: Path) -> None:
    """The message names the port."""
    service = RagService(tmp_path / "other.jsonl")
    port = urlsplit(endpoint.address).port
    with pytest.raises(RagwatchError, match=str(port)):
        Endpoint(service, port or 0)
    Endpoint(service).stop()  # without a start, as after such an error
    service.close()
