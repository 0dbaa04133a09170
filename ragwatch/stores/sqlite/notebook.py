"""Notebook: the part of the SQLite store that keeps runs, people's labels, and what loops remember."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

from ragwatch.core.labels.label import Label
from ragwatch.core.tally import Tallies
from ragwatch.errors import StoreError
from ragwatch.ports import StoredRun
from ragwatch.stores.sqlite import notes
from ragwatch.stores.sqlite import verdicts as entries
from ragwatch.stores.sqlite.connections import Connections
from ragwatch.stores.sqlite.rows import unpack
from ragwatch.stores.sqlite.texts import PackedText

RUNS_BYTES = 8 << 20  # of runs that are read at a time: a suite may keep whole answers
MOST_DAMAGED = 10_000  # rows that are told apart; who has more needs no exact number

Made = TypeVar("Made")


class SqliteNotes(Connections):
    """See `ports.Notes`. Every writing method is one transaction."""

    def __init__(self, state: Path, *, min_free: int = 0) -> None:
        super().__init__(state, min_free=min_free)
        self._damaged: set[tuple[str, ...]] = set()

    def _drop_claims(self) -> None:
        """Forget who held what: this process alone has the state now, so every other holder is gone."""
        with self._transaction() as writer:
            writer.execute("DELETE FROM claims")

    def record_run(self, run: StoredRun, tallies: Tallies) -> None:
        """Keep a run and what it adds to the tallies."""
        with self._transaction() as writer:
            notes.insert_run(writer, run)
            entries.add(writer, tallies)

    def runs(self, kind: str, name: str, limit: int, *, failing: bool | None = None) -> list[StoredRun]:
        """Runs of one thing, newest first."""
        wanted = None if failing is None else int(failing)
        place = ("runs", kind, name)
        return self._sound(notes.run_of, notes.RUNS, (kind, name, wanted, wanted, limit), place, most=RUNS_BYTES)

    def add_labels(self, labels: Sequence[Label]) -> int:
        """Keep labels; one of the same person on the same sample replaces the earlier one. Returns how many are new."""
        with self._transaction() as writer:
            return notes.put_labels(writer, labels)

    def labels(self, since: float) -> list[Label]:
        """Labels given since an instant, oldest first."""
        return self._sound(notes.label_of, notes.LABELS, (since,), ("labels",))

    def labels_of(self, key: str, limit: int) -> list[Label]:
        """The newest labels of one sample, oldest first."""
        return self._sound(notes.label_of, notes.LABELS_OF, (key, limit), ("labels",))[::-1]

    def labels_after(self, place: tuple[float, str, str] | None, limit: int) -> list[Label]:
        """Labels behind that (at, key, annotator), or the first ones, in this order."""
        first = (-math.inf, "", "") if place is None else place
        return self._sound(notes.label_of, notes.LABELS_AFTER, (*first, limit), ("labels",))

    def damaged(self) -> int:
        """How many rows with a text that cannot be read were met since the start."""
        return len(self._damaged)

    def _sound(
        self,
        make: Callable[[tuple[Any, ...]], Made],
        sql: str,
        parameters: Sequence[Any],
        place: tuple[str, ...],
        *,
        most: float = math.inf,
    ) -> list[Made]:
        """What rows hold, without those that are damaged: they are counted. No more than have `most` bytes, but one."""
        found: list[Made] = []
        with closing(self._pages.walk(sql, parameters)) as rows:
            for row in rows:
                try:
                    if most < math.inf:
                        most -= PackedText(row[-1]).size()
                    if most < 0 and found:
                        break
                    found.append(make(row))
                except StoreError:
                    self._note_damage(*place, *map(str, row[1:4]))
        return found

    def _note_damage(self, *place: str) -> None:
        if len(self._damaged) < MOST_DAMAGED:
            self._damaged.add(place)

    def remember(self, name: str, state: Mapping[str, Any]) -> None:
        """Keep what a loop must know after a restart."""
        with self._transaction() as writer:
            notes.remember(writer, name, state)

    def recall(self, name: str) -> Mapping[str, Any] | None:
        """What was kept under this name; None for nothing."""
        found = self._reader.rows(notes.REMEMBERED, (name,))
        return unpack(found[0][0]) if found else None

    def claim(self, name: str, holder: str, *, now: float, seconds: float) -> bool:
        """Take, or keep, a right that one process has at a time."""
        with self._transaction() as writer:
            return notes.claim(writer, name, holder, now, seconds)
