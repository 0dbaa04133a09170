"""Reader: a read-only connection. It sees the last commit, and never holds up the writer."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ragwatch.errors import StoreError

CACHE_KIB = 512  # each connection would fill 2 MiB by and by; the kernel keeps the same pages anyway
Rows = list[tuple[Any, ...]]


class Reader:
    """Answers one question at a time; a second Reader of the same file does not wait for this one.

    Args:
        path: The database; its schema is there.
    """

    def __init__(self, path: Path) -> None:
        uri = f"{path.absolute().as_uri()}?mode=ro"  # a path may hold ? and #
        self._connection = sqlite3.connect(uri, uri=True, check_same_thread=False, isolation_level=None)
        self._connection.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
        self._turn = threading.Lock()

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> Rows:
        """All rows of a question.

        Raises:
            StoreError: The database cannot be read.
        """
        with self._turn:
            try:
                return self._connection.execute(sql, parameters).fetchall()
            except sqlite3.Error as error:
                raise StoreError(f"state: cannot read: {error}") from error

    def at_once(self, *questions: str) -> list[Rows]:
        """The rows of several questions at one instant, whatever is written meanwhile.

        Raises:
            StoreError: The database cannot be read.
        """
        with self._turn:
            try:
                self._connection.execute("BEGIN")  # a read transaction sees one commit
                try:
                    return [self._connection.execute(sql).fetchall() for sql in questions]
                finally:
                    self._connection.execute("COMMIT")
            except sqlite3.Error as error:
                raise StoreError(f"state: cannot read: {error}") from error

    def close(self) -> None:
        """Release the file, once the question under way has its rows."""
        with self._turn:
            self._connection.close()
