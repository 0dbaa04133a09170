"""Commands on a PostgreSQL store: they read it beside running workers, and `run --once` leaves it alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.kit import AT, JUDGE, a_draw, a_verdict, an_admission
from support.postgres import Postgres
from support.stores import WORKERS_SCHEMA

from ragwatch.commands import cli, state_reader
from ragwatch.commands.check import check_all
from ragwatch.config import Config, load
from ragwatch.core.labels.label import Label
from ragwatch.core.tally import Tally
from ragwatch.daemon.state_secret import state_secret
from ragwatch.model.quantities import Quantity
from ragwatch.ports import Query, RecordedEvent, StoredRun
from ragwatch.stores.postgres.migrations import VERSION
from ragwatch.stores.postgres.postgres_store import PostgresStore

pytestmark = pytest.mark.servers

CONFIG = """\
state: {state}
sources: [{{kind: tail, name: app, path: {state}.jsonl}}]
store: {{kind: postgres, url: "{url}", database_schema: {schema}}}
"""


@pytest.fixture
def path(tmp_path: Path, server: Postgres) -> Path:
    """A configuration."""
    path = tmp_path / "ragwatch.yaml"
    text = CONFIG.format(state=tmp_path / "state", url=server.url, schema=WORKERS_SCHEMA)
    path.write_text(text, encoding="utf-8")
    (tmp_path / "state.jsonl").write_text('{"id": "1", "question": "q", "answer": "a", "contexts": []}\n', "utf-8")
    return path


@pytest.fixture
def config(path: Path) -> Config:
    """It, read."""
    return load(path)


@pytest.fixture
def running(worker: Callable[..., PostgresStore]) -> PostgresStore:
    """A worker with two verdicts, a label, a run and an event."""
    store = worker()
    draws = [a_draw(name, metadata={"user": name}) for name in ("anna", "bob")]
    store.admit(an_admission(*draws, cursor="1"))
    store.settle([a_verdict(draw) for draw in draws])
    store.add_labels([Label(draws[0].key, "ada", AT, {Quantity.FAITHFULNESS: 1.0})])
    store.record_run(StoredRun("canary", "docs", AT, failing=True, body={"x": 1}), Counter())
    store.record(RecordedEvent(AT, "index", "v2"))
    return store


def test_what_is_stored_can_be_read_beside_a_worker(config: Config, running: PostgresStore) -> None:
    """Verdicts, labels, runs, events and cursors, as from a SQLite state."""
    query = Query(judge=JUDGE)
    assert list(state_reader.verdicts(config, query)) == running.find(query)
    assert [label.annotator for label in state_reader.labels_by_key(config)[a_draw("anna").key]] == ["ada"]
    assert state_reader.last_index_event(config) == "2023-11-14"
    with state_reader.state_reader(config) as reader:
        assert [run.body for run in reader.runs("canary", "docs", 1)] == [{"x": 1}]
        assert reader.pruned_until() < 0.0
    assert (state_reader.has_started(config, "app"), state_reader.has_started(config, "other")) == (True, False)
    assert state_reader.stored_tallies(config, Tally.JUDGED) == {("search", JUDGE): 2.0}


def test_check_names_the_server(config: Config, running: PostgresStore) -> None:
    """`check` says what it is connected to."""
    assert running.pending() == {}
    (found,) = [finding for finding in check_all(config) if finding.subject == "store.url"]
    assert (found.state, f"schema {WORKERS_SCHEMA}: version {VERSION}" in found.detail) == ("ok", True)


def test_forget_runs_beside_a_worker(path: Path, running: PostgresStore) -> None:
    """The texts of a person are gone for the worker, too."""
    command = ["forget", "--metadata", "user=anna", "--config", str(path)]
    result = CliRunner().invoke(cli, command, standalone_mode=False)
    assert (result.return_value, result.exception) == (0, None), result.output
    assert {stored.verdict.key: stored.sample is None for stored in running.find(Query())} == {
        a_draw("anna").key: True,
        a_draw("bob").key: False,
    }


def test_a_trial_run_leaves_the_database_alone(path: Path, running: PostgresStore) -> None:
    """`run --once` stores what it reads in a file of its own."""
    before = running.tallies()
    result = CliRunner().invoke(cli, ["run", "--once", "--config", str(path)], standalone_mode=False)
    assert 'ragwatch_requests_seen_total{source="app"} 1.0' in result.output
    assert running.tallies() == before


def test_state_directories_have_the_secret_of_the_database(tmp_path: Path, running: PostgresStore) -> None:
    """Workers draw alike: each directory holds the secret that the first worker brought."""
    first = state_secret(_made(tmp_path / "one"), running)
    other = _made(tmp_path / "two")
    assert state_secret(other) != first
    assert (state_secret(other, running), state_secret(other)) == (first, first)


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
