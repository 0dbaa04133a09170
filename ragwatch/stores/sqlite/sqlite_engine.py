"""SQLite connections: one writer behind a lock, concurrent readers, and checks of the disk before each transaction."""

import os
import sqlite3
import threading
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import Self

from ragwatch.errors import StoreError
from ragwatch.stores.dialect import in_sqlite
from ragwatch.stores.encryption import TextCipher, opened
from ragwatch.stores.engine import DamagedRows, Parameters, Row, Rows, Writer
from ragwatch.stores.lock import StateLock
from ragwatch.stores.sqlite.opening import (
    BUSY_MS,
    FAILURES,
    MIB,
    WAL_BYTES,
    connected,
    free_bytes,
    open_writer,
    refuse_network,
    store_errors,
)
from ragwatch.stores.sqlite.sqlite_writer import SqliteWriter, bound

RETRY_SECONDS = 0.05
VACUUM_PAGES = 512  # 8 MiB at a time, so that other writers are not blocked for long
CACHE_KIB = 512  # instead of 2 MiB for each connection; the kernel caches the same pages anyway
REPLACE_INVALID = partial(str, encoding="utf-8", errors="replace")


class ReadConnection:
    """Runs one statement at a time on an existing database; other instances on the same file run concurrently.

    A tolerant one replaces invalid UTF-8 from the start, others only once some was met. Raises a `StoreError` if it
    cannot be opened.
    """

    def __init__(self, path: Path, *, tolerant: bool = False, cipher: TextCipher | None = None) -> None:
        uri = f"{path.absolute().as_uri()}?mode=ro"  # a path may contain ? and #
        self._turn = threading.Lock()
        self.cipher = cipher
        self.damage = DamagedRows()
        with store_errors(f"cannot open {path}"):
            self._connection = connected(uri, path, f"PRAGMA cache_size=-{CACHE_KIB}")
        if tolerant:
            self._connection.text_factory = REPLACE_INVALID

    @property
    def pages(self) -> Self:
        return self

    def rows(self, sql: str, parameters: Parameters = (), *, planned_once: bool = True) -> Rows:  # noqa: ARG002 - plans are made for each statement
        with self._turn, store_errors("cannot read"):
            try:
                return opened(self._connection.execute(in_sqlite(sql), bound(parameters)), self.cipher)
            except sqlite3.Error as error:
                if not self._tolerate(error):
                    raise
        return self.rows(sql, parameters)

    def _tolerate(self, error: sqlite3.Error) -> bool:
        """Replace invalid UTF-8 from now on, so that a damaged text affects its own row only.

        Not enabled before, because it triples the time of large results. Returns False for any other error, or if
        already enabled.
        """
        if "decode" not in str(error) or self._connection.text_factory is REPLACE_INVALID:
            return False
        self._connection.text_factory = REPLACE_INVALID
        return True

    def walk(self, sql: str, parameters: Parameters = ()) -> Generator[Row, None, None]:
        """See `Reader.walk`. Blocks other statements until it is closed."""
        with self._turn, store_errors("cannot read"):
            try:
                for row in self._connection.execute(in_sqlite(sql), bound(parameters)):
                    yield from opened((row,), self.cipher)
            except sqlite3.Error as error:
                self._tolerate(error)  # takes effect the next time: yielded rows cannot be revoked
                raise

    def transaction(self, reserve: float = 0.0) -> AbstractContextManager[Writer]:  # noqa: ARG002 - nothing is written
        """Raise a `StoreError`: see `Engine.transaction`."""
        raise StoreError("state: is opened to be read, and cannot be written")

    def close(self) -> None:
        """Close the connection, after the running statement."""
        with self._turn:
            self._connection.close()


class SqliteEngine:
    """Opens and locks the database `state/ragwatch.db`, below whose `min_free` bytes of disk no draws are admitted.

    Writers share one connection. Readers have their own, which see the last commit and never block the writer. Web
    pages have a separate reader, so that a long search does not block the loops.

    Raises a `StoreError` if the directory is locked or on a network file system, and as `open_writer`.
    """

    def __init__(self, state: Path, *, min_free: int = 0, cipher: TextCipher | None = None) -> None:
        refuse_network(state)
        self._state, self._min_free, self._cipher = state, min_free, cipher
        self._lock_file = StateLock(state)
        self._path = path = state / "ragwatch.db"
        with ExitStack() as failed:
            failed.callback(self._lock_file.close)
            self._writer = failed.enter_context(closing(open_writer(path, cipher)))
            self._file = path.stat()
            self._reader, self.pages = (ReadConnection(path, cipher=cipher, tolerant=pages) for pages in (False, True))
            failed.pop_all()  # they stay open
        self.rows, self.walk = self._reader.rows, self._reader.walk
        self._writing = threading.Lock()
        self.damage = DamagedRows()

    @contextmanager
    def transaction(self, reserve: float = 0.0) -> Iterator[SqliteWriter]:
        with self._writing, store_errors("cannot write"):
            self._check_free_space(int(self._min_free * reserve))
            try:
                same = os.path.samestat(self._path.stat(), self._file)
            except OSError:
                same = False
            if not same:
                raise StoreError(
                    f"state: {self._path} was moved, deleted or replaced while it was in use, and nothing is written "
                    "to it; restore that file, or restart"
                )
            try:
                self._writer.execute("BEGIN IMMEDIATE")
                yield SqliteWriter(self._writer, self._cipher)
                self._writer.execute("COMMIT")
            except BaseException as error:
                with suppress(sqlite3.Error):  # the original error is raised, and the next transaction rolls back again
                    if self._writer.in_transaction:  # on a full disk SQLite rolls back by itself
                        self._writer.execute("ROLLBACK")
                if isinstance(error, FAILURES):
                    with suppress(sqlite3.Error):  # truncating the write-ahead log may free the missing space
                        self._truncate_wal()
                raise

    def _check_free_space(self, floor: int) -> None:
        """Refuse intake before the disk is full, so that stored draws can still be judged, read and deleted."""
        if self._free_bytes() >= max(floor, WAL_BYTES):
            return
        with suppress(sqlite3.Error):  # the write-ahead log itself may fill the disk
            self._truncate_wal()
        if (free := self._free_bytes()) < floor:
            raise StoreError(
                f"state: {free // MIB} MiB are free on the disk of {self._state}, and sources are not read below "
                f"{self._min_free // MIB} MiB (store.min_free); free some space, reading then resumes by itself"
            )

    def _free_bytes(self) -> int:
        try:
            return free_bytes(self._state)
        except OSError as error:
            raise StoreError(f"state: cannot read the free space of {self._state}: {error.strerror}") from error

    def size(self) -> int:
        """Return the bytes of the pages in use."""
        pages, free, page = (self._pragma(name) for name in ("page_count", "freelist_count", "page_size"))
        return (pages - free) * page

    def _pragma(self, name: str) -> int:
        return int(self._reader.rows(f"PRAGMA {name}")[0][0])

    def shrink(self) -> None:
        """Return free pages to the disk."""
        before = 0
        while (free := self._pragma("freelist_count")) not in (0, before):
            before = free
            with self._writing, store_errors("cannot free space"):
                # `execute` would run a single step of this PRAGMA, which frees a single page.
                self._writer.executescript(f"PRAGMA incremental_vacuum({VACUUM_PAGES})")
        self.checkpoint()

    def checkpoint(self) -> bool:
        """Copy the write-ahead log into the database. Returns False if a reader is in the way."""
        with self._writing, store_errors("cannot free space"):
            return self._truncate_wal()

    def _truncate_wal(self) -> bool:
        """Do what `checkpoint` does, for a caller that holds the writer's lock."""
        self._writer.execute("PRAGMA busy_timeout=0")  # an active reader must not block the writer
        try:
            blocked, *_ = self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            return not blocked
        finally:
            self._writer.execute(f"PRAGMA busy_timeout={BUSY_MS}")

    def rewrite(self) -> bool:
        """Write the database again without its free space, so that no deleted text remains in it.

        Returns False while a reader holds the write-ahead log, whose end is then deleted by a later checkpoint.
        """
        with self._writing, store_errors("cannot free space"):
            self._writer.execute("VACUUM")
            return self._truncate_wal()

    def truncated_within(self, seconds: float) -> bool:
        """Truncate the write-ahead log as soon as no reader is in the way. False if one is for too long."""
        end = monotonic() + seconds
        while monotonic() < end:
            sleep(RETRY_SECONDS)
            if self.checkpoint():
                return True
        return False

    def close(self) -> None:
        """Close the database and unlock the state directory, once running statements have ended."""
        self._reader.close()
        self.pages.close()
        with self._writing:
            self._writer.close()
        self._lock_file.close()
