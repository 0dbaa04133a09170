"""Commands that read a state beside the daemon refuse one that they would misread, and make none."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from support.command_line import command, configured, refused

from ragwatch.errors import StoreError
from ragwatch.stores.sqlite.store import SqliteStore

COMMANDS = pytest.mark.parametrize(
    "words",
    [
        ("causes",),
        ("export", "--failing", "--as", "gate"),
        ("backtest",),
        ("diagnose",),
        ("rules", "--from-baseline"),
        ("canary", "suggest"),
        ("compare", "a", "b", "--live"),
    ],
    ids=" ".join,
)


@COMMANDS
def test_a_state_of_a_newer_ragwatch_is_refused(tmp_path: Path, words: tuple[str, ...]) -> None:
    """In the words of the daemon, which does not open it either."""
    SqliteStore(tmp_path / "state").close()
    with closing(sqlite3.connect(tmp_path / "state" / "ragwatch.db")) as database:
        database.execute("PRAGMA user_version=9999")
    message = refused(command(*words, "--config", configured(tmp_path)), StoreError)
    with pytest.raises(StoreError, match="written by a newer ragwatch") as daemons:
        SqliteStore(tmp_path / "state")
    assert message == str(daemons.value)


@COMMANDS
def test_a_state_without_a_table_is_named(tmp_path: Path, words: tuple[str, ...]) -> None:
    """The disk was full, or the process was killed, while it was made."""
    database = tmp_path / "state" / "ragwatch.db"
    database.parent.mkdir()
    database.touch()
    message = refused(command(*words, "--config", configured(tmp_path)), StoreError)
    assert message == f"state: {database} holds nothing yet; run ragwatch until it has judged some samples"


@COMMANDS
def test_no_state_is_made(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Where there is none, the path is probably wrong, and one of another user would keep the daemon out."""
    assert "ragwatch.db does not exist" in refused(command(*words, "--config", configured(tmp_path)), StoreError)
    assert not (tmp_path / "state").exists()
