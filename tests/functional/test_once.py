"""`ragwatch run --once` over a log with faults: everything adds up, and a second run adds nothing."""

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from functional.daemon import SEEN, parse_series
from functional.forked import run_forked
from support.answering import answering
from support.patience import DEADLINE, wait_until

from ragwatch.stores.sqlite.store import SqliteStore

GOOD, BAD = 1502, 120

# Twelve kinds of bad lines, and the reason each must be counted under.
FAULTS: dict[str, tuple[str, Callable[[str], bytes]]] = {
    "torn": ("torn_json", lambda good: good[: len(good) // 2].encode()),
    "list": ("not_an_object", lambda _: b'["a", "list"]'),
    "number": ("not_an_object", lambda _: b"42"),
    "nan": ("not_finite", lambda good: good.replace('"score": 0.5', '"score": NaN').encode()),
    "huge number": ("number_too_large", lambda good: good.replace('"score": 0.5', '"score": ' + "9" * 5000).encode()),
    "deep": ("too_deep", lambda _: b'{"question":' + b"[" * 10_000 + b"]" * 10_000 + b"}"),
    "answer null": ("wrong_type", lambda good: json.dumps({**json.loads(good), "answer": None}).encode()),
    "no contexts": ("missing_field", lambda good: json.dumps(_without(good, "contexts")).encode()),
    "contexts a number": ("wrong_type", lambda good: json.dumps({**json.loads(good), "contexts": 7}).encode()),
    "foreign": ("unknown_format", lambda _: b'{"level": "info", "message": "cache warmed"}'),
    "nul bytes": ("binary", lambda good: good.replace("river", "riv\x00er").encode()),
    "too long": ("line_too_long", lambda good: good.replace("river", "river" * 60_000).encode()),
}


def _without(good: str, key: str) -> dict[str, object]:
    return {name: value for name, value in json.loads(good).items() if name != key}


def _good(number: int) -> str:
    subject = ("river", "bridge", "mill", "tower")[number % 4]
    return json.dumps(
        {
            "id": f"request-{number}",
            "at": 1_700_000_000 + number,
            "question": f"What is said of the {subject} by the river?",
            "contexts": [{"id": "d1", "text": f"The old {subject} stands by the river since 1820.", "score": 0.5}],
            "answer": f"The old {subject} stands by the river.",
            "route": ("search", "support", "elsewhere")[number % 3],
        }
    )


def _write_log(path: Path) -> Counter[str]:
    """1,502 good lines with 120 bad ones of 12 kinds at random places; returns the bad ones by reason."""
    rng = random.Random(11)
    expected: Counter[str] = Counter()
    lines = [_good(number).encode() for number in range(GOOD)]
    kinds = list(FAULTS.values())
    for number in range(BAD):
        reason, spoil = kinds[number % len(kinds)]
        expected[reason] += 1
        lines.insert(rng.randrange(len(lines) + 1), spoil(_good(GOOD + number)))
    path.write_bytes(b"\n".join(lines) + b"\n")
    return expected


def _run(config: Path) -> dict[str, float]:
    done = run_forked("run", "--once", "--state", config.parent / "kept", "--config", config, check=True)
    return parse_series(done.stdout)


def _sum(series: dict[str, float], name: str) -> float:
    return sum(value for key, value in series.items() if key.partition("{")[0] == name)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration that judges all of route support, and a quarter of the rest."""
    path = tmp_path / "ragwatch.yaml"
    path.write_text(
        f"""
state: {tmp_path}/state
routes: [search, support]
sources: [{{kind: tail, name: app, path: "{tmp_path}/log/*.jsonl", max_line_bytes: 262144}}]
sampling: {{probability: 0.25, routes: {{support: 1.0}}}}
"""
    )
    (tmp_path / "log").mkdir()
    return path


def test_t18_everything_adds_up_and_a_second_run_adds_nothing(config: Path, tmp_path: Path) -> None:
    """T18: seen = good + bad, rejected is exact by reason, drawn = judged; a second run adds nothing."""
    expected = _write_log(tmp_path / "log" / "rag.jsonl")
    first = _run(config)

    assert first['ragwatch_requests_seen_total{source="app"}'] == GOOD + BAD
    rejected = {
        key.split('reason="')[1].split('"')[0]: value
        for key, value in first.items()
        if key.startswith("ragwatch_requests_rejected_total{") and value
    }
    assert rejected == dict(expected)
    drawn = _sum(first, "ragwatch_samples_drawn_total")
    assert first['ragwatch_samples_drawn_total{route="support"}'] == GOOD // 3 + 1
    assert drawn == _sum(first, "ragwatch_samples_judged_total")
    assert first["ragwatch_samples_pending"] == 0
    assert _sum(first, "ragwatch_samples_unjudged_total") == 0
    assert first['ragwatch_faithfulness_samples{corrected="no",judge="embedded",route="support",window="1d"}'] > 0

    second = _run(config)
    counted = {key for key in first if key.startswith("ragwatch_") and "_total" in key}
    counted = {key for key in counted if "judge_calls" not in key and "judge_t" not in key and "judge_c" not in key}
    assert {key: second[key] for key in counted} == {key: first[key] for key in counted}


def test_what_it_says_of_a_log_does_nothing_to_a_terminal(config: Path, tmp_path: Path) -> None:
    """Neither the name of a file nor a text in it."""
    (tmp_path / "log" / "a\x1b]52;c;aGk\x07\x9b2J\u202e.jsonl").write_text('{"\u001b[2J": "\\u009b2J"}\n')
    said = _trial(config).stderr
    assert "could be read" in said
    assert said.replace("\n", "").isprintable()


def _trial(config: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """`ragwatch run --once`, whatever comes of it. Its temporary directories go beside the configuration."""
    scratch = config.parent / "scratch"
    scratch.mkdir(exist_ok=True)
    return run_forked("run", "--once", "--config", config, *options, env=os.environ | {"TMPDIR": str(scratch)})


def test_a_trial_reads_everything_and_leaves_nothing_behind(config: Path, tmp_path: Path) -> None:
    """Twice the same figures, from the beginning although `start` is `end`: no state is made, and none is left."""
    (tmp_path / "log" / "rag.jsonl").write_text("".join(_good(number) + "\n" for number in range(50)))
    for _ in range(2):
        done = _trial(config)
        assert done.returncode == 0, done.stderr
        assert f"{SEEN} 50.0" in done.stdout
    assert not (tmp_path / "state").exists()
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_mended_mapping_shows_the_new_figures(config: Path, tmp_path: Path) -> None:
    """A log in a shape of its own: the trial says what is wrong and where; after the mapping is mended it is read."""
    log = tmp_path / "log" / "rag.jsonl"
    log.write_text('{"q": "Where?", "docs": ["By the river."], "a": "By the river."}\n' * 30)
    done = _trial(config)
    assert done.returncode == 1
    assert "source app: none of 30 records could be read: 30 unknown_format" in done.stderr
    assert f"first: {log}:1: " in done.stderr
    mapping = "format: custom, mapping: {question: q, contexts: docs, answer: b}"
    config.write_text(config.read_text().replace("max_line_bytes", f"{mapping}, max_line_bytes"))
    done = _trial(config)
    assert (done.returncode, "30 missing_field" in done.stderr, f"{log}:1: answer" in done.stderr) == (1, True, True), (
        done.stderr
    )
    config.write_text(config.read_text().replace("answer: b", "answer: a"))
    done = _trial(config)
    assert done.returncode == 0, done.stderr
    assert f"{SEEN} 30.0" in done.stdout
    assert 'ragwatch_requests_rejected_total{source="app",reason="missing_field"} 0.0' in done.stdout.replace(
        'reason="missing_field",source="app"', 'source="app",reason="missing_field"'
    )


def test_a_trial_does_not_move_the_daemons_cursor(config: Path, tmp_path: Path) -> None:
    """What the daemon would read next it still reads after a trial, and a state that is named is kept and told of."""
    log = tmp_path / "log" / "rag.jsonl"
    log.write_text("".join(_good(number) + "\n" for number in range(20)))
    done = _trial(config, "--state", str(tmp_path / "state"))
    assert f"{SEEN} 20.0" in done.stdout
    assert "--state is the `state` of the configuration" in done.stderr
    with log.open("a") as more:
        more.write("".join(_good(number) + "\n" for number in range(20, 30)))
    with closing(SqliteStore(tmp_path / "state")) as store:
        before = store.cursors("app")
    assert f"{SEEN} 30.0" in _trial(config).stdout
    with closing(SqliteStore(tmp_path / "state")) as store:
        assert store.cursors("app") == before
        locked = _trial(config, "--state", str(tmp_path / "state"))
    assert (locked.returncode, "is locked by process" in locked.stderr) == (1, True)


def test_nothing_to_read_is_too_little(config: Path, tmp_path: Path) -> None:
    """An empty directory is exit code 3, a missing one is 1, and both are told; without --once there is no --state."""
    done = _trial(config)
    assert (done.returncode, "nothing to read" in done.stderr) == (3, True)
    (tmp_path / "log").rmdir()
    done = _trial(config)
    assert (done.returncode, f"source app: {tmp_path}/log: no such directory" in done.stderr) == (1, True)
    done = run_forked("run", "--state", "x", "--config", config)
    assert (done.returncode, "--state is for --once" in done.stderr) == (2, True)


def test_a_judge_that_refuses_is_told(config: Path, tmp_path: Path) -> None:
    """Answers that a judge with an expired key could not read are no success: exit code 1, and the judge is named."""
    (tmp_path / "log" / "rag.jsonl").write_text(_good(1) + "\n")
    with answering(lambda _: (401, {"error": {"message": "Incorrect API key", "code": "invalid_api_key"}}, {})) as (
        url,
        _,
    ):
        judge = {"name": "llm", "kind": "openai", "base_url": f"{url}/v1", "model": "m", "allow_unknown_price": True}
        config.write_text(f"{config.read_text()}judges: [{json.dumps(judge)}]\n")
        done = _trial(config)
    assert (done.returncode, "judge llm: 1 of 1 sampled answers are not judged" in done.stderr) == (1, True), (
        done.stderr
    )


def test_a_trial_that_is_terminated_leaves_nothing_behind(config: Path, tmp_path: Path) -> None:
    """SIGTERM in the middle of a long log: the temporary state is removed all the same."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    config.write_text(config.read_text().replace("probability: 0.25", "probability: 1.0"))
    (tmp_path / "log" / "rag.jsonl").write_text("".join(_good(number) + "\n" for number in range(10_000)))
    command = [sys.executable, "-m", "ragwatch", "run", "--once", "--config", str(config)]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ | {"TMPDIR": str(scratch)}
    )
    try:
        wait_until(lambda: list(scratch.glob("*/ragwatch.db")) or process.poll() is not None, "it has begun")
        process.terminate()
        assert process.wait(DEADLINE) == 128 + signal.SIGTERM
    finally:
        process.kill()
        process.wait()
    assert list(scratch.iterdir()) == []
