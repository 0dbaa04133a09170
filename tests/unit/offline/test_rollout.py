"""`ragwatch rollout`: three stages over suites, logs and a state directory, one exit code for each; what users say."""

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.command_line import command, configured, log_of, refused
from support.kit import JUDGE, a_draw, a_line, a_reading, a_verdict, an_admission, an_evidence, an_unjudged
from support.retrievers import FaultyRetriever, serving

from ragwatch.commands.run import run
from ragwatch.ports import Feedback, Retention
from ragwatch.statistics.sampling import key_of
from ragwatch.statistics.verdict import Verdict
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.terminal.options.administration import RunArguments

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "docs" / "examples" / "rollout"
NOW = time.time()
START = datetime.fromtimestamp(NOW - 86400.0, UTC).isoformat()
LIVE = {"start": START, "feedback": "metadata.thumbs", "share": 0.2}
rollout = partial(command, "rollout", "--config")
ANSWERS = 200


def a_config(folder: Path, section: dict[str, Any], **others: Any) -> str:
    """A configuration with this section."""
    parts = {"judges": [{"name": JUDGE, "kind": "lexical"}], "rollout": {"a": "vector", "b": "hybrid"} | section}
    return str(configured(folder, **parts | others))


def recorded(folder: Path, name: str, rank: int, count: int = 40) -> str:
    """What a rollout reads of a run of `ragwatch canary --json` in which expected chunks always have this rank."""
    items = [{"query": f"What about {number}?", "ranks": [rank], "grades": [1]} for number in range(count)]
    line = {"suites": [{"suite": name, "recall": {"1": 0.5, "10": 1.0}, "items": items}]}
    (folder / name).write_text(json.dumps(line))
    return name


def ranked_alike(folder: Path) -> dict[str, str]:
    """The offline stage of variants that rank alike, which is passed."""
    return {"a": recorded(folder, "vector.json", 2), "b": recorded(folder, "hybrid.json", 2)}


def a_log(folder: Path, name: str, answer: str, count: int = 40) -> str:
    """A log of answers to the same questions."""
    context = "The warranty lasts two years from the day of purchase."
    parts: dict[str, Any] = {"contexts": [{"text": context}], "answer": answer}
    lines = [a_line(f"r{number}", question=f"How long is warranty {number}?", **parts) for number in range(count)]
    (folder / name).write_bytes(b"\n".join([*lines, b"{"]))
    return name


def an_answer(number: int, *, is_b: bool, thumbs: Any, faithful: bool = True, **parts: Any) -> Verdict:
    """A live answer of a variant with feedback."""
    metadata = {"variant": "hybrid" if is_b else "vector", "thumbs": thumbs}
    draw = a_draw(f"r{number}", question=f"Question {number}?", metadata=metadata, at=NOW - 5000.0 + number)
    return a_verdict(draw, an_evidence((1, 0) if faithful else (0, 0)), a_reading(**parts))


def settle(store: SqliteStore, verdicts: list[Verdict]) -> None:
    """Store them."""
    store.admit(an_admission(*(verdict.draw for verdict in verdicts)))
    store.settle(verdicts)


def happy(number: int, *, is_b: bool) -> bool:
    """Nine of ten users are happy with vector search, half of them with hybrid search."""
    return number % 2 == 0 if is_b else number % 10 != 0


@pytest.mark.costly
def test_users_stop_the_offline_winner(tmp_path: Path, store: SqliteStore) -> None:
    """Row 58, HealthMetrics: hybrid wins on 500 queries, draws on judged ones, and loses with users."""
    settle(store, [an_answer(n, is_b=n % 5 == 0, thumbs=happy(n // 5, is_b=n % 5 == 0)) for n in range(300)])
    offline = {"a": recorded(tmp_path, "vector.json", 3, 500), "b": recorded(tmp_path, "hybrid.json", 1, 500)}
    section = {"offline": offline, "judged": {"since": "1d"}, "live": LIVE}
    result = rollout(a_config(tmp_path, section), "--json")
    line = json.loads(result.stdout)
    assert (result.return_value, line["code"]) == (13, 13)
    assert [stage["outcome"] for stage in line["stages"]] == ["passed", "passed", "stopped"]
    mrr, ndcg, recall = line["stages"][0]["metrics"]
    assert (mrr["a"], mrr["b"], ndcg["b"], recall["a"]) == (pytest.approx(1 / 3), 1.0, 1.0, 1.0)
    assert [metric["n_a"] for metric in line["stages"][1]["metrics"]] == [60, 60]  # of the smaller side
    user = line["stages"][2]["metrics"][0]
    assert (user["metric"], user["decision"]) == ("user", "worse")
    assert user["b"] < user["a"] > user["a"] + user["high"]
    assert line["stages"][2]["reason"] == "B is worse in user"


def test_a_variant_that_passes_every_stage(tmp_path: Path, store: SqliteStore) -> None:
    """Exit code 0; without feedback the judge's scores decide, and the report says so."""
    verdicts = [an_answer(n, is_b=n % 2 == 0, thumbs="?", faithful=n % 2 == 0) for n in range(300)]
    verdicts.append(an_unjudged(a_draw("torn", metadata={"variant": "vector"}, at=NOW - 9000.0)))
    verdicts.append(a_verdict(a_draw("unnamed", metadata={"variant": True}, at=NOW - 9000.0)))
    settle(store, verdicts)
    section = {"offline": ranked_alike(tmp_path), "judged": {}, "live": {"start": START, "share": 0.5, "margin": 0.3}}
    result = rollout(a_config(tmp_path, section), "--json")
    line = json.loads(result.stdout)
    assert (result.return_value, [stage["outcome"] for stage in line["stages"]]) == (0, ["passed"] * 3)
    notes = line["stages"][2]["notes"]
    assert "1 answers could not be judged" in notes
    assert any(note.startswith("no user metric: set `rollout.live.feedback`") for note in notes)


def test_feedback_that_cannot_be_read_is_counted(tmp_path: Path, store: SqliteStore) -> None:
    """And decides nothing: exit code 23. Earlier versions of the judge lack scores, their feedback counts."""
    verdicts = [an_answer(n, is_b=n % 2 == 0, thumbs="?" if n else "up") for n in range(80)]
    verdicts[3] = an_answer(3, is_b=False, thumbs=True, version="scripted-0")
    settle(store, verdicts)
    section = {"offline": ranked_alike(tmp_path), "judged": {}, "live": LIVE}
    line = json.loads(rollout(a_config(tmp_path, section), "--json").stdout)
    live = line["stages"][2]
    assert (line["code"], live["reason"]) == (23, "not enough data to decide on user")
    assert live["notes"][:2] == [
        "78 answers have feedback that is neither thumbs nor a number of the scale",
        "1 answers were read by an earlier version",
    ]
    assert (live["metrics"][0]["n_a"], live["metrics"][0]["n_b"], live["metrics"][1]["n_a"]) == (1, 1, 39)


def test_stages_that_are_undecided(tmp_path: Path) -> None:
    """One that is not configured, after which none is run: exit code 22; two suites with few canaries: 21."""
    result = rollout(a_config(tmp_path, {"offline": ranked_alike(tmp_path)}))
    assert result.return_value == 22
    assert "stage 2, judged: undecided: `rollout.judged` is not configured yet" in result.stdout
    assert "stage 3, live: not run: an earlier stage was not passed" in result.stdout
    with serving(*FaultyRetriever().routes()) as address:
        probe = {"kind": "http", "url": f"{address}/search", "body": {"query": "{{ query }}"}, "contexts": "hits"}
        items = [{"query": "cats", "expected": ["d1"]}, {"query": "dogs", "expected": ["d2"]}]
        suites = [{"suite": name, "k": [1], "items": items, "probe": probe} for name in ("one", "two")]
        config = a_config(tmp_path, {"offline": {"a": "one", "b": "two"}}, canaries=suites)
        line = json.loads(rollout(config, "--json").stdout)
    assert (line["code"], line["stages"][0]["metrics"][0]["a"]) == (21, 0.75)


def test_two_logs_are_judged_on_the_same_questions(tmp_path: Path) -> None:
    """Only as many questions as configured are judged; an invention stops the variant with exit code 12."""
    logs = {
        "a": a_log(tmp_path, "a.jsonl", "The warranty lasts two years."),
        "b": a_log(tmp_path, "b.jsonl", "Lions hunt zebras at night in the savannah."),
        "questions": 35,
    }
    result = rollout(a_config(tmp_path, {"offline": ranked_alike(tmp_path), "judged": logs}), "--json")
    line = json.loads(result.stdout)
    assert (result.return_value, line["stages"][1]["reason"].startswith("B is worse in faithfulness")) == (12, True)
    assert line["stages"][1]["metrics"][0]["n_a"] == 35
    assert line["stages"][1]["notes"] == ["2 rows are rejected and are left out"]


def test_what_retention_has_deleted_is_said(tmp_path: Path, store: SqliteStore) -> None:
    """The sequences begin after it."""
    old = [a_verdict(a_draw(f"o{n}", metadata={"variant": "vector"}, at=NOW - 3 * 86400.0)) for n in range(3)]
    settle(store, [*old, *(an_answer(n, is_b=n % 2 == 0, thumbs=True) for n in range(80))])
    store.prune(Retention(1, 90, 1 << 40), now=NOW)
    section = {"offline": ranked_alike(tmp_path), "judged": {}, "live": LIVE | {"start": "2020-01-01"}}
    line = json.loads(rollout(a_config(tmp_path, section), "--json").stdout)
    assert "retention has deleted good answers" in line["stages"][2]["notes"][0]


def test_what_is_refused(tmp_path: Path) -> None:
    """With the key, and what to write instead."""
    recorded(tmp_path, "vector.json", 2)
    passed = {"a": "vector.json", "b": "vector.json"}
    sections: list[tuple[dict[str, Any], str]] = [
        ({"offline": {"a": "x", "b": "y"}}, "offline.a: 'x' is neither a suite (none is configured) nor a file"),
        ({"offline": {"a": "ragwatch.yaml", "b": "y"}}, "offline.a: ragwatch.yaml: is not what `ragwatch canary"),
        ({"offline": passed, "judged": {"a": "x", "b": "y"}}, "judged.a: "),
    ]
    for section, message in sections:
        assert f"rollout.{message}" in refused(rollout(a_config(tmp_path, section)))
    assert "rollout: is missing; add a section" in refused(rollout(a_config(tmp_path, {}, rollout=None)))


@pytest.mark.slow
def test_the_example_does_what_its_page_says(tmp_path: Path) -> None:
    """Every command of the page runs as printed; the exit code and the figures are those that it names."""
    page = (EXAMPLE / "README.md").read_text()
    said = re.search(r"MRR rises from (\.\d+) to (\d) at the same recall", page)
    assert said is not None
    commands = re.findall(r"(?m)^ragwatch (.*?) *#", page)
    codes = []
    for line in commands:
        words = re.sub(r"(?<=--state )\S+", str(tmp_path / "state"), line).split()
        more = ["--json"] if words[0] == "rollout" else []
        call = [sys.executable, "-m", "ragwatch", *words, *more]
        state = os.environ | {"RAGWATCH_STATE": str(tmp_path / "state")}
        ended = subprocess.run(call, cwd=ROOT, env=state, capture_output=True, text=True, check=False)
        codes.append(ended.returncode)
        if more:
            mrr, _, recall = json.loads(ended.stdout)["stages"][0]["metrics"]
            assert (mrr["a"], mrr["b"], recall["difference"]) == (float(said[1]), float(said[2]), 0.0)
    assert codes == [0, 13, 1]


def likes(number: int) -> bool:
    """Whether the user of an answer is happy, of which the odd ones are of hybrid search."""
    return happy(number // 2, is_b=number % 2 == 1)


def row(number: int, **parts: Any) -> dict[str, Any]:
    """An answer of a variant: `hybrid` where its number is odd."""
    text = f"The warranty of model {number // 2} lasts two years."
    metadata = {"variant": "hybrid" if number % 2 else "vector"}
    at = datetime.fromtimestamp(NOW - 5000.0 + number, UTC).isoformat()
    question = f"How long is the warranty of model {number // 2}?"
    answer = {"id": f"r{number}", "at": at, "question": question, "contexts": [text], "answer": text}
    return answer | {"metadata": metadata} | parts


def watched(folder: Path, feedback: object) -> str:
    """A configuration with the live stage; the two before are passed."""
    stages = {"offline": ranked_alike(folder), "judged": {}, "live": LIVE | {"share": 0.5, "feedback": feedback}}
    sources = [{"kind": "tail", "name": "app", "path": f"{folder}/app.jsonl"}]
    return a_config(folder, stages, sources=sources, sampling={"probability": 1.0})


def live_stage(folder: Path, feedback: object) -> dict[str, Any]:
    """The live stage after the log was read once."""
    result = rollout(watched(folder, feedback), "--json")
    assert result.exception is None
    stage: dict[str, Any] = json.loads(result.stdout)["stages"][2]
    return stage


def logged(folder: Path, *rows: dict[str, Any]) -> None:
    """A log, read once by the daemon."""
    log_of(folder / "app.jsonl", *rows)
    assert run(RunArguments(path=Path(watched(folder, None)), once=True, state=folder / "state")) == 0


@pytest.mark.costly
@pytest.mark.parametrize("place", ["in the record", "in a line of its own"])
def test_thumbs_as_readme_logs_them_decide(tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str) -> None:
    """In the record of the answer, or in a line `feedback_for`: users stop the variant that half of them dislike."""
    words = {number: "up" if likes(number) else "down" for number in range(ANSWERS)}
    if place == "in the record":
        logged(tmp_path, *(row(number, thumbs=word) for number, word in words.items()))
    else:
        rows = [row(number) for number in words]
        logged(tmp_path, *rows, *({"feedback_for": f"r{number}", "thumbs": word} for number, word in words.items()))
    capsys.readouterr()
    for feedback in ("user_score", "metadata.thumbs"):
        stage = live_stage(tmp_path, feedback)
        user = stage["metrics"][0]
        assert (stage["outcome"], stage["reason"]) == ("stopped", "B is worse in user"), feedback
        assert (user["metric"], user["decision"], user["b"] < user["a"]) == ("user", "worse", True), feedback


@pytest.mark.costly
def test_feedback_that_comes_later_replaces_what_was_logged(tmp_path: Path) -> None:
    """All thumbs are up in the log; those that `/v1/feedback` stores afterwards count, and so do they without any."""
    logged(tmp_path, *(row(number, metadata=row(number)["metadata"] | {"thumbs": "up"}) for number in range(ANSWERS)))
    assert live_stage(tmp_path, "metadata.thumbs")["metrics"][0]["b"] == 1.0
    later = [Feedback((key_of("app", f"r{number}"),), float(likes(number)), NOW, "push") for number in range(ANSWERS)]
    store = SqliteStore(tmp_path / "state")
    store.admit(replace(an_admission(), feedback=later, at=NOW))
    store.close()
    for feedback in ("metadata.thumbs", "user_score"):
        assert live_stage(tmp_path, feedback)["reason"] == "B is worse in user"


def test_the_report_says_how_many_scores_there_are(tmp_path: Path) -> None:
    """Where the judge decides, although users have said something."""
    logged(tmp_path, *(row(number, thumbs="up") for number in range(60)))
    begins = "no user metric: set `rollout.live.feedback` to user_score (60 answers"
    assert any(note.startswith(begins) for note in live_stage(tmp_path, None)["notes"])
