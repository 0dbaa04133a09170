"""Intake of a join: samples, parts and counters are in the store, across a restart, and a request counts once."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

from support.kit import AT, JUDGE, Clock

from ragwatch.core.sampling import SamplingPlan
from ragwatch.core.tally import PartOutcome, Tally
from ragwatch.pipeline.intake import IntakeLoop, IntakeRules
from ragwatch.ports import Store
from ragwatch.ports.capabilities import log_reader
from ragwatch.sources.join.options import Options
from ragwatch.sources.join.source import JoinSource
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry

RULES = IntakeRules(SamplingPlan(1.0), {JUDGE: 1.0}, None, 1000)


def started(store: Store, options: Options, telemetry: Telemetry) -> IntakeLoop:
    """The intake after a start."""
    source = JoinSource(options, Clock(AT))
    source.resume(store.cursors("app"))
    source.restore(store.parts("app"))
    reader = log_reader(options)
    return IntakeLoop(source, reader.read, RULES, store=store, telemetry=telemetry, clock=Clock(AT), parse=reader.parse)


async def test_a_request_is_one_sample_across_a_restart(tmp_path: Path, telemetry: Telemetry) -> None:
    """Its retrieval before the restart, its answer behind it; all of it again is counted as sent again."""
    log = tmp_path / "app.jsonl"
    inner = {"kind": "tail", "name": "log", "path": str(log), "scan_seconds": 0}
    options = Options.model_validate({"name": "app", "of": [inner], "by": "rid", "start": "beginning"})
    asked = json.dumps({"rid": "r1", "question": "Where?", "contexts": ["By the river."], "route": "search"})
    answered = json.dumps({"rid": "r1", "answer": "By the river."})
    for lines in ([asked], [answered, asked], [asked.replace("Where?", "Where is it?"), answered]):
        with log.open("a") as file:
            file.writelines(f"{line}\n" for line in lines)
        with closing(SqliteStore(tmp_path / "state")) as store:
            intake = started(store, options, telemetry)
            while await intake.step():
                pass
            intake.source.close()
    store = SqliteStore(tmp_path / "state")
    (draw,) = store.lease(JUDGE, 10, now=AT, seconds=0)
    assert (draw.sample.id, draw.sample.answer, list(store.parts("app"))) == ("r1", "By the river.", [])
    tallies = store.tallies()
    store.close()
    assert (tallies[Tally.SEEN, ("app",)], tallies[Tally.RESENT, ("app",)]) == (1, 1)
    outcomes = {outcome: tallies.get((Tally.PARTS, ("app", outcome)), 0) for outcome in PartOutcome}
    assert outcomes[PartOutcome.JOINED] == 4
    assert outcomes[PartOutcome.REPEATED] == 1


async def test_a_part_with_an_empty_column_for_feedback_is_a_part(tmp_path: Path, telemetry: Telemetry) -> None:
    """One table of answers and feedback has the column in every row."""
    log = tmp_path / "app.jsonl"
    rows = [{"rid": "r1", "question": "Where?", "contexts": []}, {"rid": "r1", "answer": "Here.", "feedback_for": None}]
    log.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    inner = {"kind": "tail", "name": "log", "path": str(log), "scan_seconds": 0}
    options = Options.model_validate({"name": "app", "of": [inner], "by": "rid", "start": "beginning"})
    with closing(SqliteStore(tmp_path / "state")) as store:
        intake = started(store, options, telemetry)
        while await intake.step():
            pass
        intake.source.close()
        (draw,) = store.lease(JUDGE, 10, now=AT, seconds=0)
    assert (draw.sample.question, draw.sample.answer) == ("Where?", "Here.")
