"""Database schema: creates it on first start and migrates older versions, one transaction for each version."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from importlib.resources import files
from importlib.resources.abc import Traversable

from ragwatch.errors import StoreError

VERSION = 9
PAGE_BYTES = 16384  # a compressed sample fits a page: 2.5 KB on disk for 6 KB of text, a third of what 4 KiB pages take
WAL_BYTES = 64 << 20  # the write-ahead log is truncated to this after a slow reader made it grow
BUSY_MS = 5000  # only other programs, such as the sqlite3 shell, can hold a lock


def prepare(connection: sqlite3.Connection, *, scripts: Traversable | None = None, version: int = VERSION) -> None:
    """Configure the database for one writer, on its connection in autocommit mode, and migrate it.

    Raises:
        StoreError: The database was written by a newer ragwatch.
        sqlite3.Error: It is damaged or not writable; its version is unchanged.
    """
    connection.execute(f"PRAGMA page_size={PAGE_BYTES}")
    connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute(f"PRAGMA journal_size_limit={WAL_BYTES}")
    connection.execute("PRAGMA synchronous=FULL")  # NORMAL may lose the last commits on power loss
    connection.execute(f"PRAGMA busy_timeout={BUSY_MS}")
    current = version_of(connection)
    if current > version:
        raise StoreError(
            f"state: written by a newer ragwatch (schema {current}, this one knows {version}); "
            "run that version, or point `state` to an empty directory"
        )
    for target in range(current + 1, version + 1):
        name = "schema.sql" if target == 1 else f"schema_{target}.sql"
        script = (scripts or files("ragwatch.stores.sqlite")).joinpath(name).read_text(encoding="utf-8")
        try:
            connection.executescript(f"BEGIN IMMEDIATE;\n{script}\nPRAGMA user_version={target};\nCOMMIT;")
        except sqlite3.Error:
            with suppress(sqlite3.Error):  # on a full disk SQLite rolls back by itself
                connection.execute("ROLLBACK")
            raise


def version_of(connection: sqlite3.Connection) -> int:
    """Return the schema version of a database; 0 if it has none."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
