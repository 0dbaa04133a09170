"""Commands that read a state beside the daemon refuse one that they would misread, and make none."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from support.command_line import command, configured, refused

from ragwatch.errors import StoreError
from ragwatch.stores.sqlite.store import SqliteStore


@pytest.mark.parametrize(
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
def test_a_state_that_would_be_misread_is_refused(tmp_path: Path, words: tuple[str, ...]) -> None:
    """None is made where there is none; one without tables is named; a newer one is told in the words of the daemon."""
    config, database = configured(tmp_path), tmp_path / "state" / "ragwatch.db"
    assert "ragwatch.db does not exist" in refused(command(*words, "--config", config), StoreError)
    assert not database.parent.exists()
    database.parent.mkdir()
    database.touch()  # the disk was full, or the process was killed, while it was made
    message = refused(command(*words, "--config", config), StoreError)
    assert message == f"state: {database} holds nothing yet; run ragwatch until it has judged some samples"
    SqliteStore(tmp_path / "state").close()
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA user_version=9999")
    with pytest.raises(StoreError, match="written by a newer ragwatch") as daemons:
        SqliteStore(tmp_path / "state")
    assert refused(command(*words, "--config", config), StoreError) == str(daemons.value)
