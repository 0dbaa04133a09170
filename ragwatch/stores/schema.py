"""Schema: makes the database on first start, and brings older ones up to date, one version a transaction."""

from __future__ import annotations

import sqlite3
from importlib.resources import files

from ragwatch.errors import StoreError

VERSION = 1
PAGE_BYTES = 16384  # a compressed sample fits a page: 2.5 KB on disk for 6 KB of text, a third of what 4 KiB pages take


def prepare(connection: sqlite3.Connection) -> None:
    """Set the database up for one writer, and migrate it.

    Raises:
        StoreError: It was written by a newer ragwatch, or is damaged.
    """
    connection.execute(f"PRAGMA page_size={PAGE_BYTES}")
    connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")  # NORMAL may lose the last commits on power loss
    connection.execute("PRAGMA busy_timeout=5000")
    found = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if found > VERSION:
        raise StoreError(
            f"state: written by a newer ragwatch (schema {found}, this one knows {VERSION}); "
            "run that version, or point `state` to an empty directory"
        )
    for version in range(found + 1, VERSION + 1):
        _migrate(connection, version)


def _migrate(connection: sqlite3.Connection, version: int) -> None:
    name = "schema.sql" if version == 1 else f"schema_{version}.sql"
    script = files("ragwatch.stores").joinpath(name).read_text(encoding="utf-8")
    connection.executescript(f"BEGIN IMMEDIATE;\n{script}\nPRAGMA user_version={version};\nCOMMIT;")
