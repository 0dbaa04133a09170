"""Statements in the dialect of PostgreSQL, and the transaction that runs them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any

import psycopg

from ragwatch.stores.codec.encryption import TextCipher
from ragwatch.stores.engine import Parameters, Writer
from ragwatch.stores.limits import REJUDGED_MARK
from ragwatch.stores.postgres.locks import LOCK, RETENTION, TRY

_WORDS: tuple[tuple[str, str], ...] = (
    # lists are given in binary (b): as text, psycopg takes 20 us for each body of a sample
    (r"\bLIST\(%\((\w+)\)s\)", r"ANY(%(\1)b::text[])"),
    (r"\bINTS\(%\((\w+)\)s\)", r"ANY(%(\1)b::bigint[])"),
    (r"\bBLOBS\(%\((\w+)\)s\)", r"ANY(%(\1)b::bytea[])"),
    (r"\bREPLIED\(%\((\w+)\)s\)", r"key = ANY(%(\1)b::text[])"),
    (r"\bSAMPLE_KEYS\b", "sample_keys"),
    (r"\bDROPPED\b", r"'\\x00'::bytea"),
    (r"\bROW_ID\b", "id"),
    (r"\bLOWEST\b", "'-Infinity'::float8"),
    (r"\bPRUNED_UNTIL\b", "(SELECT pruned.until FROM pruned)"),
    (r"\bPRUNED_SEQ\b", "(SELECT pruned.seq FROM pruned)"),
    (r"\bREJUDGED\(([\w.]*)\)", rf"COALESCE(\1scores @> '{REJUDGED_MARK}}}', FALSE)"),
    (r"\bLOCKING\(([^)]*)\)", r"\1"),
    (r"\bTRUNC\(([^()]*)\)", r"trunc(\1)::bigint"),
    (r"\bSCORE\(([\w.]*)\)", r"(\1scores ->> %(quantity)s)::float8"),
    (r"\bSEGMENT\(([\w.]*)\)", r"\1scores -> 'segments' ->> %(segment)s"),
    (r"\bSEALED\b", r"'\\x02'::bytea"),
    (r"\bHAS_WORDS\b", "CASE WHEN a.key IS NOT NULL THEN a.words IS NOT NULL END"),
    (
        r"\bLAST_SEQ\b",
        "COALESCE(pg_sequence_last_value(pg_get_serial_sequence('verdicts', 'seq')::regclass), 0)",
    ),
    (r"\bPART\b", "part <= 0"),
    (
        r"\bCOLUMNS\b",
        "SELECT attname::text FROM pg_attribute WHERE attrelid = to_regclass(%(name)s) AND attnum > 0 ORDER BY attnum",
    ),
    (r" UNLEASED\b", ", holder = NULL, leased_until = '-Infinity'"),
    (r"\bTALLIED\b", "SUM(value ORDER BY slot)"),  # in this order, rounding never makes a counter fall
)
_PARAMETER = re.compile(r"(?<![:\w]):([a-z]\w*)")
TYPES = {
    **dict.fromkeys(("at", "since", "probability", "value", "score", "received", "answered", "threshold"), "float8"),
    **dict.fromkeys(("w", "wx", "w2", "w2x", "w2x2", "w3", "w4", "usd"), "float8"),
    **dict.fromkeys(("seq", "id", "batch", "reservation"), "bigint"),
    **dict.fromkeys(("span", "start", "n", "slot", "part", "failing", "tokens"), "bigint"),
    **dict.fromkeys(("body", "line", "digest"), "bytea"),
    "scores": "jsonb",
    "prepared": "float8",
    "settled": "boolean",
}
"""Types of the columns that are inserted in bulk; the others are texts."""
_TEXTUAL = {"jsonb": "text"}  # how values of a type are given

_NUMBERED = {"work": "seq", "verdicts": "seq", "feedback": "seq", "spending": "id", "batches": "id", "runs": "id"}
_SAMPLE = ("key", "source", "route", "at", "body", "part")
_LISTS = ", ".join(f"%({name})b::{TYPES.get(name, 'text')}[]" for name in _SAMPLE)
_NEW_SAMPLES = (
    f"WITH given AS (SELECT * FROM unnest({_LISTS}) AS g({', '.join(_SAMPLE)})),"  # noqa: S608 - constants
    " new AS (INSERT INTO sample_keys (key, part) SELECT key, part FROM given ORDER BY key"
    " ON CONFLICT DO NOTHING RETURNING key)"
    f" INSERT INTO samples ({', '.join(_SAMPLE)}) SELECT {', '.join(_SAMPLE)} FROM given JOIN new USING (key)"
    " RETURNING key"
).encode()


@lru_cache(1024)  # a search has as many forms as there are combinations of filters
def in_dialect(sql: str) -> bytes:
    """Return a statement in the dialect of PostgreSQL, as psycopg takes it.

    >>> in_dialect("DELETE FROM work WHERE judge = :judge AND key = LIST(:keys)")
    b'DELETE FROM work WHERE judge = %(judge)s AND key = ANY(%(keys)b::text[])'
    """
    sql = _PARAMETER.sub(r"%(\1)s", sql)
    for word, text in _WORDS:
        sql = re.sub(word, text, sql)
    return sql.encode()


@lru_cache(64)
def _insertion(table: str, columns: tuple[str, ...], conflict: str) -> bytes:
    """Statement that inserts rows in their order, given as one list for each column."""
    types = [TYPES.get(name, "text") for name in columns]
    lists = ", ".join(f"%b::{_TEXTUAL.get(kind, kind)}[]" for kind in types)
    values = ", ".join(f"g.{name}::{kind}" if kind in _TEXTUAL else f"g.{name}" for name, kind in zip(columns, types))  # noqa: B905 - same length
    names = ", ".join(columns)
    return (
        f"INSERT INTO {table} ({names}) OVERRIDING SYSTEM VALUE SELECT {values} FROM unnest({lists})"  # noqa: S608 - names of ours
        f" WITH ORDINALITY AS g({names}, ordinal) ORDER BY g.ordinal {conflict}"
    ).encode()


class PostgresWriter(Writer):
    """Runs statements on a cursor, within a transaction."""

    def __init__(
        self, cursor: psycopg.Cursor, cipher: TextCipher | None, slot: int, part_of: Callable[[float], int]
    ) -> None:
        self._cursor, self.cipher, self._part_of = cursor, cipher, part_of
        self.slot = {"slot": slot}

    def part(self, at: float) -> Mapping[str, int]:
        """See `Writer.part`."""
        return {"part": self._part_of(at)}

    def execute(self, sql: str | bytes, parameters: Parameters = ()) -> psycopg.Cursor:
        """See `Writer.execute`."""
        return self._cursor.execute(in_dialect(sql) if isinstance(sql, str) else sql, parameters)

    def executemany(self, sql: str | bytes, parameters: Sequence[Parameters]) -> None:
        """See `Writer.executemany`."""
        if parameters:
            self._cursor.executemany(in_dialect(sql) if isinstance(sql, str) else sql, parameters)

    def insert(self, table: str, rows: Sequence[Mapping[str, object]], conflict: str = "") -> int:
        """See `Writer.insert`."""
        if not rows:
            return 0
        columns = tuple(rows[0])
        lists = [_column([row[name] for row in rows], TYPES.get(name)) for name in columns]
        return self._cursor.execute(_insertion(table, columns, conflict), lists).rowcount

    def queued(self) -> AbstractContextManager[object]:
        """See `Writer.queued`."""
        return self._cursor.connection.pipeline()

    def insert_samples(self, rows: Sequence[Mapping[str, object]]) -> set[str]:
        """See `Writer.insert_samples`."""
        ordered = sorted(rows, key=lambda row: str(row["key"]))
        lists = {name: _column([row[name] for row in ordered], TYPES.get(name)) for name in _SAMPLE}
        return {key for (key,) in self._cursor.execute(_NEW_SAMPLES, lists).fetchall()} if rows else set()

    def may_prune(self) -> bool:
        """See `Writer.may_prune`."""
        return bool(self._cursor.execute(TRY, (RETENTION,)).fetchall()[0][0])

    def continue_numbers(self, last: int) -> None:
        """See `Writer.continue_numbers`."""
        for table, column in _NUMBERED.items():
            least = last if table == "verdicts" else 0
            self._cursor.execute(
                f"SELECT setval(pg_get_serial_sequence('{table}', '{column}'), GREATEST(MAX({column}), %s::bigint, 1),"  # noqa: S608 - constants
                f" MAX({column}) IS NOT NULL OR %s::bigint > 0) FROM {table}".encode(),
                (least, least),
            )

    def set_pruned(self, until: float, seq: int) -> None:
        """See `Writer.set_pruned`."""
        self._cursor.execute(
            "INSERT INTO pruned (until, seq) VALUES (%s, %s)"
            " ON CONFLICT (one) DO UPDATE SET until = excluded.until, seq = excluded.seq",
            (until, seq),
        )

    def lock(self, number: int, name: str = "") -> None:
        """See `Writer.lock`."""
        self._cursor.execute(LOCK, (number, name))


def _column(values: list[Any], kind: str | None) -> list[Any]:
    return [None if value is None else float(value) for value in values] if kind == "float8" else values
