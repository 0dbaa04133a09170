"""Commands that read a state beside the daemon refuse one that they would misread."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from ragwatch.commands import cli
from ragwatch.errors import StoreError
from ragwatch.stores.sqlite.store import SqliteStore


@pytest.mark.parametrize("command", [["causes"], ["export", "--failing", "--as", "gate"], ["backtest"], ["diagnose"]])
def test_a_state_of_a_newer_ragwatch_is_refused(tmp_path: Path, command: list[str]) -> None:
    """In the words of the daemon, which does not open it either."""
    SqliteStore(tmp_path / "state").close()
    with closing(sqlite3.connect(tmp_path / "state" / "ragwatch.db")) as database:
        database.execute("PRAGMA user_version=9999")
    config = tmp_path / "ragwatch.yaml"
    config.write_text(json.dumps({"state": f"{tmp_path}/state", "sources": [{"kind": "push", "name": "app"}]}))
    words = [*command, "--config", str(config)]
    refused = CliRunner().invoke(cli, words, standalone_mode=False).exception
    assert isinstance(refused, StoreError)
    with pytest.raises(StoreError, match="written by a newer ragwatch") as daemons:
        SqliteStore(tmp_path / "state")
    assert str(refused) == str(daemons.value)


@pytest.mark.parametrize("command", [["causes"], ["export", "--failing", "--as", "gate"], ["backtest"], ["diagnose"]])
def test_a_state_without_a_table_is_named(tmp_path: Path, command: list[str]) -> None:
    """The disk was full, or the process was killed, while it was made."""
    database = tmp_path / "state" / "ragwatch.db"
    database.parent.mkdir()
    database.touch()
    config = tmp_path / "ragwatch.yaml"
    config.write_text(json.dumps({"state": f"{tmp_path}/state", "sources": [{"kind": "push", "name": "app"}]}))
    refused = CliRunner().invoke(cli, [*command, "--config", str(config)], standalone_mode=False).exception
    assert isinstance(refused, StoreError)
    assert str(refused) == f"state: {database} holds nothing yet; run ragwatch until it has judged some samples"
