"""Schema: made once, newer ones refused, a failed migration leaves nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ragwatch.errors import StoreError
from ragwatch.stores import schema


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a database that does not exist yet."""
    with closing(sqlite3.connect(tmp_path / "x.db", isolation_level=None)) as found:
        yield found


def pragma(connection: sqlite3.Connection, name: str) -> object:
    """One setting of the database."""
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


def test_settings_of_durability(connection: sqlite3.Connection) -> None:
    """WAL, a sync at every commit, space given back on demand, and the version noted."""
    schema.prepare(connection)
    found = {name: pragma(connection, name) for name in ("journal_mode", "synchronous", "auto_vacuum", "page_size")}
    assert found == {"journal_mode": "wal", "synchronous": 2, "auto_vacuum": 2, "page_size": schema.PAGE_BYTES}
    assert pragma(connection, "user_version") == schema.VERSION


def test_preparing_twice_is_once(connection: sqlite3.Connection) -> None:
    """A database that is up to date is left alone."""
    schema.prepare(connection)
    connection.execute("INSERT INTO events VALUES (1.0, 'note', 'kept')")
    schema.prepare(connection)
    assert connection.execute("SELECT detail FROM events").fetchall() == [("kept",)]


def test_newer_schema_is_refused_with_advice(connection: sqlite3.Connection) -> None:
    """An older program must not write into a newer database."""
    schema.prepare(connection)
    connection.execute(f"PRAGMA user_version={schema.VERSION + 1}")
    with pytest.raises(StoreError, match=r"newer ragwatch \(schema 2, this one knows 1\); run that version, or point"):
        schema.prepare(connection)


def test_a_migration_is_one_transaction(connection: sqlite3.Connection) -> None:
    """When a table is in the way, nothing of the script stays behind."""
    connection.execute("CREATE TABLE events (mine INTEGER)")
    with pytest.raises(sqlite3.OperationalError):
        schema.prepare(connection)
    connection.execute("ROLLBACK")
    assert connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall() == [("events",)]
    assert pragma(connection, "user_version") == 0
