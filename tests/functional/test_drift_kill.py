"""Drift of a real process: kill -9 in mid-stream, replayed lines and unread answers leave the alarm where it was."""

import json
import random
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from functional.daemon import JUDGED, RagwatchProcess, parse_series, record, write_config
from functional.forked import run_forked
from support.patience import wait_until

from ragwatch.stores.sqlite.store import SqliteStore

AT, MINUTE = 1_700_000_000.0, 60.0
GOOD, BAD, KILLS = 450, 75, 2
CELL = 'quantity="faithfulness",route="search"'
UNJUDGED = 'ragwatch_samples_unjudged_total{judge="embedded",reason="too_large",route="search"}'
REPEATED = 'ragwatch_requests_rejected_total{reason="duplicate_id",source="app"}'


def answered() -> list[str]:
    """A log: nearly all answers stand in their context, then few do; one a minute."""
    rng, found = random.Random(3), []
    for number in range(GOOD + BAD):
        well = rng.random() < (0.95 if number < GOOD else 0.3)
        answer = "The old mill stands by the river." if well else "A dragon burned Reykjavik in the last winter."
        found.append(record(number, answer=answer, at=AT + MINUTE * number))
    return found


def disturbed(lines: Sequence[str]) -> list[str]:
    """The same log, in which lines come again, and answers that no judge can read come between."""
    rng, found = random.Random(4), list[str]()
    for number, line in enumerate(lines):
        found.append(line)
        if rng.random() < 0.1:
            found.append(rng.choice(lines[: number + 1]))
        if rng.random() < 0.1:
            huge = [{"id": f"d{rank}", "text": "The old mill."} for rank in range(9)]
            found.append(record(10_000 + number, contexts=huge, at=AT + MINUTE * number))
    return found


def configure(folder: Path) -> Path:
    """One quantity is watched, against two hundred answers; more than eight contexts are too many."""
    folder.mkdir()
    return write_config(
        folder,
        judges="[{name: embedded, kind: lexical, max_contexts: 8}]",
        drift="{reference: 200, reference_time: 1s, quantities: [faithfulness], traffic: {signals: []}}",
    )


def until(ragwatch: RagwatchProcess, judged: int) -> None:
    """Wait until so many answers are judged."""
    wait_until(lambda: ragwatch.series().get(JUDGED, 0.0) >= judged, f"{judged} answers are judged")


def taken_stock(config: Path) -> dict[str, float]:
    """The series when drift has looked at every answer there is: a daemon that is asked may be about to."""
    done = run_forked("run", "--once", "--state", config.parent / "state", "--config", config, check=True)
    return parse_series(done.stdout)


def alarm(folder: Path) -> dict[str, Any]:
    """The only one that was ever raised."""
    with closing(SqliteStore(folder / "state")) as store:
        [run] = store.runs("drift", "faithfulness/search", 10)
    return {name: run.body[name] for name in ("at", "evidence", "threshold", "scores")}


def test_the_alarm_stays_where_it_was(tmp_path: Path) -> None:
    """One pass over a clean log, and three lives with a disturbed one: the same alarm, at the same answer, once."""
    lines = answered()
    config = configure(tmp_path / "calm")
    (config.parent / "log" / "rag.jsonl").write_text("\n".join(lines) + "\n")
    calm = taken_stock(config)
    assert (calm[JUDGED], calm[f"ragwatch_drift_alarm{{{CELL}}}"]) == (len(lines), 1.0)

    config, rng = configure(tmp_path / "wild"), random.Random(5)
    rows = disturbed(lines)
    log = config.parent / "log" / "rag.jsonl"
    for life in range(KILLS + 1):
        first, last = (len(rows) * each // (KILLS + 1) for each in (life, life + 1))
        with log.open("a") as file:
            file.writelines(f"{row}\n" for row in rows[first:last])
        with RagwatchProcess(config).wait_until_serving() as ragwatch:
            if life < KILLS:
                until(ragwatch, rng.randrange(*(len(set(lines) & set(rows[:each])) for each in (first, last))))
                ragwatch.kill()
                continue
            ragwatch.wait_for(JUDGED, len(lines))
            ragwatch.wait_for(f"ragwatch_drift_alarm{{{CELL}}}", 1.0)
            ragwatch.process.terminate()
            assert ragwatch.end() == 0
    wild = taken_stock(config)
    ids = {json.loads(row)["id"] for row in rows}
    assert wild[UNJUDGED] == len(ids) - len(lines) > 30
    assert wild[REPEATED] == len(rows) - len(ids) > 30
    assert alarm(tmp_path / "wild") == alarm(tmp_path / "calm")
    for each in ("evidence", "baseline_ratio", "band_ratio_low", "band_ratio_high", "band_samples"):
        assert wild[f"ragwatch_drift_{each}{{{CELL}}}"] == calm[f"ragwatch_drift_{each}{{{CELL}}}"], each
