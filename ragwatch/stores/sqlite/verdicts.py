"""Entries: the statements that a transaction of the SQLite store is made of."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from ragwatch.core.sample import Draw
from ragwatch.core.tally import Tallies, Tally, TallyKey, count_assignments, verdict_tallies
from ragwatch.core.verdict import Verdict
from ragwatch.ports import Admission, Assignment, FollowUp
from ragwatch.stores.sqlite import rows

_KNOWN = frozenset(Tally)


@rows.sound
def tallies_of(found: Sequence[tuple[str, str, float]]) -> Tallies:
    """Counts from (name, labels, value). What only a newer version counts stays in the table for it."""
    return Counter({_place(name, labels): value for name, labels, value in found if name in _KNOWN})


@lru_cache(1 << 14)  # all of them are read every few seconds, and there are as many as series
def _place(name: str, labels: str) -> TallyKey:
    return Tally(name), tuple(json.loads(labels))


def insert_sample(writer: sqlite3.Connection, draw: Draw) -> bool:
    """Keep a draw's sample; False when its key is known."""
    row = (draw.key, draw.source, draw.route, draw.at, rows.pack(draw.sample.to_record()))
    return writer.execute("INSERT OR IGNORE INTO samples VALUES (?, ?, ?, ?, ?)", row).rowcount == 1


def insert_work(writer: sqlite3.Connection, key: str, assignments: Sequence[Assignment], since: float) -> None:
    """Queue a draw for its judges; it waits since then."""
    writer.executemany(
        "INSERT INTO work (key, judge, probability, since) VALUES (?, ?, ?, ?)",
        [(key, each.judge, each.probability, since) for each in assignments],
    )


def settle(writer: sqlite3.Connection, verdicts: Sequence[Verdict], counts: Tallies) -> set[tuple[str, str]]:
    """Take verdicts out of the queue and keep them, and count them. Returns (judge, key) of those that were new."""
    new = set()
    for verdict in verdicts:
        place = (verdict.reading.judge, verdict.draw.key)
        if writer.execute("DELETE FROM work WHERE judge = ? AND key = ?", place).rowcount == 0:
            continue
        new.add(place)
        insert_verdict(writer, verdict)
        counts.update(verdict_tallies(verdict))
    return new


def follow(writer: sqlite3.Connection, follow_ups: Sequence[FollowUp], counts: Tallies) -> None:
    """Queue draws for further judges, and count them. One that a judge has, or has read before, it is not given."""
    for each in follow_ups:
        judge = each.assignment.judge
        row = (each.key, judge, each.assignment.probability, each.at)
        queued = writer.execute(
            "INSERT INTO work (key, judge, probability, since) SELECT ?1, ?2, ?3, ?4"
            " WHERE NOT EXISTS (SELECT 1 FROM verdicts WHERE key = ?1 AND judge = ?2) ON CONFLICT DO NOTHING",
            row,
        ).rowcount
        count_assignments(counts, judge, queued)


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
