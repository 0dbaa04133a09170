"""The transaction that runs statements in PostgreSQL, with bulk insertion, and the advisory locks that it takes."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any

import psycopg

from ragwatch.stores.dialect import in_postgres
from ragwatch.stores.encryption import TextCipher, opened
from ragwatch.stores.engine import Parameters, Rows, Writer

RETENTION, MIGRATION, STATES, PARTITIONS = 3, 4, 5, 6
"""Advisory locks beside those of `stores.engine`, held until the end of a transaction: by the worker that deletes, or
migrates; while a saved state is changed that any worker may change; while partitions are made."""
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


def locked(connection: psycopg.Connection, number: int, name: str) -> None:
    """Wait for the lock of a database schema that may not exist yet."""
    connection.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", (number, name))


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
        return {"part": self._part_of(at)}

    def rows(self, sql: str, parameters: Parameters = ()) -> Rows:
        return opened(self._cursor.execute(in_postgres(sql), parameters), self.cipher)

    def execute(self, sql: str, parameters: Parameters = ()) -> int:
        return self._cursor.execute(in_postgres(sql), parameters).rowcount

    def executemany(self, sql: str, parameters: Sequence[Parameters]) -> None:
        if parameters:
            self._cursor.executemany(in_postgres(sql), parameters)

    def insert(self, table: str, rows: Sequence[Mapping[str, object]], conflict: str = "") -> int:
        if not rows:
            return 0
        columns = tuple(rows[0])
        lists = [_column([row[name] for row in rows], TYPES.get(name)) for name in columns]
        return self._cursor.execute(_insertion(table, columns, conflict), lists).rowcount

    def queued(self) -> AbstractContextManager[object]:
        return self._cursor.connection.pipeline()

    def insert_samples(self, rows: Sequence[Mapping[str, object]]) -> set[str]:
        ordered = sorted(rows, key=lambda row: str(row["key"]))
        lists = {name: _column([row[name] for row in ordered], TYPES.get(name)) for name in _SAMPLE}
        return {key for (key,) in self._cursor.execute(_NEW_SAMPLES, lists).fetchall()} if rows else set()

    def may_prune(self) -> bool:
        sql = "SELECT pg_try_advisory_xact_lock(%s, hashtext(current_schema() || ''))"
        return bool(self._cursor.execute(sql, (RETENTION,)).fetchall()[0][0])

    def continue_numbers(self, last: int) -> None:
        for table, column in _NUMBERED.items():
            least = last if table == "verdicts" else 0
            self._cursor.execute(
                f"SELECT setval(pg_get_serial_sequence('{table}', '{column}'), GREATEST(MAX({column}), %s::bigint, 1),"  # noqa: S608 - constants
                f" MAX({column}) IS NOT NULL OR %s::bigint > 0) FROM {table}".encode(),
                (least, least),
            )

    def set_pruned(self, until: float, seq: int) -> None:
        self._cursor.execute(
            "INSERT INTO pruned (until, seq) VALUES (%s, %s)"
            " ON CONFLICT (one) DO UPDATE SET until = excluded.until, seq = excluded.seq",
            (until, seq),
        )

    def lock(self, number: int, name: str = "") -> None:
        sql = "SELECT pg_advisory_xact_lock(%s, hashtext(current_schema() || %s))"
        self._cursor.execute(sql, (number, name))


def _column(values: list[Any], kind: str | None) -> list[Any]:
    return [None if value is None else float(value) for value in values] if kind == "float8" else values
