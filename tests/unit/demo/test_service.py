"""The service: answers, log records and faults."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from ragwatch.demo.answerer import ABSTENTION
from ragwatch.demo.service import DEFAULT_K, Breakage, RagService, RequestLog, vanishes

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


@pytest.mark.parametrize(("route", "expected"), [("search", "search"), ("nowhere", "support"), (None, "support")])
def test_the_route_is_one_of_two(service: RagService, tmp_path: Path, route: str | None, expected: str) -> None:
    """A known route is taken as it is, any other is guessed from the question."""
    service.ask(QUESTION, route)
    assert logged(tmp_path)[0]["route"] == expected


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


@pytest.mark.parametrize("kind", [None, *Breakage])
def test_it_admits_what_it_does_not_know(service: RagService, kind: Breakage | None) -> None:
    """The abstention, whatever the retriever returned; no breakage makes it answer what it never could."""
    if kind is not None:
        service.break_it(kind)
    assert service.ask(NONSENSE)["answer"].startswith(ABSTENTION)


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
