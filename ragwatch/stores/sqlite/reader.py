"""Reader: a read-only connection. It sees the last commit, and never holds up the writer."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from ragwatch.errors import StoreError
from ragwatch.stores.sqlite.disk import FAILURES, advice, reason

CACHE_KIB = 512  # each connection would fill 2 MiB by and by; the kernel keeps the same pages anyway
TOLERANT = partial(str, encoding="utf-8", errors="replace")
Rows = list[tuple[Any, ...]]


@contextmanager
def _failing(what: str) -> Iterator[None]:
    try:
        yield
    except FAILURES as error:
        raise StoreError(f"state: {what}: {reason(error)}; {advice(error)}") from error


class ReadConnection:
    """Answers one question at a time; a second Reader of the same file does not wait for this one.

    Args:
        path: The database; its schema is there.
        tolerant: Whether text that is no UTF-8 is replaced from the start; otherwise from when some is met.

    Raises:
        StoreError: The database cannot be opened.
    """

    def __init__(self, path: Path, *, tolerant: bool = False) -> None:
        uri = f"{path.absolute().as_uri()}?mode=ro"  # a path may hold ? and #
        self._turn = threading.Lock()
        with _failing(f"cannot open {path}"):
            self._connection = sqlite3.connect(uri, uri=True, check_same_thread=False, isolation_level=None)
        try:
            with _failing(f"cannot open {path}"):
                self._connection.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
        except StoreError:
            self._connection.close()
            raise
        if tolerant:
            self._connection.text_factory = TOLERANT

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> Rows:
        """All rows of a question.

        Raises:
            StoreError: The database cannot be read.
        """
        with self._turn, _failing("cannot read"):
            try:
                return self._connection.execute(sql, parameters).fetchall()
            except sqlite3.Error as error:
                if not self._tolerate(error):
                    raise
        return self.rows(sql, parameters)

    def _tolerate(self, error: sqlite3.Error) -> bool:
        """From the first damaged text on, replace what is no UTF-8: it costs what stands there, not the whole question.

        Not before: for large answers of the database it takes three times as long. False where it is another error.
        """
        if "decode" not in str(error) or self._connection.text_factory is TOLERANT:
            return False
        self._connection.text_factory = TOLERANT
        return True

    def walk(self, sql: str, parameters: Sequence[Any] = ()) -> Generator[tuple[Any, ...], None, None]:
        """The rows of a question, one at a time, for texts that are large together. Others wait until it is closed.

        Raises:
            StoreError: The database cannot be read.
        """
        with self._turn, _failing("cannot read"):
            try:
                yield from self._connection.execute(sql, parameters)
            except sqlite3.Error as error:
                self._tolerate(error)  # the next time: rows that were given cannot be taken back
                raise

    def at_once(self, *questions: str) -> list[Rows]:
        """The rows of several questions at one instant, whatever is written meanwhile.

        Raises:
            StoreError: The database cannot be read.
        """
        with self._turn, _failing("cannot read"):
            try:
                self._connection.execute("BEGIN")  # a read transaction sees one commit
                try:
                    return [self._connection.execute(sql).fetchall() for sql in questions]
                finally:
                    self._connection.execute("COMMIT")
            except sqlite3.Error as error:
                if not self._tolerate(error):
                    raise
        return self.at_once(*questions)

    def close(self) -> None:
        """Release the file, once the question under way has its rows."""
        with self._turn:
            self._connection.close()
