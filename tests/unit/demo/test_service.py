"""The service: answers, log records and faults; and over HTTP, on the loopback interface."""

import json
from collections.abc import Iterator
from datetime import datetime
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from support.patience import DEADLINE

from ragwatch.demo.answerer import ABSTENTION
from ragwatch.demo.endpoint import Endpoint
from ragwatch.demo.service import DEFAULT_K, Breakage, RagService, RequestLog, vanishes
from ragwatch.errors import RagwatchError

pytestmark = pytest.mark.servers

QUESTION = "How do I remove any common leading whitespace from every line in a text?"
NONSENSE = "How do I descale an espresso machine with vinegar?"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[RagService]:
    """A healthy service with an empty log."""
    made = RagService(tmp_path / "rag.jsonl")
    yield made
    made.close()


def logged(tmp_path: Path) -> list[dict[str, Any]]:
    """All records of the log."""
    return [json.loads(line) for line in (tmp_path / "rag.jsonl").read_text(encoding="utf-8").splitlines()]


def test_each_answer_is_one_canonical_record(service: RagService, tmp_path: Path) -> None:
    """Reply and log agree; time, route, trace and release are there."""
    reply = service.ask(QUESTION)
    (record,) = logged(tmp_path)
    assert len(reply["contexts"]) == DEFAULT_K
    assert {key: record[key] for key in ("id", "answer", "contexts")} == {
        key: reply[key] for key in ("id", "answer", "contexts")
    }
    assert (record["question"], record["route"]) == (QUESTION, "support")
    assert datetime.fromisoformat(record["at"]).utcoffset() is not None
    assert record["metadata"]["trace_id"] == reply["trace_id"]
    assert (len(bytes.fromhex(reply["trace_id"])), record["metadata"]["release"]) == (16, "v1")
    assert record["metadata"]["latency_ms"] >= 0


def test_the_route_is_one_of_two(service: RagService, tmp_path: Path) -> None:
    """A known route is taken as it is, any other is guessed from the question."""
    for route in ("search", "nowhere", None):
        service.ask(QUESTION, route)
    assert [record["route"] for record in logged(tmp_path)] == ["search", "support", "support"]


def test_each_breakage_spoils_one_stage_until_mended(service: RagService, tmp_path: Path) -> None:
    """Documents are gone, words are not those of the contexts, or a lower passage is quoted; the next replaces it."""
    healthy, whole = service.ask(QUESTION), len(service.index)
    assert "textwrap.dedent: Remove any common leading whitespace" in healthy["answer"]
    broken = {}
    for kind in Breakage:
        service.break_it(kind)
        broken[kind] = service.ask(QUESTION)
        assert (len(service.index) < whole / 2) is (kind is Breakage.VANISH)
    modules = {passage.id: passage.module for passage in service.passages}
    vanished, invented, ignored = broken.values()
    assert not any(vanishes(modules[context["id"]]) for context in vanished["contexts"])
    assert vanished["answer"].startswith(ABSTENTION)
    assert invented["contexts"] == ignored["contexts"] == healthy["contexts"]
    assert invented["answer"] != healthy["answer"]
    assert invented["answer"].split()[:3] == healthy["answer"].split()[:3]
    top, *lower = (context["id"].split("#")[0] for context in healthy["contexts"])
    assert top == "textwrap.dedent"
    assert f"{top}: " not in ignored["answer"]
    assert any(f"{name}: " in ignored["answer"] for name in lower)
    service.mend()
    assert (service.ask(QUESTION)["answer"], service.breakage) == (healthy["answer"], None)
    releases = [record["metadata"]["release"] for record in logged(tmp_path)]
    assert releases == ["v1", "v2-index", "v3-model", "v4-prompt", "v1"]


def test_it_admits_what_it_does_not_know(service: RagService) -> None:
    """The abstention, whatever the retriever returned; no breakage makes it answer what it never could."""
    assert service.ask(NONSENSE)["answer"].startswith(ABSTENTION)
    for kind in Breakage:
        service.break_it(kind)
        assert service.ask(NONSENSE)["answer"].startswith(ABSTENTION), kind


def test_the_log_rotates_by_renaming_before_it_grows_too_large(tmp_path: Path) -> None:
    """No file passes the size, the renamed file is the same file, and only two old ones are kept."""
    journal = RequestLog(tmp_path / "logs" / "rag.jsonl", max_bytes=20)
    for number in (1, 2):
        journal.append({"n": number})
    inode = journal.path.stat().st_ino
    for number in range(3, 10):
        journal.append({"n": number})
        if number == 3:
            assert journal.path.with_name("rag.jsonl.1").stat().st_ino == inode
    left = [(path.name, path.read_text().splitlines()) for path in sorted(journal.path.parent.iterdir())]
    assert left == [
        ("rag.jsonl", ['{"n": 9}']),
        ("rag.jsonl.1", ['{"n": 7}', '{"n": 8}']),
        ("rag.jsonl.2", ['{"n": 5}', '{"n": 6}']),
    ]
    journal.append({"text": "longer than any file, zwölf\nKannen"})
    assert journal.path.read_text(encoding="utf-8") == '{"text": "longer than any file, zwölf\\nKannen"}\n'


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


def test_search_is_the_retriever_alone_and_ask_logs(endpoint: Endpoint, tmp_path: Path) -> None:
    """Ranked passages and no line in the log, by GET as by POST; an answer is in the log as it is in the reply."""
    asked = [
        ("GET", "/search?q=textwrap.dedent&k=3", None),
        ("POST", "/search", b'{"query": "textwrap.dedent", "k": 3}'),
    ]
    for method, path, body in asked:
        status, reply = call(endpoint, method, path, body)
        assert (status, len(reply["hits"]), reply["hits"][0]["id"]) == (200, 3, "textwrap.dedent#0")
        assert sorted(reply["hits"][0]) == ["id", "score", "text"]
    assert not (tmp_path / "rag.jsonl").exists()
    status, text = call(endpoint, "GET", "/")
    assert (status, "POST /ask" in text) == (200, True)
    assert endpoint.address.startswith("http://127.0.0.1:")
    status, reply = call(endpoint, "POST", "/ask", b'{"question": "What does textwrap.dedent do?", "route": "support"}')
    record = json.loads((tmp_path / "rag.jsonl").read_text())
    assert (status, sorted(reply)) == (200, ["answer", "contexts", "id", "trace_id"])
    assert (record["answer"], record["route"]) == (reply["answer"], "support")


def test_what_is_no_question_is_refused_with_a_reason(endpoint: Endpoint) -> None:
    """The caller's mistake is named, and nothing crashes."""
    refused: list[tuple[str, str, bytes | None, int]] = [
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
    ]
    for method, path, body, status in refused:
        headers = {"Content-Length": "many"} if (method, body) == ("POST", None) else {}
        actual, reply = call(endpoint, method, path, body, **headers)
        assert (actual, list(reply)) == (status, ["error"]), (method, path, body)


def test_what_cannot_be_logged_or_bound_is_told(endpoint: Endpoint, tmp_path: Path) -> None:
    """The reason is named and the service goes on; the message names a taken port."""
    (tmp_path / "rag.jsonl").mkdir()
    status, reply = call(endpoint, "POST", "/ask", b'{"question": "What does textwrap.dedent do?"}')
    assert (status, reply["error"].startswith("cannot write the log")) == (500, True)
    assert call(endpoint, "GET", "/")[0] == 200
    service = RagService(tmp_path / "other.jsonl")
    port = urlsplit(endpoint.address).port
    with pytest.raises(RagwatchError, match=str(port)):
        Endpoint(service, port or 0)
    Endpoint(service).stop()  # without a start, as after such an error
    service.close()
