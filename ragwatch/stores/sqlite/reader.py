"""Read-only SQLite connection. It reads the last commit and never blocks the writer."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Self

from ragwatch.errors import StoreError
from ragwatch.stores.codec.encryption import TextCipher, opened
from ragwatch.stores.engine import DamagedRows, Parameters, Row, Rows, Writer
from ragwatch.stores.sqlite.disk import FAILURES, advice, reason, use_own_temporary_files
from ragwatch.stores.sqlite.sqlite_writer import bound, in_dialect

CACHE_KIB = 512  # instead of 2 MiB for each connection; the kernel caches the same pages anyway
REPLACE_INVALID = partial(str, encoding="utf-8", errors="replace")


@contextmanager
def _store_errors(action: str) -> Iterator[None]:
    try:
        yield
    except FAILURES as error:
        raise StoreError(f"state: {action}: {reason(error)}; {advice(error)}") from error


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
        with _store_errors(f"cannot open {path}"):
            self._connection = sqlite3.connect(uri, uri=True, check_same_thread=False, isolation_level=None)
        try:
            with _store_errors(f"cannot open {path}"):
                self._connection.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
                self._connection.create_function("unhex", 1, bytes.fromhex, deterministic=True)
                use_own_temporary_files(self._connection, path)
        except StoreError:
            self._connection.close()
            raise
        if tolerant:
            self._connection.text_factory = REPLACE_INVALID

    @property
    def pages(self) -> Self:
        """See `Engine.pages`."""
        return self

    def rows(self, sql: str, parameters: Parameters = (), *, planned_once: bool = True) -> Rows:  # noqa: ARG002 - plans are made for each statement
        """See `Reader.rows`."""
        with self._turn, _store_errors("cannot read"):
            try:
                return opened(self._connection.execute(in_dialect(sql), bound(parameters)), self.cipher)
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
        with self._turn, _store_errors("cannot read"):
            try:
                for row in self._connection.execute(in_dialect(sql), bound(parameters)):
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
