"""Statements in the dialect of SQLite, and the transaction that runs them."""

from __future__ import annotations

import json
import math
import re
import sqlite3
from collections.abc import Mapping, Sequence
from functools import lru_cache

from ragwatch.stores.codec.encryption import TextCipher
from ragwatch.stores.engine import Parameters, Writer
from ragwatch.stores.limits import REJUDGED_MARK

_WORDS: tuple[tuple[str, str], ...] = (
    (r"\bREPLIED\((:\w+)\)", r"seq IN (SELECT v.seq FROM verdicts v WHERE v.key = LIST(\1))"),
    (r"= (?:LIST|INTS)\((:\w+)\)", r"IN (SELECT value FROM json_each(\1))"),
    (r"= BLOBS\((:\w+)\)", r"IN (SELECT unhex(value) FROM json_each(\1))"),
    (r"\bSAMPLE_KEYS\b", "samples"),
    (r"\bDROPPED\b", "x'00'"),
    (r"\bROW_ID\b", "rowid"),
    (r"\bLOWEST\b", "-9e999"),
    # This state is stored as plain JSON, so that SQL can read it.
    (r"\bPRUNED_UNTIL\b", "(SELECT json_extract(body, '$.until') FROM states WHERE name = 'retention')"),
    (r"\bPRUNED_SEQ\b", "(SELECT json_extract(body, '$.seq') FROM states WHERE name = 'retention')"),
    (r"\bREJUDGED\(([\w.]*)\)", rf"COALESCE(\1scores GLOB '{REJUDGED_MARK}*', FALSE)"),
    (r" LOCKING\([^)]*\)", ""),
    (r"\bTRUNC\(([^()]*)\)", r"CAST(\1 AS INTEGER)"),
    # a damaged row must not fail the search
    (r"\bSCORE\(([\w.]*)\)", r"CASE WHEN json_valid(\1scores) THEN json_extract(\1scores, '$.' || :quantity) END"),
    (
        r"\bSEGMENT\(([\w.]*)\)",
        r"""CASE WHEN json_valid(\1scores) THEN json_extract(\1scores, '$.segments."' || :segment || '"') END""",
    ),
    (r"\bSEALED\b", "x'02'"),
    (r"\bHAS_WORDS\b", "a.words"),
    (r"\bLAST_SEQ\b", "(SELECT seq FROM sqlite_sequence WHERE name = 'verdicts')"),
    (r"\bPART\b", "TRUE"),
    (r"\bCOLUMNS\b", "SELECT name FROM pragma_table_info(:name)"),
    (r" UNLEASED\b", ""),
    (r"\bTALLIED\b", "SUM(value)"),
)


@lru_cache(1024)  # a search has as many forms as there are combinations of filters
def in_dialect(sql: str) -> str:
    """Return a statement in the dialect of SQLite.

    >>> in_dialect("DELETE FROM work WHERE key = LIST(:keys)")
    'DELETE FROM work WHERE key IN (SELECT value FROM json_each(:keys))'
    """
    for word, text in _WORDS:
        sql = re.sub(word, text, sql)
    return sql


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

    def execute(self, sql: str, parameters: Parameters = ()) -> sqlite3.Cursor:
        """See `Writer.execute`."""
        return self._connection.execute(in_dialect(sql), bound(parameters))

    def executemany(self, sql: str, parameters: Sequence[Parameters]) -> sqlite3.Cursor:
        """See `Writer.executemany`."""
        return self._connection.executemany(in_dialect(sql), parameters)

    def insert(self, table: str, rows: Sequence[Mapping[str, object]], conflict: str = "") -> int:
        """See `Writer.insert`."""
        if not rows:
            return 0
        marks = ", ".join(f":{name}" for name in rows[0])
        sql = f"INSERT INTO {table} ({', '.join(rows[0])}) VALUES ({marks}) {conflict}"  # noqa: S608 - names of ours
        return self._connection.executemany(sql, rows).rowcount

    def insert_samples(self, rows: Sequence[Mapping[str, object]]) -> set[str]:
        """See `Writer.insert_samples`."""
        return {str(row["key"]) for row in rows if self.insert("samples", [row], "ON CONFLICT DO NOTHING")}

    def continue_numbers(self, last: int) -> None:
        """See `Writer.continue_numbers`."""
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
