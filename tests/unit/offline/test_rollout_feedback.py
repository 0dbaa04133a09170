"""`ragwatch rollout` and what users say: in the log as README writes it, in lines of its own, and at `/v1/feedback`."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support.command_line import command, configured, log_of
from support.kit import an_admission

from ragwatch.commands.run import run
from ragwatch.ports import Feedback
from ragwatch.statistics.sampling import key_of
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.terminal.options.administration import RunArguments

ANSWERS = 300
NOW = time.time()


def happy(number: int) -> bool:
    """Nine of ten users are happy with vector search, half of them with hybrid search."""
    return number % 4 == 0 if number % 2 else number % 20 != 0


def row(number: int, **parts: Any) -> dict[str, Any]:
    """An answer of a variant: `hybrid` where its number is odd."""
    text = f"The warranty of model {number // 2} lasts two years."
    metadata = {"variant": "hybrid" if number % 2 else "vector"}
    at = datetime.fromtimestamp(NOW - 5000.0 + number, UTC).isoformat()
    question = f"How long is the warranty of model {number // 2}?"
    answer = {"id": f"r{number}", "at": at, "question": question, "contexts": [text], "answer": text}
    return answer | {"metadata": metadata} | parts


def a_config(folder: Path, feedback: object) -> Path:
    """A configuration with the live stage; the two before are passed."""
    items = [{"query": f"q{number}?", "ranks": [1], "grades": [1]} for number in range(40)]
    (folder / "a.json").write_text(json.dumps({"suites": [{"suite": "s", "recall": {"10": 1.0}, "items": items}]}))
    start = datetime.fromtimestamp(NOW - 86400.0, UTC).isoformat()
    live = {"start": start, "share": 0.5, "feedback": feedback}
    rollout = {"a": "vector", "b": "hybrid", "offline": {"a": "a.json", "b": "a.json"}, "judged": {}, "live": live}
    sources = [{"kind": "tail", "name": "app", "path": f"{folder}/app.jsonl"}]
    return configured(folder, sources=sources, sampling={"probability": 1.0}, rollout=rollout)


def live_stage(path: Path) -> dict[str, Any]:
    """The live stage after the log was read once."""
    result = command("rollout", "--config", path, "--json")
    assert result.exception is None
    stage: dict[str, Any] = json.loads(result.stdout)["stages"][2]
    return stage


def logged(folder: Path, *rows: dict[str, Any]) -> None:
    """A log, read once by the daemon."""
    log_of(folder / "app.jsonl", *rows)
    assert run(RunArguments(path=a_config(folder, None), once=True, state=folder / "state")) == 0


@pytest.mark.costly
@pytest.mark.parametrize("place", ["in the record", "in a line of its own"])
def test_thumbs_as_readme_logs_them_decide(tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str) -> None:
    """In the record of the answer, or in a line `feedback_for`: users stop the variant that half of them dislike."""
    words = {number: "up" if happy(number) else "down" for number in range(ANSWERS)}
    if place == "in the record":
        logged(tmp_path, *(row(number, thumbs=word) for number, word in words.items()))
    else:
        rows = [row(number) for number in words]
        logged(tmp_path, *rows, *({"feedback_for": f"r{number}", "thumbs": word} for number, word in words.items()))
    capsys.readouterr()
    for feedback in ("user_score", "metadata.thumbs"):
        stage = live_stage(a_config(tmp_path, feedback))
        user = stage["metrics"][0]
        assert (stage["outcome"], stage["reason"]) == ("stopped", "B is worse in user"), feedback
        assert (user["metric"], user["decision"], user["b"] < user["a"]) == ("user", "worse", True), feedback


@pytest.mark.costly
def test_feedback_that_comes_later_replaces_what_was_logged(tmp_path: Path) -> None:
    """All thumbs are up in the log; those that `/v1/feedback` stores afterwards count, and so do they without any."""
    logged(tmp_path, *(row(number, metadata=row(number)["metadata"] | {"thumbs": "up"}) for number in range(ANSWERS)))
    assert live_stage(a_config(tmp_path, "metadata.thumbs"))["metrics"][0]["b"] == 1.0
    later = [Feedback((key_of("app", f"r{number}"),), float(happy(number)), NOW, "push") for number in range(ANSWERS)]
    store = SqliteStore(tmp_path / "state")
    store.admit(replace(an_admission(), feedback=later, at=NOW))
    store.close()
    for feedback in ("metadata.thumbs", "user_score"):
        assert live_stage(a_config(tmp_path, feedback))["reason"] == "B is worse in user"


def test_the_report_says_how_many_scores_there_are(tmp_path: Path) -> None:
    """Where the judge decides, although users have said something."""
    logged(tmp_path, *(row(number, thumbs="up") for number in range(60)))
    notes = live_stage(a_config(tmp_path, None))["notes"]
    assert any(
        note.startswith("no user metric: set `rollout.live.feedback` to user_score (60 answers") for note in notes
    )
