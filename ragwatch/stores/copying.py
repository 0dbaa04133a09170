"""Copies a state from one engine to the other, SQLite to PostgreSQL or back, in steps that a later call goes on with.

Rows are copied in the order of their keys, some at a time, and the last key of the target says where to go on.
Encrypted texts stay encrypted with their keys. Claims are not copied: their holders have ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import orjson

from ragwatch.errors import StoreError
from ragwatch.stores.encryption import KEY_STATE
from ragwatch.stores.engine import ADMITTING, Engine, Reader, Rows, Writer
from ragwatch.stores.notes import REMEMBER
from ragwatch.stores.rows import pack
from ragwatch.stores.store_base import COPYING

MAX_ROWS_PER_STEP = 500


class Table(NamedTuple):
    """A table that is copied: the columns of its key, by which it is ordered, and the others."""

    key: tuple[str, ...]
    others: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns."""
        return (*(name for name in self.key if name != "ROW_ID"), *self.others)


TABLES = {
    "tallies": Table(("name", "labels"), ("label_names", "value")),
    "samples": Table(("key",), ("source", "route", "at", "body")),
    "traits": Table(("key",), ("body",)),
    "work": Table(("seq",), ("key", "judge", "probability", "since", "batch", "reservation")),
    "verdicts": Table(
        ("seq",),
        (
            *("key", "judge", "version", "at", "route", "probability", "outcome", "reason", "stage", "fault"),
            *("failing", "scores", "trace_id", "line"),
        ),
    ),
    "replies": Table(("seq",), ("key", "body")),
    "events": Table(("ROW_ID",), ("at", "kind", "detail")),
    "spending": Table(("id",), ("judge", "at", "usd", "tokens", "settled")),
    "batches": Table(("id",), ("judge", "provider_id", "prepared", "seed")),
    "runs": Table(("id",), ("kind", "name", "at", "failing", "body")),
    "labels": Table(("key", "annotator"), ("at", "body")),
    "parts": Table(("ROW_ID",), ("source", "part_group", "name", "at", "body")),
    "received": Table(("source", "digest"), ("at",)),
    "feedback": Table(("seq",), ("key", "at", "score", "answered")),
    "early_feedback": Table(("key",), ("name", "source", "at", "score", "received")),
    "trends": Table(
        ("span", "kind", "place", "start", "name", "judge", "version"),
        ("n", "w", "wx", "w2", "w2x", "w2x2", "w3", "w4"),
    ),
    "peaks": Table(("span", "kind", "place", "start", "name"), ("value", "threshold")),
    "known_versions": Table(("field", "digest"), ("at",)),
    "cursors": Table(("source", "stream"), ("cursor",)),
}
_SUMMED = (
    "SELECT name, labels, MAX(label_names), TALLIED FROM tallies WHERE {} GROUP BY name, labels ORDER BY name, labels"
    " LIMIT :limit"
)
_OF_ENGINE = ("retention", "sampling key", "search index", COPYING)  # saved states that are not copied


def copy_state(source: Engine, target: Engine) -> dict[str, int]:
    """Copy everything. A copy that was cut short goes on where it ended. Returns the number of rows by table.

    Both are opened without keys, so that texts are copied as they are.

    Raises:
        StoreError: One cannot be read or written, or the target is neither empty nor one into which a copy was begun.
    """
    _begin(target)
    for name, table in TABLES.items():
        while _copied(name, table, source, target):
            pass
    counts = {name: int(target.rows(f"SELECT COUNT(*) FROM {name}")[0][0]) for name in TABLES}  # noqa: S608 - constants
    with target.transaction() as writer:
        counts["states"] = _copy_states(source, writer)
        ((until, seq),) = source.rows("SELECT PRUNED_UNTIL, PRUNED_SEQ")
        if until is not None:
            writer.set_pruned(float(until), int(seq))
        ((last,),) = source.rows("SELECT LAST_SEQ")
        writer.continue_numbers(int(last or 0))
        writer.execute("DELETE FROM states WHERE name = :name", {"name": COPYING})
    return counts


def _begin(target: Engine) -> None:
    with target.transaction() as writer:
        if writer.rows("SELECT 1 FROM states WHERE name = :name", {"name": COPYING}):
            return
        for table in ("samples", "tallies", "cursors"):
            if writer.rows(f"SELECT 1 FROM {table} LIMIT 1"):  # noqa: S608 - constants
                raise StoreError(
                    "store: the database is not empty, and copying would mix two states; give an empty one "
                    "(store.database_schema: a new name, or a new state directory)"
                )
        writer.execute(REMEMBER, {"name": COPYING, "body": pack({})})


def _copied(name: str, table: Table, source: Reader, target: Engine) -> int:
    """Copy the next rows of a table. Returns their number."""
    rows = _rows_after(name, table, source, target)
    with target.transaction(ADMITTING) as writer:
        named = [_converted(name, dict(zip(table.columns, row, strict=True)), writer) for row in rows]
        if name == "samples":
            writer.insert_samples(named)
        else:
            writer.insert(name, named)
    return len(rows)


def _rows_after(name: str, table: Table, source: Reader, target: Reader) -> Rows:
    columns, order = ", ".join(table.columns), ", ".join(table.key)
    columns = columns.replace("scores", "CAST(scores AS text)")
    if table.key == ("ROW_ID",):
        ((count,),) = target.rows(f"SELECT COUNT(*) FROM {name}")  # noqa: S608 - constants
        sql = f"SELECT {columns} FROM {name} ORDER BY ROW_ID LIMIT :limit OFFSET :count"  # noqa: S608 - constants
        return source.rows(sql, {"limit": MAX_ROWS_PER_STEP, "count": count})
    newest = ", ".join(f"{column} DESC" for column in table.key)
    last = target.rows(f"SELECT {order} FROM {name} ORDER BY {newest} LIMIT 1")  # noqa: S608 - constants
    values: dict[str, object] = {"limit": MAX_ROWS_PER_STEP}
    after = "TRUE"
    if last:
        values |= {f"last_{column}": value for column, value in zip(table.key, last[0], strict=True)}
        after = f"({order}) > ({', '.join(f':last_{column}' for column in table.key)})"
    if name == "tallies":
        return source.rows(_SUMMED.format(after), values)
    sql = f"SELECT {columns} FROM {name} WHERE {after} ORDER BY {order} LIMIT :limit"  # noqa: S608 - constants
    return source.rows(sql, values)


def _converted(name: str, row: dict[str, object], writer: Writer) -> Mapping[str, object]:
    """Return a row as both engines take it."""
    if name in ("samples", "verdicts"):
        at = row["at"]
        row |= writer.part(at) if isinstance(at, float | int) else {}
    if name == "verdicts":
        row["scores"] = _scores(row["scores"])
    if name == "spending":
        row["settled"] = bool(row["settled"])
    if name == "tallies":
        row |= dict.fromkeys(writer.slot, 0)
    return row


def _scores(stored: object) -> str | None:
    """Return scores with the mark of a reading again at their begin; damaged ones are left out."""
    try:
        scores = orjson.loads(stored) if isinstance(stored, str | bytes) else None
    except ValueError:
        return None
    if not isinstance(scores, dict):
        return None
    mark = {"rejudged": scores.pop("rejudged")} if "rejudged" in scores else {}
    return orjson.dumps({**mark, **scores}).decode()


def _copy_states(source: Reader, writer: Writer) -> int:
    """Copy saved states. The ids of keys are a text in SQLite, which SQL reads, and bytes in PostgreSQL."""
    count = 0
    for name, body in source.rows("SELECT name, body FROM states ORDER BY name"):
        if name == KEY_STATE:
            text = body.decode("ascii", "replace") if isinstance(body, bytes) else str(body)
            writer.execute(REMEMBER, {"name": name, "body": text.encode("ascii", "replace") if writer.slot else text})
        elif isinstance(body, bytes) and name not in _OF_ENGINE:
            writer.execute(REMEMBER, {"name": name, "body": body})
        else:
            continue
        count += 1
    return count
