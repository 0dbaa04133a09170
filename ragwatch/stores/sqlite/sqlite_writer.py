"""The transaction that runs statements in SQLite."""

import json
import math
import sqlite3
from collections.abc import Mapping, Sequence

from ragwatch.stores.dialect import in_sqlite
from ragwatch.stores.encryption import TextCipher, opened
from ragwatch.stores.engine import Parameters, Rows, Writer


def bound(parameters: Parameters) -> Parameters:
    """Return parameters as SQLite takes them: lists as JSON.

    >>> bound({"keys": ["a"], "digests": [b"7"], "at": 1.0})
    {'keys': '["a"]', 'digests': '["37"]', 'at': 1.0}
    """
    if not isinstance(parameters, Mapping) or list not in map(type, parameters.values()):
        return parameters
    bound = dict(parameters)
    for name, value in parameters.items():
        if isinstance(value, list):
            bound[name] = json.dumps([one.hex() if isinstance(one, bytes) else one for one in value])
    return bound


class SqliteWriter(Writer):
    """Runs statements on the writing connection, within a transaction."""

    def __init__(self, connection: sqlite3.Connection, cipher: TextCipher | None) -> None:
        self._connection, self.cipher = connection, cipher

    def rows(self, sql: str, parameters: Parameters = ()) -> Rows:
        return opened(self._connection.execute(in_sqlite(sql), bound(parameters)), self.cipher)

    def execute(self, sql: str, parameters: Parameters = ()) -> int:
        return self._connection.execute(in_sqlite(sql), bound(parameters)).rowcount

    def executemany(self, sql: str, parameters: Sequence[Parameters]) -> None:
        self._connection.executemany(in_sqlite(sql), parameters)

    def insert(self, table: str, rows: Sequence[Mapping[str, object]], conflict: str = "") -> int:
        if not rows:
            return 0
        marks = ", ".join(f":{name}" for name in rows[0])
        sql = f"INSERT INTO {table} ({', '.join(rows[0])}) VALUES ({marks}) {conflict}"  # noqa: S608 - names of ours
        return self._connection.executemany(sql, rows).rowcount

    def insert_samples(self, rows: Sequence[Mapping[str, object]]) -> set[str]:
        return {str(row["key"]) for row in rows if self.insert("samples", [row], "ON CONFLICT DO NOTHING")}

    def continue_numbers(self, last: int) -> None:
        sql = "UPDATE sqlite_sequence SET seq = MAX(seq, ?) WHERE name = 'verdicts'"
        self._connection.execute(sql, (last,))

    def set_pruned(self, until: float, seq: int) -> None:
        """See `Writer.set_pruned`. JSON keeps 15 digits: rounded down, the time would exclude the last verdict."""
        self._connection.execute(
            "INSERT OR REPLACE INTO states (name, body) VALUES ('retention', json_object('until', ?, 'seq', ?))",
            (math.ceil(until * 1000) / 1000, seq),
        )

    def lock(self, number: int, name: str = "") -> None:
        """See `Writer.lock`. There is one writer."""
