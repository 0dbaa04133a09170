"""SQL statements for parts that wait for the rest of a sample, and for ids of records that were received."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Collection, Iterable, Sequence

from ragwatch.ports import Admission
from ragwatch.stores.rows import ZLIB_LEVEL, digest

DAY = 86400.0
PARTS = "SELECT part_group, name, body, at FROM parts WHERE source = ? ORDER BY rowid"
MAX_ROWS_PER_STEP = 5000
MAX_VARIABLES = 500  # of one SELECT


def write(writer: sqlite3.Connection, admission: Admission) -> None:
    """Store the parts and ids of an admission, and delete the groups that it releases."""
    source = admission.source
    writer.executemany(
        "INSERT OR IGNORE INTO parts VALUES (?, ?, ?, ?, seal(?))",
        [(source, part.group, part.name, part.at, zlib.compress(part.payload, ZLIB_LEVEL)) for part in admission.hold],
    )
    writer.executemany(
        "DELETE FROM parts WHERE source = ? AND part_group = ?", [(source, group) for group in admission.release]
    )
    at = admission.at or 0.0
    writer.executemany(
        "INSERT OR IGNORE INTO received VALUES (?, ?, ?)",
        [(source, digest(identity), at) for identity in admission.received],
    )


def received_queries(source: str, ids: Collection[str]) -> Iterable[tuple[str, Sequence[object], dict[bytes, str]]]:
    """Queries for the digests that are stored, each with its parameters and its ids by digest."""
    every = {digest(identity): identity for identity in ids}
    digests = list(every)
    for start in range(0, len(digests), MAX_VARIABLES):
        some = digests[start : start + MAX_VARIABLES]
        marks = ", ".join("?" * len(some))
        sql = f"SELECT digest FROM received WHERE source = ? AND digest IN ({marks})"  # noqa: S608 - question marks
        yield sql, (source, *some), {key: every[key] for key in some}


def delete_old(writer: sqlite3.Connection, now: float) -> int:
    """Delete a limited number of ids that were received more than a day ago, and of parts that wait for so long.

    Sources release their parts within minutes; older ones belong to a source that is not configured any more.
    """
    deleted = 0
    for table in ("received", "parts"):
        deleted += writer.execute(
            f"DELETE FROM {table} WHERE rowid IN"  # noqa: S608 - constant names
            f" (SELECT rowid FROM {table} WHERE at < ? OR at > ? ORDER BY rowid LIMIT ?)",
            (now - DAY, now + DAY, MAX_ROWS_PER_STEP),
        ).rowcount
    return deleted
