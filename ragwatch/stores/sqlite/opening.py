"""Opens the database for writing: refuses one that is damaged, or missing although it existed; migrates its schema."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ragwatch.errors import StoreError
from ragwatch.stores.encryption import KEY_STATE, TextCipher, new_key_ids
from ragwatch.stores.engine import REMEMBER
from ragwatch.stores.lock import PRIVATE, write_private
from ragwatch.stores.migrations import scripts_of
from ragwatch.stores.sqlite.disk import FAILURES, TEMPORARY, advice, reason, use_own_temporary_files
from ragwatch.stores.sqlite.sqlite_writer import SqliteWriter

VERSION = len(scripts_of("sqlite"))
PAGE_BYTES = 16384  # a compressed sample fits a page: 2.5 KB on disk for 6 KB of text, a third of what 4 KiB pages take
WAL_BYTES = 64 << 20  # the write-ahead log is truncated to this after a slow reader made it grow
BUSY_MS = 5000  # only other programs, such as the sqlite3 shell, can hold a lock
MAX_FULL_CHECK_BYTES = 256 << 20  # above this size only the tables of cursors, counters and queue are checked
CHECKED_TABLES = ("cursors", "tallies", "work")
MARKER = "ragwatch.state"
MARKER_TEXT = """\
This file shows that ragwatch.db was created here, so that its loss is noticed.
To start from scratch, move ragwatch.db and this file away together: counters begin at zero,
and each log is read from the position of its `start`.
"""


def prepare(connection: sqlite3.Connection, scripts: Sequence[str] = scripts_of("sqlite")) -> None:
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
    current, version = version_of(connection), len(scripts)
    if current > version:
        raise StoreError(
            f"state: written by a newer ragwatch (schema {current}, this one knows {version}); "
            "run that version, or point `state` to an empty directory"
        )
    for target, script in enumerate(scripts[current:], current + 1):
        try:
            connection.executescript(f"BEGIN IMMEDIATE;\n{script}\nPRAGMA user_version={target};\nCOMMIT;")
        except sqlite3.Error:
            with suppress(sqlite3.Error):  # on a full disk SQLite rolls back by itself
                connection.execute("ROLLBACK")
            raise


def version_of(connection: sqlite3.Connection) -> int:
    """Return the schema version of a database; 0 if it has none."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def open_writer(path: Path, cipher: TextCipher | None = None) -> sqlite3.Connection:
    """Open the writing connection, check the database and migrate it. Its files are readable by the owner only.

    Raises:
        ConfigError: Texts are encrypted with a key that is not given.
        StoreError: The database is damaged, missing although it existed before, of a newer version, or not writable.
    """
    marker = path.with_name(MARKER)
    try:
        refuse_missing(path, marker)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE))  # its WAL gets the same mode
        path.chmod(PRIVATE)
        writer = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            path.with_name(TEMPORARY).mkdir(mode=0o700, exist_ok=True)
            use_own_temporary_files(writer, path)
            writer.create_function("unhex", 1, bytes.fromhex, deterministic=True)
            check_content(writer, path, marker)
            prepare(writer)
            states = SqliteWriter(writer, cipher)
            if (ids := new_key_ids(states.rows, cipher)) is not None:  # as plain JSON: it is read without a key
                states.execute(REMEMBER, {"name": KEY_STATE, "body": ids})
            if marker.exists():
                marker.chmod(PRIVATE)  # others could read it once
            else:
                write_private(marker, MARKER_TEXT)
        except BaseException:
            writer.close()
            raise
    except FAILURES as error:
        raise StoreError(f"state: cannot open {path}: {reason(error)}; {advice(error)}") from error
    except OSError as error:
        raise StoreError(
            f"state: cannot open {path}: {error.strerror}; it must be on a writable disk with free space"
        ) from error
    return writer


def refuse_missing(path: Path, marker: Path) -> None:
    """Raise an error if the database existed before: counters must not restart from zero unnoticed."""
    wal = path.with_name(f"{path.name}-wal")
    if not _has_content(path) and (marker.exists() or _has_content(wal)):
        raise _missing(path)


def _missing(path: Path) -> StoreError:
    return StoreError(
        f"state: {path} was created here and is missing or empty; restore it, or start from scratch: "
        "move the remaining ragwatch.* away, and counters begin at zero"
    )


def _has_content(path: Path) -> bool:
    """Return whether a file exists and is not empty."""
    return path.exists() and path.stat().st_size > 0


def check_content(writer: sqlite3.Connection, path: Path, marker: Path) -> None:
    """Check for damage before anything is counted: every page, unless the database is too large."""
    if version_of(writer) == 0:
        if marker.exists():  # SQLite takes a file truncated to one byte for a new database
            raise _missing(path)
        return
    tables = [None] if path.stat().st_size <= MAX_FULL_CHECK_BYTES else CHECKED_TABLES
    for table in tables:
        result = writer.execute(f"PRAGMA quick_check({table or 1})").fetchone()[0]
        if result != "ok":
            raise StoreError(
                f"state: {path} is damaged: {' '.join(result.split())}; "
                "restore a copy of it, or move ragwatch.* away to start from scratch"
            )
