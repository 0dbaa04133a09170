"""Canaries of the demo: the healthy retriever finds their passages, a broken one does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragwatch.config import parse
from ragwatch.demo import Demo
from ragwatch.demo.questions import KS, MAX_CANARIES, Question, canaries
from ragwatch.demo.service import Breakage


@pytest.mark.costly
def test_a_suite_of_the_demo_is_green_until_its_index_breaks(tmp_path: Path) -> None:
    """It is a configuration that ragwatch takes; every canary is found in health, hardly one in a broken index."""
    demo = Demo(tmp_path / "rag.jsonl")
    suite = demo.suite()
    assert suite == demo.suite()
    source = {"kind": "tail", "name": "app", "path": "/x"}
    (configured,) = parse({"sources": [source], "canaries": [suite]}, folder=tmp_path).canaries
    assert len(configured.canaries) == MAX_CANARIES

    def retrieved() -> int:
        return sum(
            item["expected"][0] in {hit.id for hit in demo.service.search(item["query"], KS[-1])}
            for item in suite["items"]
        )

    healthy = retrieved()
    demo.break_it(Breakage.VANISH)
    broken = retrieved()
    demo.stop()
    assert (healthy, broken <= MAX_CANARIES // 2) == (MAX_CANARIES, True)


def test_what_is_missed_in_health_is_no_canary() -> None:
    """Nor is a question that nobody can answer, and no name is taken twice."""
    asked = [Question(text, "search", about) for text, about in (("a", "x"), ("b", "x"), ("c", "y"), ("d", None))]
    items = canaries(asked, lambda text, _: ["x#0"] if text in "ab" else [])
    assert [item["expected"] for item in items] == [["x#0"]]
