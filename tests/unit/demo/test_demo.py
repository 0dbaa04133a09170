"""The whole demo: service, load, faults, their schedule, canaries that find them, and its table."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest
from rich.console import Console
from support.patience import DEADLINE

from ragwatch.commands.demo import level_news, snapshot_table
from ragwatch.config import parse
from ragwatch.demo import Demo, Schedule
from ragwatch.demo.questions import KS, MAX_CANARIES, Question, canaries
from ragwatch.demo.service import RECOVERED, Breakage
from ragwatch.model.estimate import Addends
from ragwatch.model.quantities import Quantity
from ragwatch.statistics.estimators import hajek
from ragwatch.statistics.snapshot import EstimateRow, Snapshot
from ragwatch.statistics.tally import Tally


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


def test_no_fault_is_left_out_on_a_busy_machine() -> None:
    """One that begins late lasts as long as it should, and delays those after it."""
    schedule = Schedule(30, 10)
    at = [schedule.at(second) for second in (100.0, 109.9, 110.0, 200.0, 209.9, 500.0, 501.0, 510.0, 600.0)]
    vanish, invent, ignore = Breakage
    assert at == [vanish, vanish, None, invent, invent, None, None, ignore, None]


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


def _shown(snapshot: Snapshot | None) -> str:
    console = Console(width=120, record=True, file=None, quiet=False, force_terminal=False)
    with console.capture() as captured:
        console.print(snapshot_table(snapshot))
    return captured.get()


def _row(quantity: Quantity, route: str, *scores: float) -> EstimateRow:
    found = hajek.estimate(Addends.of((score, 1.0) for score in scores))
    assert found is not None
    return EstimateRow(quantity, route, "embedded", "15m", found)


def test_a_level_is_called_calibrated_while_enough_labels_count() -> None:
    """Once for all windows, in the words of the pages; a release that makes labels count less is told."""
    row = replace(_row(Quantity.FAITHFULNESS, "search", 1.0, 0.0), corrected=True)
    calibrated: set[tuple[str, str]] = set()
    told = [
        list(level_news(Snapshot(at=0.0, corrected=(level, replace(level, window="1h"))), calibrated))
        for level in (replace(row, labels=count, labels_given=50) for count in (0, 50, 50, 25, 25))
    ]
    of = "the level of faithfulness on route search is"
    aged = f"{of} [yellow]not calibrated, 25 of 50 labels (50 given; they age)[/]"
    assert told == [[], [f"{of} [green]calibrated[/]"], [], [aged], []]


def test_figures_stand_in_their_row_and_column() -> None:
    """Mean, interval and count of each route; an absent one stays blank, and so does all before the first digest."""
    assert "0." not in _shown(None)
    assert "0." not in _shown(Snapshot(at=0.0))
    rows = (
        _row(Quantity.FAITHFULNESS, "search", 1.0, 1.0, 0.0, 1.0),
        _row(Quantity.CONTEXT_USE, "search", 0.5, 0.25),
        _row(Quantity.TOP_RANKED_IGNORED, "support", 1.0, 1.0),
    )
    stages = Counter(
        {(Tally.STAGE, ("search", "embedded", "none")): 3, (Tally.STAGE, ("search", "embedded", "retrieval")): 1}
    )
    shown = _shown(Snapshot(at=0.0, estimates=rows, tallies=stages))
    faithful = next(line for line in shown.splitlines() if line.startswith("faithfulness"))
    assert "0.75" in faithful
    assert "●" in faithful
    assert faithful.count("0.75") == 1
    assert "none 75%" in shown
    assert "retrieval 25%" in shown
