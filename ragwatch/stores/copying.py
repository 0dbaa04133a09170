"""Copies everything that a SQLite state contains into an empty PostgreSQL store, in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import orjson

from ragwatch.errors import StoreError
from ragwatch.stores.encryption import KEY_STATE
from ragwatch.stores.postgres.postgres_writer import PostgresWriter as Writer
from ragwatch.stores.postgres.store import PostgresStore
from ragwatch.stores.sqlite.reader import ReadConnection

_TABLES = {
    "tallies": "name, labels, label_names, value",
    "cursors": "source, stream, cursor",
    "samples": "key, source, route, at, body",
    "traits": "key, body",
    "work": "seq, key, judge, probability, since, batch, reservation",
    "verdicts": "seq, key, judge, version, at, route, probability, outcome, reason, stage, fault, failing, scores,"
    " trace_id, line",
    "replies": "seq, key, body",
    "events": "at, kind, detail",
    "spending": "id, judge, at, usd, tokens, settled",
    "batches": "id, judge, provider_id, prepared, seed",
    "runs": "id, kind, name, at, failing, body",
    "labels": "key, annotator, at, body",
    "parts": "source, part_group, name, at, body",
    "received": "source, digest, at",
    "feedback": "seq, key, at, score, answered",
    "early_feedback": "key, name, source, at, score, received",
    "trends": "span, kind, place, start, name, judge, version, n, w, wx, w2, w2x, w2x2, w3, w4",
    "peaks": "span, kind, place, start, name, value, threshold",
    "known_versions": "field, digest, at",
}
"""Columns of the tables that are copied as they are. Claims are not: their holders have ended."""
_UNORDERED = frozenset(
    {"tallies", "cursors", "labels", "early_feedback", "trends", "peaks", "known_versions"}
)  # tables without a rowid
_NUMBERED = {"work": "seq", "verdicts": "seq", "feedback": "seq", "spending": "id", "batches": "id", "runs": "id"}


def copy_state(state: Path, store: PostgresStore) -> dict[str, int]:
    """Copy the database of a state directory. Encrypted texts stay encrypted with their keys.

    Args:
        state: The state directory. The caller holds its lock.
        store: An empty store.

    Returns:
        The number of rows by table.

    Raises:
        StoreError: There is no database, it cannot be read, or the store is not empty.
    """
    database = state / "ragwatch.db"
    if not database.is_file():
        raise StoreError(f"state: {state} contains no ragwatch.db; give the state directory of a SQLite store")
    with closing(ReadConnection(database, tolerant=True)) as reader, store.engine.transaction() as writer:
        writer.execute("SET LOCAL statement_timeout = 0")
        _refuse_filled(writer)
        counts = {table: _copy(table, reader, writer) for table in _TABLES}
        counts["states"] = _copy_states(reader, writer)
        for table, column in _NUMBERED.items():
            writer.execute(
                f"SELECT setval(pg_get_serial_sequence('{table}', '{column}'), MAX({column})) FROM {table}".encode()  # noqa: S608 - constants
            )
        return counts


def _refuse_filled(writer: Writer) -> None:
    writer.execute("LOCK TABLE samples, tallies IN EXCLUSIVE MODE")
    for table in ("samples", "tallies", "cursors"):
        if writer.execute(f"SELECT 1 FROM {table} LIMIT 1".encode()).fetchone() is not None:  # noqa: S608 - constants
            raise StoreError(
                "store: the database is not empty, and copying would mix two states; set store.database_schema to a "
                "new name"
            )


def _copy(table: str, reader: ReadConnection, writer: Writer) -> int:
    columns = _TABLES[table]
    convert = _CONVERSIONS.get(table, _unchanged)
    order = "" if table in _UNORDERED else " ORDER BY rowid"
    extra = ", slot" if table == "tallies" else ""
    count = 0
    with (
        closing(reader.walk(f"SELECT {columns} FROM {table}{order}")) as rows,  # noqa: S608 - constants
        writer.copy(f"COPY {table} ({columns}{extra}) FROM STDIN".encode()) as copy,
    ):
        for row in rows:
            copy.write_row(convert(row))
            count += 1
    return count


def _unchanged(row: tuple[object, ...]) -> tuple[object, ...]:
    return row


def _with_slot(row: tuple[object, ...]) -> tuple[object, ...]:
    return (*row, 0)


def _with_boolean(row: tuple[object, ...]) -> tuple[object, ...]:
    return (*row[:-1], bool(row[-1]))


def _with_valid_scores(row: tuple[object, ...]) -> tuple[object, ...]:
    """Leave out scores that are damaged: PostgreSQL stores valid JSON only."""
    *others, scores, trace_id, line = row
    try:
        valid = isinstance(scores, str | bytes) and isinstance(orjson.loads(scores), dict)
    except (ValueError, TypeError):
        valid = False
    return (*others, scores if valid else None, trace_id, line)


_CONVERSIONS: dict[str, Callable[[tuple[object, ...]], tuple[object, ...]]] = {
    "tallies": _with_slot,
    "spending": _with_boolean,
    "verdicts": _with_valid_scores,
}


def _copy_states(reader: ReadConnection, writer: Writer) -> int:
    """Copy saved states; those that SQL reads are stored as columns, and ids of keys as they are."""
    count = 0
    for name, body in _states(reader):
        writer.execute(
            "INSERT INTO states (name, body) VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET body = excluded.body",
            (name, body),
        )
        count += 1
    until, seq = reader.rows("SELECT PRUNED_UNTIL"), reader.rows("SELECT PRUNED_SEQ")
    if until[0][0] is not None:
        writer.set_pruned(float(until[0][0]), int(seq[0][0]))
    return count


def _states(reader: ReadConnection) -> Iterator[tuple[str, bytes]]:
    for name, body in reader.rows("SELECT name, body FROM states ORDER BY name"):
        if isinstance(body, bytes):
            yield name, body
        elif name == KEY_STATE:
            yield name, str(body).encode("ascii", "replace")
