"""Counters, and the rows that are only appended: events, and the scores that windows read."""

import json
import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from ragwatch.ports import RecordedEvent, ScoreRow
from ragwatch.statistics.tally import Tallies, Tally, TallyKey
from ragwatch.stores.engine import LIVE, Component, Writer
from ragwatch.stores.rows import SCORE_COLUMNS, score_row, single_number

_TALLIES = "SELECT name, labels, MAX(label_names), TALLIED FROM tallies GROUP BY name, labels"
_PENDING = "SELECT judge, COUNT(*) FROM work GROUP BY judge"
_BOTH = f"{_TALLIES} UNION ALL SELECT NULL, judge, NULL, COUNT(*) FROM work GROUP BY judge"  # noqa: S608 - constants
"""Of one instant, because it is one statement."""
_OVERDUE = (
    "SELECT s.route, w.judge, TRUNC(s.at / 60), SUM(1 / w.probability) FROM work w JOIN samples s ON s.key = w.key"
    " WHERE w.since < :before GROUP BY 1, 2, 3"
)
_WINDOW = (
    f"SELECT {SCORE_COLUMNS} FROM verdicts v"  # noqa: S608 - constants only
    f" WHERE v.seq > :after AND v.at >= :since AND {LIVE} ORDER BY v.seq LIMIT :limit"
)


class Counting(Component):
    """Counters, events and windows of scores."""

    def tallies(self) -> Tallies:
        return tallies_of(self.engine.rows(_TALLIES))

    def pending(self) -> dict[str, int]:
        return dict(self.engine.rows(_PENDING))

    def tallies_and_pending(self) -> tuple[Tallies, dict[str, int]]:
        rows = self.engine.rows(_BOTH)
        tallies = tallies_of([row for row in rows if row[0] is not None])
        return tallies, {judge: int(count) for name, judge, _, count in rows if name is None}

    def overdue(self, before: float) -> dict[tuple[str, str, int], float]:
        weights = self.engine.rows(_OVERDUE, {"before": before})
        return {(route, judge, minute): weight for route, judge, minute, weight in weights}

    def record(self, event: RecordedEvent) -> None:
        with self.engine.transaction() as writer:
            writer.insert("events", [{"at": event.at, "kind": event.kind, "detail": event.detail}])

    def events(self, since: float) -> list[RecordedEvent]:
        sql = "SELECT at, kind, detail FROM events WHERE at >= :since ORDER BY at, ROW_ID"
        return [RecordedEvent(*row) for row in self.engine.pages.rows(sql, {"since": since})]

    def last_events(self, since: float) -> dict[str, float]:
        sql = "SELECT kind, MAX(at) FROM events WHERE at >= :since GROUP BY kind"
        return dict(self.engine.rows(sql, {"since": since}))

    def window(self, after: int, since: float, limit: int) -> list[ScoreRow]:
        newest = single_number(self.engine.rows("SELECT MAX(at) FROM verdicts"))
        if newest is None or newest < since:  # quick exit for a silent service or an old log
            return []
        stored = self.engine.rows(_WINDOW, {"after": after, "since": since, "limit": limit})
        return [score_row(row) for row in stored]

    def pruned_until(self) -> float:
        until = single_number(self.engine.rows("SELECT PRUNED_UNTIL"))
        return -math.inf if until is None else float(until)

    def damaged(self) -> int:
        return len(self.engine.damage)


def add_tallies(writer: Writer, tallies: Tallies) -> None:
    """Increment counters, in the order of their names, so that two workers with the same ones wait for each other."""
    rows = [
        {
            "name": str(tally),
            "labels": json.dumps(labels),
            **writer.slot,
            "label_names": json.dumps(tally.labels),
            "value": float(amount),
        }
        for (tally, labels), amount in tallies.items()
    ]
    rows.sort(key=lambda row: (row["name"], row["labels"]))
    key = ", ".join(("name", "labels", *writer.slot))
    added = "value = tallies.value + excluded.value, label_names = excluded.label_names"
    writer.insert("tallies", rows, f"ON CONFLICT ({key}) DO UPDATE SET {added}")


def tallies_of(stored: Sequence[tuple[str, str, str | None, float]]) -> Tallies:
    """Decode counters from (name, labels, label_names, value).

    Those of another version whose name or labels are not known are left out, and stay in the table; their number is
    `Tally.UNKNOWN_COUNTERS`.
    """
    sums: dict[TallyKey, float] = {}
    for name, labels, label_names, value in stored:
        tally = _tally_key(name, labels, label_names)
        key, amount = (tally, value) if tally else ((Tally.UNKNOWN_COUNTERS, (str(name),)), 1)
        sums[key] = sums.get(key, 0) + amount
    return Counter(sums)


@lru_cache(1 << 14)  # all rows are read every few seconds; there are as many as series
def _tally_key(name: str, labels: str, label_names: str | None) -> TallyKey | None:
    """Find the counter of a row by its name and the names of its labels; without these it has those of today."""
    try:
        tally, values = Tally(name), json.loads(labels)
        by_name = dict(zip(json.loads(label_names) if label_names else tally.labels, values, strict=True))
    except (ValueError, TypeError):
        return None
    if by_name.keys() != set(tally.labels) or not all(isinstance(value, str) for value in values):
        return None
    return tally, tuple(by_name[label] for label in tally.labels)
