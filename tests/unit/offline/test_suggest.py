"""`ragwatch canary suggest`: from the state directory of a running daemon to a suite file."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from support.command_line import command, configured, refused
from support.kit import a_draw, a_reading, a_verdict, an_admission, an_evidence

from ragwatch.config import load
from ragwatch.config.canaries import read_suite
from ragwatch.model.quantities import Quantity
from ragwatch.model.sample import Context
from ragwatch.offline.state_reader import labels_by_key, last_index_event
from ragwatch.ports import RecordedEvent
from ragwatch.statistics.labels.label import Label
from ragwatch.stores.sqlite.store import SqliteStore

CONTEXTS = (Context("Cats purr.", "d1"), Context("Dogs bark.", "d2"))


suggest = partial(command, "canary", "suggest")


@pytest.fixture
def store(store: SqliteStore) -> SqliteStore:
    """The store of a daemon that runs, with two good answers, and a bad one."""
    draws = [
        a_draw("r1", question="What do cats do?", contexts=CONTEXTS),
        a_draw("r2", question="what do cats  do?", contexts=CONTEXTS),
        a_draw("r3", question="What do dogs do?", contexts=CONTEXTS),
    ]
    store.admit(an_admission(*draws))
    evidence = [an_evidence((1, 0)), an_evidence((1, 0)), an_evidence((0, 0))]
    store.settle([a_verdict(draw, read) for draw, read in zip(draws, evidence, strict=True)])
    return store


@pytest.mark.usefixtures("store")
def test_a_suite_from_judged_traffic(tmp_path: Path) -> None:
    """While the daemon holds its state, a suite is written that can be read; a second one never takes its place."""
    out = tmp_path / "suggested.yaml"
    result = suggest("--config", configured(tmp_path), "--out", str(out))
    assert result.return_value == 0
    assert "wrote 1 suggestions" in result.stderr
    (canary,) = read_suite(out)
    assert canary.query in {"What do cats do?", "what do cats do?"}
    assert [each.id for each in canary.expected] == ["d1"]
    assert "# asked about 2 times; 2 judged answers" in out.read_text()
    assert "of the words of the questions by occurrence" in result.stderr
    assert suggest("--config", configured(tmp_path)).stdout == out.read_text()
    again = suggest("--config", configured(tmp_path), "--out", str(out))
    assert "already exists" in refused(again)


def test_labels_and_index_events_are_read(tmp_path: Path, store: SqliteStore) -> None:
    """An answer that people labelled as wrong is not suggested; the last index update is that of the last event."""
    keys = [a_draw(name).key for name in ("r1", "r2")]
    store.add_labels([Label(key, "ann", 1.0, {Quantity.FAITHFULNESS: 0.0}) for key in keys])
    config = load(configured(tmp_path))
    assert last_index_event(config) is None
    store.record(RecordedEvent(86_400.0, "index", ""))
    assert last_index_event(config) == "1970-01-02"
    assert sorted(labels_by_key(config)) == sorted(keys)
    assert suggest("--config", configured(tmp_path)).return_value == 3


def test_an_answer_counts_once(tmp_path: Path, store: SqliteStore) -> None:
    """However many judges have read it: the comment counts how often a question was asked."""
    store.admit(an_admission(*(a_draw(name) for name in ("r4", "r5")), judges=("embedded", "second"), cursor="2"))
    second = [a_verdict(a_draw(name), reading=a_reading("second")) for name in ("r4", "r5")]
    store.settle([*second, a_verdict(a_draw("r4"))])
    found = suggest("--config", configured(tmp_path)).stdout
    assert "# asked about 3 times; 3 judged answers" in found


@pytest.mark.usefixtures("store")
def test_nothing_to_propose(tmp_path: Path) -> None:
    """What is a canary already is not proposed again: exit code 3."""
    items = [{"query": "what do cats do?", "expected": ["d1"]}]
    probe = {"kind": "http", "url": "http://127.0.0.1:1/", "body": {"q": "{{ query }}"}, "contexts": "hits"}
    suite = {"suite": "docs", "items": items, "probe": probe}
    result = suggest("--config", configured(tmp_path, canaries=[suite]))
    assert result.return_value == 3
    assert "nothing to propose yet" in result.stderr
