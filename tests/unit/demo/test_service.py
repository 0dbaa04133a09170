"""The service: answers, log records and faults."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from ragwatch.demo.breakage import Breakage, vanishes
from ragwatch.demo.service import DEFAULT_K, RagService
from ragwatch.demo.talk import ABSTENTION

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


def test_it_answers_with_the_best_passage(service: RagService) -> None:
    """A real question gets the real answer, from the passage ranked first."""
    reply = service.ask(QUESTION)
    assert reply["contexts"][0]["id"] == "textwrap.dedent#0"
    assert "textwrap.dedent: Remove any common leading whitespace" in reply["answer"]
    assert len(reply["contexts"]) == DEFAULT_K


def test_each_answer_is_one_canonical_record(service: RagService, tmp_path: Path) -> None:
    """Reply and log agree; time, route, trace and release are there."""
    reply = service.ask(QUESTION)
    (record,) = logged(tmp_path)
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


def test_vanish_takes_the_documents_away_until_mended(service: RagService, tmp_path: Path) -> None:
    """The passages of vanished modules are found no more, so the service abstains; mending brings them back."""
    healthy = service.ask(QUESTION)
    assert vanishes("textwrap")
    service.break_it(Breakage.VANISH)
    broken = service.ask(QUESTION)
    modules = {passage.id: passage.module for passage in service.passages}
    assert not any(vanishes(modules[context["id"]]) for context in broken["contexts"])
    assert broken["answer"].startswith(ABSTENTION)
    service.mend()
    assert (service.ask(QUESTION)["answer"], service.breakage) == (healthy["answer"], None)
    assert [record["metadata"]["release"] for record in logged(tmp_path)] == ["v1", "v2-index", "v1"]


def test_invent_keeps_the_contexts_and_changes_the_answer(service: RagService) -> None:
    """It is still about the same thing, in the same tone: only some of its words are not in the documentation."""
    healthy = service.ask(QUESTION)
    service.break_it(Breakage.INVENT)
    broken = service.ask(QUESTION)
    assert broken["contexts"] == healthy["contexts"]
    assert "textwrap.dedent: " in broken["answer"]
    assert broken["answer"] != healthy["answer"]
    assert broken["answer"].split()[:3] == healthy["answer"].split()[:3]


def test_ignore_top_answers_from_another_passage(service: RagService) -> None:
    """The contexts stay, the answer is taken from a lower one."""
    healthy = service.ask(QUESTION)
    service.break_it(Breakage.IGNORE_TOP)
    broken = service.ask(QUESTION)
    top, *lower = (context["id"].split("#")[0] for context in broken["contexts"])
    assert broken["contexts"] == healthy["contexts"]
    assert f"{top}: " in healthy["answer"]
    assert f"{top}: " not in broken["answer"]
    assert any(f"{name}: " in broken["answer"] for name in lower)


@pytest.mark.parametrize("kind", [None, *Breakage])
def test_it_admits_what_it_does_not_know(service: RagService, kind: Breakage | None) -> None:
    """The abstention, whatever the retriever returned; no breakage makes it answer what it never could."""
    if kind is not None:
        service.break_it(kind)
    assert service.ask(NONSENSE)["answer"].startswith(ABSTENTION)


def test_one_breakage_at_a_time(service: RagService) -> None:
    """The next bad release replaces the one before it: the documents are back."""
    whole = len(service.index)
    service.break_it(Breakage.VANISH)
    assert len(service.index) < whole / 2
    service.break_it(Breakage.INVENT)
    assert (len(service.index), service.breakage) == (whole, Breakage.INVENT)
