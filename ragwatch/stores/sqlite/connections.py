"""Connections: one writer that takes turns, readers beside it, and the room that a transaction needs on the disk."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ragwatch.errors import StoreError
from ragwatch.stores.sqlite.disk import FAILURES, MIB, advice, free_bytes, reason, refuse_network
from ragwatch.stores.sqlite.lock import StateLock
from ragwatch.stores.sqlite.opening import open_writer
from ragwatch.stores.sqlite.reader import ReadConnection
from ragwatch.stores.sqlite.schema import BUSY_MS, WAL_BYTES

VACUUM_PAGES = 512  # 8 MiB a turn: others write in between


class Connections:
    """The database `state/ragwatch.db`, opened and locked.

    Writers take turns on one connection; readers have others, which see the last commit and never block them. Pages
    have one of their own, so that a search through everything does not hold up the loops.

    Args:
        state: Directory that belongs to this process alone.
        min_free: Free bytes on its disk below which nothing is admitted.

    Raises:
        StoreError: The directory is locked or on a network, the database is damaged, gone, or of a newer version.
    """

    def __init__(self, state: Path, *, min_free: int = 0) -> None:
        refuse_network(state)
        self._state, self._min_free = state, min_free
        self._lock_file = StateLock(state)
        self._path = path = state / "ragwatch.db"
        try:
            self._writer = open_writer(path)
            self._file = path.stat()
        except StoreError:
            self._lock_file.close()
            raise
        try:
            self._reader, self._pages = ReadConnection(path), ReadConnection(path, tolerant=True)
        except StoreError:
            self._writer.close()
            self._lock_file.close()
            raise
        self._writing = threading.Lock()

    @contextmanager
    def _transaction(self, floor: int = 0) -> Iterator[sqlite3.Connection]:
        """One transaction, refused where fewer bytes than `floor` are free on the disk."""
        with self._writing:
            self._make_room(floor)
            self._refuse_another_file()
            try:
                self._writer.execute("BEGIN IMMEDIATE")
                yield self._writer
                self._writer.execute("COMMIT")
            except FAILURES as error:
                self._roll_back()
                with suppress(sqlite3.Error):  # the log may hold the room that is missing
                    self._fold()
                raise StoreError(f"state: cannot write: {reason(error)}; {advice(error)}") from error
            except BaseException:
                self._roll_back()
                raise

    def _refuse_another_file(self) -> None:
        """What is written to a file without a name is gone with this process, and nobody would know."""
        with suppress(OSError):
            if os.path.samestat(self._path.stat(), self._file):
                return
        raise StoreError(
            f"state: {self._path} was moved, deleted or replaced while it was in use, and nothing is written any more; "
            "put back the one that was there, or restart"
        )

    def _make_room(self, floor: int) -> None:
        """Stop what comes in before the disk is full; what is in can still be judged, read and forgotten."""
        if self._free() >= max(floor, WAL_BYTES):
            return
        with suppress(sqlite3.Error):  # our own log may be what fills the disk: where room is short, keep it short
            self._fold()
        if (free := self._free()) < floor:
            raise StoreError(
                f"state: {free // MIB} MiB are free on the disk of {self._state}, and nothing more is read below "
                f"{self._min_free // MIB} MiB (store.min_free); free some space, it goes on by itself"
            )

    def _free(self) -> int:
        try:
            return free_bytes(self._state)
        except OSError as error:
            raise StoreError(f"state: cannot look at the disk of {self._state}: {error.strerror}") from error

    def _roll_back(self) -> None:
        with suppress(sqlite3.Error):  # told by the error that brought us here, and tried again at the next one
            if self._writer.in_transaction:  # a full disk has rolled back already
                self._writer.execute("ROLLBACK")

    def _size(self) -> int:
        """Bytes of the database that hold something."""
        pages, free, page = (self._pragma(name) for name in ("page_count", "freelist_count", "page_size"))
        return (pages - free) * page

    def _pragma(self, name: str) -> int:
        return int(self._reader.rows(f"PRAGMA {name}")[0][0])

    def _shrink(self) -> None:
        before = 0
        while (free := self._pragma("freelist_count")) not in (0, before):
            before = free
            with self._writing, _giving_back():
                # Not `execute`: it takes one step of a PRAGMA without columns, and that frees one page.
                self._writer.executescript(f"PRAGMA incremental_vacuum({VACUUM_PAGES})")
        self._checkpoint()

    def _checkpoint(self) -> None:
        with self._writing, _giving_back():
            self._fold()

    def _fold(self) -> None:
        """Move what the log holds into the database, and empty the log. The caller has the turn to write."""
        self._writer.execute("PRAGMA busy_timeout=0")  # a reader under way must not hold up the writer
        try:
            self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            self._writer.execute(f"PRAGMA busy_timeout={BUSY_MS}")

    def close(self) -> None:
        """Release the state directory, once what is under way has ended: threads outlive the loops that began them."""
        self._reader.close()
        self._pages.close()
        with self._writing:
            self._writer.close()
        self._lock_file.close()


@contextmanager
def _giving_back() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(f"state: cannot give space back: {error}; {advice(error)}") from error
