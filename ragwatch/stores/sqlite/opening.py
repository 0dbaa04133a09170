"""Opening: the database as we left it, or none and we were never here. Anything between is refused with advice."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from ragwatch.errors import StoreError
from ragwatch.stores.sqlite.disk import FAILURES, advice, reason
from ragwatch.stores.sqlite.schema import prepare, version_of

WHOLE_BYTES = 256 << 20  # up to here every page is looked at; above, those of offsets, counts and queue
BOOKS = ("cursors", "tallies", "work")
MARK = "ragwatch.state"
MARK_TEXT = """\
ragwatch.db was made beside this file, which is there to notice when it is gone.
To start anew on purpose, move ragwatch.db and this file away together: counts begin at zero,
and each log is read from where its `start` says.
"""


def open_writer(path: Path) -> sqlite3.Connection:
    """The writing connection to a database that is sound and up to date, readable by nobody else.

    Raises:
        StoreError: It is damaged, gone although it was there once, written by a newer ragwatch, or cannot be written.
    """
    mark = path.with_name(MARK)
    try:
        _refuse_gone(path, mark)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))  # its WAL gets the same mode
        path.chmod(0o600)
        writer = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            _check(writer, path, mark)
            prepare(writer)
            _leave(mark)
        except BaseException:
            writer.close()
            raise
    except FAILURES as error:
        raise StoreError(f"state: cannot open {path}: {reason(error)}; {advice(error)}") from error
    except OSError as error:
        raise StoreError(
            f"state: cannot open {path}: {error.strerror}; it must be on a disk with room that we may write"
        ) from error
    return writer


def _refuse_gone(path: Path, mark: Path) -> None:
    """A database that was there once and is not any more must not begin from zero as if nothing had been counted."""
    wal = path.with_name(f"{path.name}-wal")
    if not _holds(path) and (mark.exists() or _holds(wal)):
        raise _gone(path)


def _gone(path: Path) -> StoreError:
    return StoreError(
        f"state: {path} was made here and is gone or empty; restore it, or start anew on purpose: "
        "move what is left of ragwatch.* away, and counts begin at zero"
    )


def _holds(path: Path) -> bool:
    """Whether there is anything in a file."""
    return path.exists() and path.stat().st_size > 0


def _check(writer: sqlite3.Connection, path: Path, mark: Path) -> None:
    """Look for damage before anything is counted on top of it: at every page of a database that is not too large."""
    if version_of(writer) == 0:
        if mark.exists():  # SQLite takes what is left of a file that was cut to a byte for a new one
            raise _gone(path)
        return
    tables = [None] if path.stat().st_size <= WHOLE_BYTES else BOOKS
    for table in tables:
        found = writer.execute(f"PRAGMA quick_check({table or 1})").fetchone()[0]
        if found != "ok":
            raise StoreError(
                f"state: {path} is damaged: {' '.join(found.split())}; "
                "restore a copy of it, or move ragwatch.* away to start anew on purpose"
            )


def _leave(mark: Path) -> None:
    if not mark.exists():
        mark.write_text(MARK_TEXT, encoding="ascii")
