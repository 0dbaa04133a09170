"""Schema: makes the database on first start, and brings older ones up to date, one version a transaction."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from importlib.resources import files
from importlib.resources.abc import Traversable

from ragwatch.errors import StoreError

VERSION = 3
PAGE_BYTES = 16384  # a compressed sample fits a page: 2.5 KB on disk for 6 KB of text, a third of what 4 KiB pages take
WAL_BYTES = 64 << 20  # what a log that grew behind a slow reader is cut back to
BUSY_MS = 5000  # only a stranger at a shell can be in our way


def prepare(connection: sqlite3.Connection, *, scripts: Traversable | None = None, version: int = VERSION) -> None:
    """Set the database up for one writer, and migrate it.

    Args:
        connection: The writer's, in autocommit.
        scripts: Folder of `schema.sql`, `schema_2.sql` ...; by default those of this program.
        version: The newest of these scripts.

    Raises:
        StoreError: It was written by a newer ragwatch.
        sqlite3.Error: It is damaged, or cannot be written; then it is of the version it was before.
    """
    connection.execute(f"PRAGMA page_size={PAGE_BYTES}")
    connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute(f"PRAGMA journal_size_limit={WAL_BYTES}")
    connection.execute("PRAGMA synchronous=FULL")  # NORMAL may lose the last commits on power loss
    connection.execute(f"PRAGMA busy_timeout={BUSY_MS}")
    found = version_of(connection)
    if found > version:
        raise StoreError(
            f"state: written by a newer ragwatch (schema {found}, this one knows {version}); "
            "run that version, or point `state` to an empty directory"
        )
    for each in range(found + 1, version + 1):
        _migrate(connection, each, scripts or files("ragwatch.stores.sqlite"))


def version_of(connection: sqlite3.Connection) -> int:
    """Which schema the database has; 0 for none."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _migrate(connection: sqlite3.Connection, version: int, scripts: Traversable) -> None:
    name = "schema.sql" if version == 1 else f"schema_{version}.sql"
    script = scripts.joinpath(name).read_text(encoding="utf-8")
    try:
        connection.executescript(f"BEGIN IMMEDIATE;\n{script}\nPRAGMA user_version={version};\nCOMMIT;")
    except sqlite3.Error:
        with suppress(sqlite3.Error):  # a full disk has rolled back already
            connection.execute("ROLLBACK")
        raise
