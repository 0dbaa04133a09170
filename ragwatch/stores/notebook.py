"""Notebook: the part of the SQLite store that keeps runs, people's labels, and what loops remember."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ragwatch.core.label import Label
from ragwatch.core.tally import Tallies
from ragwatch.ports import Run
from ragwatch.stores import entries, notes
from ragwatch.stores.connections import Connections
from ragwatch.stores.rows import unpack


class Notebook(Connections):
    """See `ports.Notes`. Every writing method is one transaction."""

    def _drop_claims(self) -> None:
        """Forget who held what: this process alone has the state now, so every other holder is gone."""
        with self._transaction() as writer:
            writer.execute("DELETE FROM claims")

    def record_run(self, run: Run, tallies: Tallies) -> None:
        """Keep a run and what it adds to the tallies."""
        with self._transaction() as writer:
            notes.insert_run(writer, run)
            entries.add(writer, tallies)

    def runs(self, kind: str, name: str, limit: int, *, failing: bool | None = None) -> list[Run]:
        """Runs of one thing, newest first."""
        wanted = None if failing is None else int(failing)
        return [notes.run_of(row) for row in self._pages.rows(notes.RUNS, (kind, name, wanted, wanted, limit))]

    def add_labels(self, labels: Sequence[Label]) -> int:
        """Keep labels; one of the same person on the same sample replaces the earlier one. Returns how many are new."""
        with self._transaction() as writer:
            return notes.put_labels(writer, labels)

    def labels(self, since: float) -> list[Label]:
        """Labels given since an instant, oldest first."""
        return [notes.label_of(row) for row in self._pages.rows(notes.LABELS, (since,))]

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
