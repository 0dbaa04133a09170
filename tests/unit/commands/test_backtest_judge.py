"""`ragwatch backtest` of a store: whose scores are replayed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.kit import JUDGE
from support.watched import faithful, settle

from ragwatch.commands import cli
from ragwatch.errors import ConfigError
from ragwatch.stores.sqlite.store import SqliteStore


def run(*arguments: object) -> Result:
    """Run the command."""
    return CliRunner().invoke(cli, ["backtest", *map(str, arguments)], standalone_mode=False)


@pytest.mark.costly
def test_the_store_replays_the_judge_that_is_watched(tmp_path: Path) -> None:
    """Where `drift.judge` names another than the first, its scores are replayed, with the weights of its share."""
    judges = f"[{{name: first, kind: lexical}}, {{name: {JUDGE}, kind: lexical, probability: 0.5}}]"
    path = tmp_path / "ragwatch.yaml"
    path.write_text(
        f"state: {tmp_path}/state\nroutes: [search]\nsampling: {{probability: 0.5}}\njudges: {judges}\n"
        f"sources: [{{kind: tail, name: app, path: {tmp_path}/*.log}}]\n"
    )
    store = SqliteStore(tmp_path / "state")
    settle(store, faithful(500, 100), probability=0.25)
    store.close()
    asked = ("--config", path, "--json", "--set", "reference=300", "--set", "reference_time=1s")
    found = json.loads(run(*asked, "--set", f"judge={JUDGE}").stdout)
    assert found["scores"] > 0
    assert [alarm["quantity"] for alarm in found["alarms"]].count("faithfulness") == 1
    other = run(*asked)
    assert (json.loads(other.stdout)["scores"], other.return_value) == (0, 3)
    wrong = run(*asked, "--set", "judge=claude")
    assert isinstance(wrong.exception, ConfigError)
    assert "drift.judge: 'claude'" in str(wrong.exception)
