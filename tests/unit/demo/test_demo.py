"""The whole demo: service, load and faults."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Event

import pytest
from support.patience import DEADLINE

from ragwatch.demo import Demo
from ragwatch.demo.service import RECOVERED, Breakage


def test_it_runs_breaks_and_stops_by_itself(tmp_path: Path) -> None:
    """Traffic flows, every breakage is announced in turn and mended, and the log says which release answered."""
    events: list[str] = []
    done = Event()

    def told(text: str) -> None:
        events.append(text)
        if len(events) == 6:
            done.set()

    with Demo(tmp_path / "rag.jsonl", rate=200, degrade_after=0.2, breakage_seconds=0.3, on_event=told) as demo:
        assert done.wait(DEADLINE)
    records = [json.loads(line) for line in (tmp_path / "rag.jsonl").read_text(encoding="utf-8").splitlines()]
    releases = list(dict.fromkeys(record["metadata"]["release"] for record in records))
    assert events == [line for kind in Breakage for line in (kind.announcement, RECOVERED)]
    assert releases == ["v1", "v2-index", "v3-model", "v4-prompt"]
    assert (demo.asked, demo.breakage) == (len(records), None)
    assert {record["route"] for record in records} == set(demo.routes)


@pytest.mark.uncounted
def test_it_breaks_no_sooner_than_it_may(tmp_path: Path) -> None:
    """However late that is, every fault then lasts as long as it should."""
    events: list[str] = []
    allowed = Event()
    demo = Demo(
        tmp_path / "rag.jsonl", degrade_after=10, breakage_seconds=5, may_break=allowed.is_set, on_event=events.append
    )
    for elapsed in (0.0, 10.0, 100.0):
        demo.follow_schedule(elapsed)
    assert events == []
    allowed.set()
    demo.follow_schedule(101.0)
    demo.follow_schedule(105.9)
    assert events == [Breakage.VANISH.announcement]
    demo.follow_schedule(106.1)
    assert events[1:] == [RECOVERED]
    demo.stop()


def test_it_can_be_asked_and_broken_by_hand(tmp_path: Path) -> None:
    """Without starting anything: for tests and for `ragwatch demo` alike. No schedule undoes it."""
    events: list[str] = []
    demo = Demo(tmp_path / "rag.jsonl", on_event=events.append)
    reply = demo.service.ask("What does textwrap.dedent do?")
    demo.break_it(Breakage.INVENT)
    demo.follow_schedule(1e6)
    broken = (demo.breakage, demo.service.ask("What does textwrap.dedent do?")["answer"] != reply["answer"])
    demo.mend()
    demo.stop()
    assert broken == (Breakage.INVENT, True)
    assert (demo.breakage, events) == (None, [Breakage.INVENT.announcement, RECOVERED])
    assert demo.address.startswith("http://127.0.0.1:")
