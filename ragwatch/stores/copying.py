"""Copies a state from one engine to the other, SQLite to PostgreSQL or back, in steps that a later call goes on with.

Rows are copied in the order of their keys, some at a time, and the last key of the target says where to go on.
Encrypted texts stay encrypted with their keys. Claims are not copied: their holders have ended.
"""

from collections.abc import Mapping, Sequence

import orjson

from ragwatch.errors import StoreError
from ragwatch.stores.engine import ADMITTING, REMEMBER, Engine, Reader, Rows, Writer
from ragwatch.stores.store_base import COPYING
from ragwatch.stores.texts import pack

MAX_ROWS_PER_STEP = 500


TABLES: dict[str, tuple[str, ...]] = {
    "tallies": ("name", "labels"),
    **dict.fromkeys(("samples", "traits", "early_feedback"), ("key",)),
    **dict.fromkeys(("work", "verdicts", "replies", "feedback"), ("seq",)),
    **dict.fromkeys(("spending", "batches", "runs"), ("id",)),
    **dict.fromkeys(("events", "parts"), ("ROW_ID",)),
    "labels": ("key", "annotator"),
    "received": ("source", "digest"),
    "trends": ("span", "kind", "place", "start", "name", "judge", "version"),
    "peaks": ("span", "kind", "place", "start", "name"),
    "known_versions": ("field", "digest"),
    "cursors": ("source", "stream"),
}
"""Tables in the order in which they are copied, with the columns of their order; all columns of both engines are."""
_OF_ENGINE = ("retention", "sampling key", "search index", COPYING)  # saved states that are not copied


def copy_state(source: Engine, target: Engine) -> dict[str, int]:
    """Copy everything. A copy that was cut short goes on where it ended. Returns the number of rows by table.

    Both are opened without keys, so that texts are copied as they are. Raises a `StoreError` if one cannot be read or
    written, or the target is neither empty nor one into which a copy was begun.
    """
    _begin(target)
    for name in TABLES:
        theirs, ours = ([str(row[0]) for row in one.rows("COLUMNS", {"name": name})] for one in (source, target))
        while _copied(name, [column for column in theirs if column in ours], source, target):
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


def _copied(name: str, columns: Sequence[str], source: Reader, target: Engine) -> int:
    """Copy the next rows of a table. Returns their number."""
    rows = _rows_after(name, columns, source, target)
    with target.transaction(ADMITTING) as writer:
        named = [_converted(name, dict(zip(columns, row, strict=True)), writer) for row in rows]
        if name == "samples":
            writer.insert_samples(named)
        else:
            writer.insert(name, named)
    return len(rows)


def _rows_after(name: str, columns: Sequence[str], source: Reader, target: Reader) -> Rows:
    key = TABLES[name]
    selected, order = ", ".join(columns).replace("scores", "CAST(scores AS text)"), ", ".join(key)
    if key == ("ROW_ID",):
        ((count,),) = target.rows(f"SELECT COUNT(*) FROM {name}")  # noqa: S608 - constants
        sql = f"SELECT {selected} FROM {name} ORDER BY ROW_ID LIMIT :limit OFFSET :count"  # noqa: S608 - constants
        return source.rows(sql, {"limit": MAX_ROWS_PER_STEP, "count": count})
    newest = ", ".join(f"{column} DESC" for column in key)
    last = target.rows(f"SELECT {order} FROM {name} ORDER BY {newest} LIMIT 1")  # noqa: S608 - constants
    values: dict[str, object] = {"limit": MAX_ROWS_PER_STEP}
    after = "TRUE"
    if last:
        values |= {f"last_{column}": value for column, value in zip(key, last[0], strict=True)}
        after = f"({order}) > ({', '.join(f':last_{column}' for column in key)})"
    if name == "tallies":  # summed over the workers
        selected = selected.replace("label_names", "MAX(label_names)").replace("value", "TALLIED")
        after += f" GROUP BY {order}"
    sql = f"SELECT {selected} FROM {name} WHERE {after} ORDER BY {order} LIMIT :limit"  # noqa: S608 - constants
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
    """Copy saved states. Earlier versions stored the ids of keys as a text in SQLite."""
    stored = source.rows("SELECT name, body FROM states ORDER BY name")
    kept = {name: body.encode() if isinstance(body, str) else body for name, body in stored if name not in _OF_ENGINE}
    for name, body in kept.items():
        writer.execute(REMEMBER, {"name": name, "body": body})
    return len(kept)
