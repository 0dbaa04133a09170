"""`ragwatch compare --live`: two variants of the traffic that a daemon has judged, out of its state directory."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from support.command_line import command, configured, refused
from support.kit import JUDGE, a_draw, a_reading, a_verdict, an_admission, an_evidence, an_unjudged

from ragwatch.config import load
from ragwatch.offline.compare import live_variants
from ragwatch.ports import Retention
from ragwatch.statistics.verdict import Verdict
from ragwatch.stores.sqlite.store import SqliteStore

NOW = time.time()
JUDGES = {"judges": [{"name": JUDGE, "kind": "lexical"}]}


compare = partial(command, "compare")


def read(variant: object, number: int, *, good: bool, age: float = 60.0, version: str = "scripted-2") -> Verdict:
    """An answer of a variant; every other one was drawn at 1/4."""
    draw = a_draw(
        f"{variant}-{number}-{version}",
        question=f"{variant} {number}?",
        metadata={"variant": variant},
        probability=0.25 if number % 2 else 1.0,
        at=NOW - age,
    )
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
        line = json.loads(
            compare(
                "blue", "green", "--config", configured(tmp_path, **JUDGES), "--live", "--since", since, "--json"
            ).stdout
        )
        faithful = next(each for each in line["metrics"] if each["metric"] == "faithfulness")
        assert (faithful["a"], faithful["b"]) == (1.0, 1.0)
        message[since] = line["warnings"]
    assert message["1d"] == []
    assert [each.partition(" UTC:")[2] for each in message["7d"]] == [
        " before that, retention has deleted good answers, so the mean would be too low"
    ]


def test_many_verdicts_are_cut_and_it_is_said(state: Path) -> None:
    """The newest are looked at."""
    found = live_variants(
        "blue", "green", load(configured(state, **JUDGES)), label="variant", judge=None, since=0.0, limit=90
    )
    assert found.warnings[-1] == "only the newest 90 verdicts were read; give a shorter --since"


@pytest.mark.costly
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("blue", "red", "--live"),
            "red: no sample has this value of 'variant' in its metadata; values: 7, blue, green",
        ),
        (("blue", "green", "--live", "--label", "arm"), "values: none"),
        (("blue", "green", "--live", "--judge", "nobody"), f"is not configured; use one of: {JUDGE}"),
        (("blue", "green", "--live", "--since", "soon"), "--since soon: 'soon' is not a duration"),
    ],
)
def test_what_is_refused(state: Path, arguments: tuple[str, ...], message: str) -> None:
    """Each with what to write instead."""
    result = compare(*arguments, "--config", configured(state, **JUDGES))
    assert message in refused(result)
