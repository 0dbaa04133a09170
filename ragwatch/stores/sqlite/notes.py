"""Notes: the statements for runs, people's labels, and what loops remember."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from ragwatch.core.labels.label import Label, from_record
from ragwatch.ports import StoredRun
from ragwatch.stores.sqlite.rows import known_scores, pack, sound, unpack
from ragwatch.stores.sqlite.texts import damaged

RUNS = (
    "SELECT kind, name, at, failing, body FROM runs WHERE kind = ? AND name = ? AND (? IS NULL OR failing = ?)"
    " ORDER BY at DESC, id DESC LIMIT ?"
)
LABELS = "SELECT body, key FROM labels WHERE at >= ? ORDER BY at, key"
LABELS_OF = "SELECT body, key FROM labels WHERE key = ? ORDER BY at DESC LIMIT ?"
LABELS_AFTER = "SELECT body, key FROM labels WHERE (at, key, annotator) > (?, ?, ?) ORDER BY at, key, annotator LIMIT ?"
REMEMBERED = "SELECT body FROM states WHERE name = ?"


def insert_run(writer: sqlite3.Connection, run: StoredRun) -> None:
    """Keep a run."""
    row = (run.kind, run.name, run.at, int(run.failing), pack(run.body))
    writer.execute("INSERT INTO runs (kind, name, at, failing, body) VALUES (?, ?, ?, ?, ?)", row)


@sound
def run_of(row: tuple[Any, ...]) -> StoredRun:
    """A row of `RUNS`.

    Raises:
        StoreError: It is damaged.
    """
    kind, name, at, failing, body = row
    return StoredRun(kind, name, at, bool(failing), unpack(body))


def put_labels(writer: sqlite3.Connection, labels: Sequence[Label]) -> int:
    """Keep labels. Returns how many are not in place of an earlier one."""
    before = writer.execute("SELECT COUNT(*) FROM labels").fetchone()[0]
    writer.executemany(
        "INSERT OR REPLACE INTO labels (key, annotator, at, body) VALUES (?, ?, ?, ?)",
        [(each.key, each.annotator, each.at, pack(each.to_record())) for each in labels],
    )
    return int(writer.execute("SELECT COUNT(*) FROM labels").fetchone()[0]) - int(before)


@sound
def label_of(row: tuple[Any, ...]) -> Label:
    """A row of `LABELS`, `LABELS_OF` or `LABELS_AFTER`.

    Raises:
        StoreError: It is damaged.
    """
    record = unpack(row[0])
    try:
        return from_record({**record, "scores": dict(known_scores(record["scores"]))})
    except (LookupError, ValueError, TypeError, AttributeError) as error:
        raise damaged(error) from error


def remember(writer: sqlite3.Connection, name: str, state: Mapping[str, Any]) -> None:
    """Keep a state in place of the one before."""
    writer.execute("INSERT OR REPLACE INTO states (name, body) VALUES (?, ?)", (name, pack(state)))


def claim(writer: sqlite3.Connection, name: str, holder: str, now: float, seconds: float) -> bool:
    """Take or keep a right, where nobody else holds it still; for no seconds, give it back, whatever the clock says."""
    until = now + seconds if seconds > 0.0 else -math.inf
    writer.execute(
        "INSERT INTO claims (name, holder, until) VALUES (?1, ?2, ?3) ON CONFLICT (name) DO UPDATE"
        " SET holder = excluded.holder, until = excluded.until WHERE claims.holder = ?2 OR claims.until <= ?4",
        (name, holder, until, now),
    )
    return bool(writer.execute("SELECT holder = ? FROM claims WHERE name = ?", (holder, name)).fetchone()[0])
