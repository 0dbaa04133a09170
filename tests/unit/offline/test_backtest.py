"""`ragwatch backtest`: alarms where the scores dropped and nowhere else; files, stores and charts."""

import json
import random
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.command_line import command, configured, jsonl, log_of, refused
from support.draws import draws
from support.kit import JUDGE, Clock
from support.watched import faithful, settle

from ragwatch.config.drift import DriftOptions
from ragwatch.model.quantities import Quantity
from ragwatch.offline.chart import chart
from ragwatch.offline.replay import ScoredAnswer, lowest_probabilities, replay
from ragwatch.pipeline.drift.rules import DriftRules
from ragwatch.pipeline.drift.scores import KIND, ScoreDriftLoop
from ragwatch.ports import LoopContext
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry

MINUTE = 60.0
START = 1_760_000_000
Row = dict[str, Any]
SAMPLED: dict[str, Any] = {"routes": ["search"], "sampling": {"probability": 0.5}}
run = partial(command, "backtest")


def rows(good: int = 2500, bad: int = 700, *, seed: int = 1, **more: Any) -> list[Row]:
    """Claim ratios of mean .9, then of .7, one a minute."""
    rng = random.Random(seed)
    found = []
    for index in range(good + bad):
        claims, mean = rng.randint(2, 8), 0.9 if index < good else 0.7
        ratio = sum(rng.random() < mean for _ in range(claims)) / claims
        found.append({"at": START + MINUTE * index, "faithfulness": ratio, **more})
    return found


def as_csv(some: Sequence[Row]) -> str:
    """Rows as CSV; None is empty."""
    names = list(some[0])
    lines = [",".join("" if row[name] is None else str(row[name]) for name in names) for row in some]
    return "\n".join([",".join(names), *lines]) + "\n"


@pytest.mark.costly
@pytest.mark.parametrize("shuffled", [False, True])
def test_a_drop_pages_and_nothing_else_does(tmp_path: Path, *, shuffled: bool) -> None:
    """One page within hundred scores of the drop, of CSV or JSON lines in any order; its index is the row's place."""
    file, some = tmp_path / "scores", rows()
    if shuffled:
        random.Random(2).shuffle(some)
    file.write_text(jsonl(*some) if shuffled else as_csv(some))
    result = run(file, "--json")
    assert (result.return_value, result.exception) == (0, None)
    found = json.loads(result.stdout)
    assert found["scores"] == 3200
    [alarm] = found["alarms"]
    assert (alarm["quantity"], alarm["route"]) == ("faithfulness", "other")
    assert START + 2500 * MINUTE < alarm["at"] < START + 2600 * MINUTE
    assert alarm["at"] == some[alarm["index"]]["at"]
    assert alarm["evidence"] >= alarm["threshold"] == 30.0
    assert found["streams"][0]["watched"] == 1759  # all but those of the first day
    assert 0.84 < found["streams"][0]["baseline"] < 0.89


@pytest.mark.costly
def test_low_is_good_where_it_is(tmp_path: Path) -> None:
    """Contradictions that become fewer are no alarm, ones that become more are."""
    file = tmp_path / "scores.csv"
    some = rows()
    falling = [{"at": row["at"], "contradiction": row["faithfulness"]} for row in some]
    file.write_text(as_csv(falling))
    assert json.loads(run(file, "--json").stdout)["alarms"] == []
    file.write_text(as_csv([{**row, "contradiction": 1.0 - row["contradiction"]} for row in falling]))
    assert len(json.loads(run(file, "--json").stdout)["alarms"]) == 1


@pytest.mark.costly
def test_routes_and_quantities_share_the_budget(tmp_path: Path) -> None:
    """Two routes with two quantities each: four detectors, four times the threshold; gaps are passed over."""
    both = [
        {**row, "route": route, "need_recall": None if index % 3 else 0.5, "probability": 0.5}
        for route, seed in (("a", 1), ("b", 2))
        for index, row in enumerate(rows(2400, 0, seed=seed))
    ]
    file = tmp_path / "scores.csv"
    file.write_text(as_csv(both))
    found = json.loads(run(file, "--json", "--set", "reference=600").stdout)
    assert found["scores"] == 2 * (2400 + 800)
    assert {each["threshold"] for each in found["streams"]} == {120.0}
    assert [each["quantity"] for each in found["streams"] if each["route"] == "a"] == ["faithfulness", "need_recall"]
    fewer = json.loads(run(file, "--json", "--set", "quantities=[faithfulness]").stdout)
    assert {each["threshold"] for each in fewer["streams"]} == {60.0}


def test_too_few_scores_are_no_verdict(tmp_path: Path) -> None:
    """Exit code 3 while every detector would still be learning."""
    file = tmp_path / "scores.csv"
    file.write_text(as_csv(rows(500, 0)))
    assert "learning" in run(file).stdout
    assert run(file, "--set", "reference=100").return_value == 3  # a day of them has not passed
    assert run(file, "--set", "reference=100", "--set", "reference_time=1h").return_value == 0


@pytest.mark.costly
def test_false_pages_are_counted_and_acknowledged(tmp_path: Path) -> None:
    """Before the given time they are false, so many a month; the sooner acknowledged, the more often raised again."""
    file = log_of(tmp_path / "scores.jsonl", *rows(2500, 500))
    false = [
        json.loads(run(file, "--json", "--quiet-until", START + minutes * MINUTE).stdout)["streams"][0]
        for minutes in (0, 2500, 3000)
    ]
    a_month = [stream["false_alarms_per_month"] for stream in false]
    assert a_month == [None, 0.0, pytest.approx(30.0 / (1558 / 1440))]
    log_of(file, *rows(2500, 1000))
    found = (run(file, "--json", "--acknowledge-after", after).stdout for after in ("30d", "5h", "1h"))
    pages = [len(json.loads(text)["alarms"]) for text in found]
    assert pages[0] == 1 < pages[1] < pages[2]


@pytest.mark.costly
def test_the_picture_shows_every_page(tmp_path: Path) -> None:
    """Well-formed SVG: a mark for each alarm, a gap where nothing was scored, and no script."""
    some = rows()
    del some[500:1000]
    file, picture = tmp_path / "scores.jsonl", tmp_path / "out.svg"
    file.write_text(jsonl(*some))
    result = run(file, "--svg", picture, "--set", "reference=1500")
    assert result.return_value == 0
    assert "alarm 20" in result.stdout
    tree = ET.fromstring(picture.read_text(encoding="utf-8"))  # noqa: S314 - our own
    name = "{http://www.w3.org/2000/svg}"
    assert len(tree.findall(f"{name}circle")) == 1
    bands = [each for each in tree.findall(f"{name}polygon") if each.get("class") == "band"]
    assert len(bands) >= 2
    assert tree.findall(f".//{name}script") == []


def test_the_picture_of_a_beginning_says_that_it_is_one() -> None:
    """While learning there is no evidence to draw; a single score is drawn too."""
    rules = DriftRules("", "", (Quantity.FAITHFULNESS,), ("<b>",))
    picture = chart(replay(rules, [ScoredAnswer(0, 5.0, "<b>", 1.0, {Quantity.FAITHFULNESS: 1.0})], 60.0))
    assert "no baseline yet" in picture
    assert "&lt;b&gt;" in picture
    assert "<b>" not in picture


def test_what_is_wrong_in_a_file_is_named(tmp_path: Path) -> None:
    """With its line, and as a usage error."""
    file = tmp_path / "scores"
    for text, message in (
        ("at,quality\n1,0.5\n", "no column is a quantity; name one of: faithfulness"),
        ("", "no column is a quantity"),
        ("at,faithfulness\n1,1.5\n", "scores line 2: faithfulness: must be a number from 0 to 1"),
        ("at,faithfulness\n1,good\n", "scores line 2: faithfulness: must be a number from 0 to 1"),
        (f"at,faithfulness\n1,{'x' * 200_000}\n", "or empty, not 'xxxxxxxxxxxx...xxxxxxxxxxxxx'"),
        ("at,faithfulness\n,1\n", "scores line 2: at: is missing"),
        ("at,faithfulness\nyesterday,1\n", "scores line 2: at: must be ISO 8601"),
        ("at,faithfulness,probability\n1,1,0\n", "scores line 2: probability: must be at least 1e-12"),
        ("at,faithfulness,probability\n1,1,1e-320\n", "scores line 2: probability: must be at least 1e-12"),
        ('{"at": 1, "faithfulness": true}\n', "must be a number from 0 to 1"),
        ('{"at": 1, "faithfulness": 1}\n{"at"\n', "scores line 2: is not JSON"),
        ('{"at": 1}\n[]\n', "scores line 2: is not an object"),
    ):
        file.write_text(text)
        assert message in refused(run(file))


def test_what_is_wrong_on_the_command_line_is_named(tmp_path: Path) -> None:
    """As a usage error."""
    file = tmp_path / "scores.csv"
    file.write_text(as_csv(rows(10, 0)))
    for arguments, message in (
        ([], "FILE: is missing"),
        (["gone.csv"], "cannot be read"),
        ([file, "--svg", "/no/where.svg"], "--svg /no/where.svg: cannot be written: No such file or directory"),
        ([file, "--set", "reference"], "is not KEY=VALUE"),
        ([file, "--set", "refrence=5"], "drift.refrence: is not a known key; did you mean `reference`?"),
        ([file, "--set", "controls={other: b}"], "'b' is no route"),
        ([file, "--acknowledge-after", "soon"], "--acknowledge-after: 'soon' is not a duration"),
        ([file, "--quiet-until", "soon"], "--quiet-until: must be ISO 8601"),
    ):
        assert message in refused(run(*arguments))


@pytest.mark.costly
def test_the_store_replays_as_the_daemon_would(tmp_path: Path) -> None:
    """Without FILE the scores of `drift.judge`, of its newest version: the daemon's alarm, at its score."""
    judges = [{"name": "first", "kind": "lexical"}, {"name": JUDGE, "kind": "lexical", "probability": 0.5}]
    path = configured(tmp_path, judges=judges, **SAMPLED)
    store = SqliteStore(tmp_path / "state")
    settle(store, faithful(50), 5000, version="older", probability=0.25)
    settle(store, faithful(500, 100), probability=0.25)
    lowest = {"search": 0.25, "other": 0.25}
    quantities = DriftOptions().quantities
    rules = DriftRules(JUDGE, "scripted-1", quantities, ("search", "other"), reference=300, lowest=lowest)
    clock = Clock(START + 1e8)
    drift = ScoreDriftLoop(rules, LoopContext(store, Telemetry(), clock), judge_moved=lambda: False)
    drift.resume()
    drift._step()
    [raised] = store.runs(KIND, "faithfulness/search", 5)
    store.close()
    asked = ("--config", path, "--json", "--set", "reference=300", "--set", "reference_time=1s")
    found = json.loads(run(*asked, "--set", f"judge={JUDGE}").stdout)
    [alarm] = [each for each in found["alarms"] if each["quantity"] == "faithfulness"]
    assert (alarm["at"], alarm["evidence"], alarm["route"]) == (raised.at, raised.body["evidence"], "search")
    other = run(*asked)
    assert (json.loads(other.stdout)["scores"], other.return_value) == (0, 3)
    assert "drift.judge: 'claude'" in refused(run(*asked, "--set", "judge=claude"))


def test_routes_are_those_of_the_configuration(tmp_path: Path) -> None:
    """In the store of a daemon that runs, and in a file, where what is not among them is other."""
    store = SqliteStore(tmp_path / "state")
    settle(store, faithful(50), probability=0.5)
    result = run("--config", configured(tmp_path, **SAMPLED), "--json")
    store.close()
    assert (result.return_value, json.loads(result.stdout)["scores"] > 0) == (3, True)
    file = log_of(tmp_path / "scores.jsonl", *rows(50, 0, route="search"), *rows(50, 0, route="secret"))
    result = run(file, "--config", configured(tmp_path, **SAMPLED), "--json")
    assert [each["route"] for each in json.loads(result.stdout)["streams"]] == ["search", "other"]
    assert result.return_value == 3


def test_columns_may_hold_whole_answers(tmp_path: Path) -> None:
    """However long they are, and whatever separates their lines; a header without rows is no data."""
    file = tmp_path / "scores"
    file.write_text(f'answer,at,faithfulness\n"{"x" * 200_000}",1,1\n"a\u2028b\n\x85c",2,1\n', encoding="utf-8")
    assert json.loads(run(file, "--json").stdout)["scores"] == 2
    row = json.dumps({"at": 1, "faithfulness": 1, "answer": "a\u2028b\x85c"}, ensure_ascii=False)
    file.write_text(f"{row}\n{row}\n", encoding="utf-8")
    assert json.loads(run(file, "--json").stdout)["scores"] == 2
    file.write_text("at,faithfulness\n")  # its columns are right, so the file is not wrong
    result = run(file, "--json")
    assert (result.return_value, result.stderr) == (3, f"no scores in {file}\n")
    assert json.loads(result.stdout)["scores"] == 0


def test_against_a_control_nothing_is_learnt(tmp_path: Path) -> None:
    """Of two routes that run side by side, one falls: it pages without a reference, and the control has no row."""
    pairs = zip(rows(200, 400, route="new"), rows(600, 0, seed=2, route="old"), strict=True)
    file = log_of(tmp_path / "scores.jsonl", *(each for pair in pairs for each in pair))
    found = json.loads(run(file, "--json", "--set", "controls={new: old}").stdout)
    assert [(each["route"], each["scores"], each["baseline"]) for each in found["streams"]] == [("new", 600, None)]
    assert [each["route"] for each in found["alarms"]] == ["new"]
    assert found["alarms"][0]["at"] > START + 200 * MINUTE


@pytest.mark.costly
@settings(max_examples=draws(25))
@given(st.lists(st.tuples(st.floats(0.0, 1.0), st.booleans(), st.floats(0.05, 1.0)), max_size=120))
def test_replay_loses_and_invents_no_score(some: list[tuple[float, bool, float]]) -> None:
    """Every score is in one trace; evidence is never negative; a page has reached its threshold; it can be drawn."""
    lines = [
        ScoredAnswer(index, MINUTE * index, "a" if first else "b", probability, {Quantity.FAITHFULNESS: value})
        for index, (value, first, probability) in enumerate(some)
    ]
    few: dict[str, Any] = {"false_alarm_days": 0.01, "reference": 30, "lowest": lowest_probabilities(lines)}
    rules = DriftRules("", "", (Quantity.FAITHFULNESS,), ("a", "b"), **few)
    traces = replay(rules, lines, 10 * MINUTE)
    assert sorted(line.index for trace in traces for line in trace.answers) == list(range(len(lines)))
    for trace in traces:
        assert all(share >= 0.0 for _, share in trace.points)
        assert all(alarm.evidence >= alarm.threshold for _, alarm in trace.alarms)
    if traces:
        ET.fromstring(chart(traces))  # noqa: S314 - our own
