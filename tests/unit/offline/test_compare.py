"""`ragwatch compare`: two logs, two variants in one log or in live traffic, two retrievers; what is paired and said."""

import json
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.command_line import command, configured, log_of, refused
from support.kit import JUDGE, a_draw, a_reading, a_verdict, an_admission, an_evidence, an_unjudged
from support.programs import free_port
from support.retrievers import Bm25, serving

from ragwatch.config import load
from ragwatch.offline.compare import live_variants
from ragwatch.ports import Retention
from ragwatch.statistics.verdict import Verdict
from ragwatch.stores.sqlite.store import SqliteStore

TRUE, FALSE = "The old mill stands by the river.", "Zebras invented the telegraph."
TEXTS = {f"d{number}": f"Room {number} is painted in the colour number {number}." for number in range(35)}

compare = partial(command, "compare")
NOW = time.time()
JUDGES = {"judges": [{"name": JUDGE, "kind": "lexical"}]}


def row(number: int, answer: str, **parts: Any) -> dict[str, Any]:
    """A sample that its context supports, or not."""
    return {"question": f"Where is mill {number}?", "contexts": [TRUE], "answer": answer, **parts}


@pytest.mark.costly
def test_two_logs(tmp_path: Path) -> None:
    """Paired by question whatever the order; rejected rows are reported; worse is exit code 1."""
    good = log_of(tmp_path / "good.jsonl", *(row(number, TRUE) for number in range(40)))
    bad = log_of(tmp_path / "bad.jsonl", *(row(number, FALSE) for number in reversed(range(41))), '{"torn')
    result = compare(good, bad)
    assert result.return_value == 1
    for shown in (
        "40 questions are on both sides (paired); only in A 0, in B 1",
        "bad.jsonl: 1 rows are rejected and are left out",
        "faithfulness in people's terms: A between 0.",
        "; the conclusion is about the change of the judge's means\n",
        "40 questions lost from A to B, those that lost most first:",
        "(Where is mill 7?): faithfulness 1.000 -> 0.000",
    ):
        assert shown in result.stdout
    healed = compare(bad, good, "--json")
    line = json.loads(healed.stdout)
    faithful = next(each for each in line["metrics"] if each["metric"] == "faithfulness")
    assert (faithful["conclusion"], faithful["n"], faithful["wins"]) == ("better", 40, 40)
    assert list(line["levels"]) == ["faithfulness"]  # the one quantity whose error is known
    assert line["levels"]["faithfulness"]["a"]["value"] < 0.5 < line["levels"]["faithfulness"]["b"]["value"]
    assert (healed.return_value, line["lost"]) == (0, [])
    lost = json.loads(compare(good, bad, "--json").stdout)["lost"]
    assert {one["question"] for one in lost} == {f"Where is mill {number}?" for number in range(40)}


def test_logs_that_are_not_paired_or_not_judged(tmp_path: Path) -> None:
    """It is said; two of the same quality are noise; samples without answers have no metric: exit code 3."""
    a = log_of(tmp_path / "a.jsonl", *(row(number, TRUE) for number in range(40)))
    b = log_of(tmp_path / "b.jsonl", *(row(100 + number, TRUE) for number in range(40)))
    result = compare(a, b)
    assert result.return_value == 0
    assert "0 questions are on both sides (NOT paired, so the interval is wider)" in result.stdout
    assert "faithfulness: may be noise: the interval contains 0" in result.stdout
    empty = log_of(tmp_path / "empty.jsonl", row(1, " "))
    result = compare(empty, empty)
    assert result.return_value == 3
    assert "nothing can be compared" in result.stdout
    assert "empty.jsonl: 1 samples could not be judged" in result.stdout


def test_two_variants_of_one_log(tmp_path: Path) -> None:
    """Variants are selected by a metadata key, with the same arithmetic."""
    rows = [row(number, TRUE, metadata={"variant": "blue"}) for number in range(30)]
    rows += [row(number, FALSE, metadata={"variant": "green"}) for number in range(30)]
    rows += [row(50, TRUE)]
    log = log_of(tmp_path / "log.jsonl", *rows)
    line = json.loads(compare("green", "blue", "--log", log, "--json").stdout)
    assert (line["shared"], line["only_a"], line["only_b"]) == (30, 0, 0)
    assert line["metrics"][0]["conclusion"] == "better"
    unknown = refused(compare("green", "red", "--log", log))
    assert "red: no sample has this value of 'variant' in its metadata; values: blue, green" in unknown


def test_no_text_commands_the_terminal(tmp_path: Path) -> None:
    """Categories come out of logs: escape sequences in them are not printed."""
    rows = [row(number, TRUE, metadata={"category": f"a\x1b[{number % 2}J"}) for number in range(4)]
    log = log_of(tmp_path / "log.jsonl", *rows)
    result = compare(log, log)
    assert "  a\ufffd[1J" in result.stdout
    assert "\x1b" not in result.stdout


def suites(path: Path, **targets: str) -> str:
    """A configuration with one suite for each retriever, of the same canaries."""
    items = [{"query": f"colour of room {number}", "expected": [name]} for number, name in enumerate(TEXTS)]
    body = {"query": "{{ query }}", "k": "{{ k }}"}
    probe = {"kind": "http", "body": body, "contexts": "hits", "score": "similarity"}
    found = [
        {"suite": name, "k": [1, 5], "items": items, "probe": probe | {"url": f"{address}/search"}}
        for name, address in targets.items()
    ]
    sources = f"state: {path.parent}/state\nsources: [{{kind: tail, name: app, path: /nowhere/*.log}}]\n"
    path.write_text(f"{sources}canaries: {json.dumps(found)}\n")
    return str(path)


@pytest.mark.costly
def test_two_retrievers(tmp_path: Path) -> None:
    """Two suites of one configuration, or two configurations: the one without half of its documents is worse."""
    whole, half = Bm25(TEXTS), Bm25(TEXTS)
    half.delete([f"d{number}" for number in range(0, 35, 2)])
    with serving(whole.route()) as first, serving(half.route()) as second:
        both = suites(tmp_path / "both.yaml", whole=first, half=second)
        result = compare("whole", "half", "--config", both, "--json")
        old, new = suites(tmp_path / "old.yaml", docs=second), suites(tmp_path / "new.yaml", docs=first)
        healed = compare(old, new)
    line = json.loads(result.stdout)
    metrics = {each["metric"]: each for each in line["metrics"]}
    assert (result.return_value, line["unit"], line["shared"], line["paired"]) == (1, "canaries", 35, True)
    assert metrics["recall@5"]["losses"] == 18
    assert metrics["recall@5"]["difference"] == pytest.approx(-18 / 35)
    assert {"mrr@5", "precision@1", "ndcg@5", "success"} <= set(metrics)
    assert healed.return_value == 0
    assert "recall@5" in healed.stdout
    assert "better" in healed.stdout


def test_a_retriever_that_is_down_has_no_figures(tmp_path: Path) -> None:
    """Failures are reported and left out; they do not count as 0."""
    with serving(Bm25(TEXTS).route()) as address:
        path = suites(tmp_path / "both.yaml", up=address, down=f"http://127.0.0.1:{free_port()}")
        result = compare("up", "down", "--config", path)
    assert result.return_value == 3
    assert "B: 35 canaries failed and are left out" in result.stdout


@pytest.mark.costly
def test_both_sides_are_asked_for_as_many(tmp_path: Path) -> None:
    """Suites with other `k` are compared at those they share; intervals are those that the configuration wants."""
    with serving(Bm25(TEXTS).route()) as address:
        path = Path(suites(tmp_path / "both.yaml", few=address, many=address))
        text = path.read_text().replace('"suite": "many", "k": [1, 5]', '"suite": "many", "k": [1, 5, 30]')
        path.write_text(text.replace("of room ", "of room x"))  # every text is as near: most are not in the first 5
        sure = json.loads(compare("few", "many", "--config", str(path), "--json").stdout)
        path.write_text(path.read_text() + "estimates: {confidence: 0.8}\n")
        rash = json.loads(compare("few", "many", "--config", str(path), "--json").stdout)
    metrics = [{each["metric"]: each for each in line["metrics"]} for line in (sure, rash)]
    assert metrics[0]["success"]["difference"] == 0.0
    assert metrics[1]["recall@5"]["high"] < metrics[0]["recall@5"]["high"]


def test_what_is_refused(tmp_path: Path) -> None:
    """What is no file, and configurations without canaries."""
    path = tmp_path / "plain.yaml"
    path.write_text(f"state: {tmp_path}/state\nsources: [{{kind: tail, name: app, path: /nowhere/*.log}}]\n")
    both = suites(tmp_path / "both.yaml", old="http://127.0.0.1:1", new="http://127.0.0.1:1")
    for arguments, message in (
        (("a.jsonl", "b.jsonl"), "a.jsonl: is not a file; give two logs"),
        (
            ("old", "nwe", "--config", both),
            "old: is not a file; give two logs (JSONL), two configurations (YAML) or two",
        ),
        ((str(path), str(path)), "canaries: nothing to compare"),
    ):
        assert message in refused(compare(*arguments))


def read(variant: object, number: int, *, good: bool, age: float = 60.0, version: str = "scripted-2") -> Verdict:
    """An answer of a variant; every other one was drawn at 1/4."""
    place: dict[str, Any] = {"metadata": {"variant": variant}, "probability": 0.25 if number % 2 else 1.0}
    draw = a_draw(f"{variant}-{number}-{version}", question=f"{variant} {number}?", at=NOW - age, **place)
    return a_verdict(draw, an_evidence((1, 0) if good else (0, 0)), a_reading(version=version))


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    """A state directory that a daemon holds: blue is faithful where it was drawn at 1/4, green always."""
    store = SqliteStore(tmp_path / "state")
    verdicts = [read("blue", number, good=number % 2 == 1) for number in range(40)]
    verdicts += [read("green", number, good=True) for number in range(40)]
    verdicts += [read("blue", 99, good=False, version="scripted-1", age=7200.0), read(7, 1, good=True)]
    verdicts += [read("blue", number, good=False, age=86400.0 * 3) for number in range(100, 120)]
    verdicts.append(an_unjudged(a_draw("torn", metadata={"variant": "green"}, at=NOW - 30.0)))
    verdicts.append(a_verdict(a_draw("plain", at=NOW - 30.0), reading=a_reading(version="scripted-2")))
    store.admit(an_admission(*(each.draw for each in verdicts)))
    store.settle(verdicts)
    yield tmp_path
    store.close()


def test_two_variants_of_live_traffic(state: Path) -> None:
    """Means are weighted by 1 / probability; another version, the unjudged and what is older than --since are out."""
    result = compare("blue", "green", "--config", configured(state, **JUDGES), "--live", "--since", "1d", "--json")
    line = json.loads(result.stdout)
    faithful = next(each for each in line["metrics"] if each["metric"] == "faithfulness")
    assert (result.return_value, line["paired"], faithful["n"], faithful["conclusion"]) == (0, False, 40, "better")
    assert (faithful["a"], faithful["b"]) == (pytest.approx(80 / 100), 1.0)
    assert line["warnings"] == [
        "1 answers are of an earlier version of the judge and are left out",
        "1 answers could not be judged and are left out",
    ]
    longer = json.loads(compare("blue", "green", "--config", configured(state, **JUDGES), "--live", "--json").stdout)
    assert next(each for each in longer["metrics"] if each["metric"] == "faithfulness")["n"] == 40
    assert longer["only_a"] == 60
    # YAML and JSON make numbers of some names.
    assert compare("7", "green", "--config", configured(state, **JUDGES), "--live").return_value == 0
    assert "--live: reads the state of --config" in refused(compare("blue", "green", "--live"))


def test_what_retention_has_picked_from_is_no_sample(tmp_path: Path) -> None:
    """Of two days ago only bad answers are left: a longer --since gives a warning from when on answers count."""
    store = SqliteStore(tmp_path / "state")
    verdicts = [read(each, number, good=True) for each in ("blue", "green") for number in range(40)]
    old = {"blue": (100, 140), "green": (100, 102)}
    for each, (first, last) in old.items():
        verdicts += [read(each, number, good=number % 2 == 0, age=2 * 86400.0) for number in range(first, last)]
    store.admit(an_admission(*(each.draw for each in verdicts)))
    store.settle(verdicts)
    assert store.prune(Retention(1, 90, 1 << 40), now=NOW) == 21
    store.close()
    message = {}
    for since in ("7d", "1d"):
        asked = ("--config", configured(tmp_path, **JUDGES), "--live", "--since", since, "--json")
        line = json.loads(compare("blue", "green", *asked).stdout)
        faithful = next(each for each in line["metrics"] if each["metric"] == "faithfulness")
        assert (faithful["a"], faithful["b"]) == (1.0, 1.0)
        message[since] = line["warnings"]
    assert message["1d"] == []
    told = " before that, retention has deleted good answers, so the mean would be too low"
    assert [each.partition(" UTC:")[2] for each in message["7d"]] == [told]


def test_many_verdicts_are_cut_and_it_is_said(state: Path) -> None:
    """The newest are looked at."""
    config = load(configured(state, **JUDGES))
    found = live_variants("blue", "green", config, label="variant", judge=None, since=0.0, limit=90)
    assert found.warnings[-1] == "only the newest 90 verdicts were read; give a shorter --since"


@pytest.mark.costly
def test_what_live_traffic_cannot_tell_is_refused(state: Path) -> None:
    """Each with what to write instead."""
    config = configured(state, **JUDGES)
    for arguments, message in (
        (("blue", "red"), "red: no sample has this value of 'variant' in its metadata; values: 7, blue, green"),
        (("blue", "green", "--label", "arm"), "values: none"),
        (("blue", "green", "--judge", "nobody"), f"is not configured; use one of: {JUDGE}"),
        (("blue", "green", "--since", "soon"), "--since soon: 'soon' is not a duration"),
    ):
        assert message in refused(compare(*arguments, "--live", "--config", config))
