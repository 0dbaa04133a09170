"""Entries: the statements that a transaction of the SQLite store is made of."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Sequence

from ragwatch.core.sample import Draw
from ragwatch.core.tally import Tallies, Tally
from ragwatch.core.verdict import Verdict
from ragwatch.ports import Admission
from ragwatch.stores import rows


def tallies_of(found: Sequence[tuple[str, str, float]]) -> Tallies:
    """Counts from (name, labels, value)."""
    return Counter({(Tally(name), tuple(json.loads(labels))): value for name, labels, value in found})


def insert_sample(writer: sqlite3.Connection, draw: Draw) -> bool:
    """Keep a draw's sample; False when its key is known."""
    row = (draw.key, draw.source, draw.route, draw.at, rows.pack(draw.sample.to_record()))
    return writer.execute("INSERT OR IGNORE INTO samples VALUES (?, ?, ?, ?, ?)", row).rowcount == 1


def insert_verdict(writer: sqlite3.Connection, verdict: Verdict) -> None:
    """Keep a verdict."""
    row = rows.verdict_row(verdict)
    names = ", ".join(row)
    holes = ", ".join(f":{name}" for name in row)
    writer.execute(f"INSERT INTO verdicts ({names}) VALUES ({holes})", row)  # noqa: S608 - names of our own columns


def add(writer: sqlite3.Connection, tallies: Tallies) -> None:
    """Count up."""
    writer.executemany(
        "INSERT INTO tallies VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = value + excluded.value",
        [(str(tally), json.dumps(labels), amount) for (tally, labels), amount in tallies.items()],
    )


def move(writer: sqlite3.Connection, admission: Admission) -> None:
    """Put the cursor of a stream behind what is admitted."""
    place = (admission.source, admission.stream)
    if admission.cursor:
        writer.execute("INSERT OR REPLACE INTO cursors VALUES (?, ?, ?)", (*place, admission.cursor))
    else:  # the stream has ended for good
        writer.execute("DELETE FROM cursors WHERE source = ? AND stream = ?", place)
