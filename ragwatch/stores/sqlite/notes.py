"""The part of the SQLite store that keeps runs, labels by people, feedback, saved state of loops, and claims."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from ragwatch.core.estimate import Addends
from ragwatch.core.labels.label import Label
from ragwatch.core.tally import Tallies
from ragwatch.core.trends import BucketKey
from ragwatch.errors import StoreError
from ragwatch.ports import Peak, SavedState, ScoreRow, StoredRun, TrendQuery, TrendSums
from ragwatch.stores import trend_rows
from ragwatch.stores.days import Row
from ragwatch.stores.decoding import label_of, run_of
from ragwatch.stores.encryption import TextCipher
from ragwatch.stores.rows import pack, unpack
from ragwatch.stores.sqlite import feedback, trends
from ragwatch.stores.sqlite.connections import Connections
from ragwatch.stores.sqlite.sqlite_writer import SqliteWriter
from ragwatch.stores.sqlite.statements import add_tallies
from ragwatch.stores.texts import PackedText

MAX_RUNS_BYTES = 8 << 20  # of runs read at a time: a suite may store whole answers
MAX_DAMAGED_ROWS = 10_000  # rows that are remembered; beyond that an exact count is of no use

RUNS = (
    "SELECT kind, name, at, failing, body FROM runs WHERE kind = ? AND name = ? AND (? IS NULL OR failing = ?)"
    " ORDER BY at DESC, id DESC LIMIT ?"
)
LABELS = "SELECT body, key FROM labels WHERE at >= ? ORDER BY at, key"
LABELS_OF = "SELECT body, key FROM labels WHERE key = ? ORDER BY at DESC LIMIT ?"
LABELS_AFTER = "SELECT body, key FROM labels WHERE (at, key, annotator) > (?, ?, ?) ORDER BY at, key, annotator LIMIT ?"

Value = TypeVar("Value")


class SqliteNotes(Connections):
    """Implements `ports.NoteStore`, `ports.FeedbackStore` and `ports.TrendStore`, and counts damaged rows."""

    def __init__(self, state: Path, *, min_free: int = 0, cipher: TextCipher | None = None) -> None:
        super().__init__(state, min_free=min_free, cipher=cipher)

    def _drop_claims(self) -> None:
        """Release all claims: this process has the state directory now, so every other holder has ended."""
        with self.transaction() as writer:
            writer.execute("DELETE FROM claims")

    def record_run(self, run: StoredRun, tallies: Tallies, sums: Mapping[BucketKey, Addends] | None = None) -> None:
        """See `NoteStore.record_run`."""
        row = (run.kind, run.name, run.at, int(run.failing), pack(run.body))
        with self.transaction() as writer:
            writer.execute("INSERT INTO runs (kind, name, at, failing, body) VALUES (?, ?, ?, ?, seal(?))", row)
            add_tallies(writer, tallies)
            trends.add(writer, sums or {})

    def runs(self, kind: str, name: str, limit: int, *, failing: bool | None = None) -> list[StoredRun]:
        """See `NoteStore.runs`. Returns fewer runs if together they exceed `MAX_RUNS_BYTES`, but at least one."""
        flag = None if failing is None else int(failing)
        parameters = (kind, name, flag, flag, limit)
        return self._decoded(run_of, RUNS, parameters, ("runs", kind, name), max_bytes=MAX_RUNS_BYTES)

    def add_labels(self, labels: Sequence[Label]) -> int:
        """See `NoteStore.add_labels`."""
        with self.transaction() as writer:
            before = _count_labels(writer)
            writer.executemany(
                "INSERT OR REPLACE INTO labels (key, annotator, at, body) VALUES (?, ?, ?, seal(?))",
                [(label.key, label.annotator, label.at, pack(label.to_record())) for label in labels],
            )
            return _count_labels(writer) - before

    def labels(self, since: float) -> list[Label]:
        """See `NoteStore.labels`."""
        return self._decoded(label_of, LABELS, (since,), ("labels",))

    def labels_of(self, key: str, limit: int) -> list[Label]:
        """See `NoteStore.labels_of`."""
        return self._decoded(label_of, LABELS_OF, (key, limit), ("labels",))[::-1]

    def labels_after(self, place: tuple[float, str, str] | None, limit: int) -> list[Label]:
        """See `NoteStore.labels_after`."""
        start = (-math.inf, "", "") if place is None else place
        return self._decoded(label_of, LABELS_AFTER, (*start, limit), ("labels",))

    def damaged(self) -> int:
        """See `Store.damaged`."""
        return len(self.damage)

    def _decoded(
        self,
        decode: Callable[[Row], Value],
        sql: str,
        parameters: Sequence[object],
        table: tuple[str, ...],
        *,
        max_bytes: float = math.inf,
    ) -> list[Value]:
        """Decode rows; damaged ones are counted and skipped. Stops at `max_bytes` of JSON, but not before the first."""
        values: list[Value] = []
        with closing(self.pages.walk(sql, parameters)) as rows:
            for row in rows:
                try:
                    if max_bytes < math.inf:
                        max_bytes -= PackedText(row[-1]).size()
                    if max_bytes < 0 and values:
                        break
                    values.append(decode(row))
                except StoreError:
                    self.damage.note(*table, *map(str, row[1:4]))
        return values

    def feedback_after(self, seq: int, limit: int) -> list[tuple[int, float]]:
        """See `FeedbackStore.feedback_after`."""
        return [(int(number), float(at)) for number, at in self._reader.rows(feedback.AFTER, (seq, limit))]

    def feedback_of(self, key: str) -> tuple[float, float] | None:
        """See `FeedbackStore.feedback_of`."""
        stored = self.pages.rows(feedback.OF_SAMPLE, (key,))
        return (float(stored[0][0]), float(stored[0][1])) if stored else None

    def rated(self, since: float, until: float) -> list[tuple[ScoreRow, float]]:
        """See `FeedbackStore.rated`."""
        return [feedback.rated_row(row) for row in self._reader.rows(feedback.RATED, (since, until))]

    def trends(self, query: TrendQuery) -> list[TrendSums]:
        """See `TrendStore.trends`."""
        return trend_rows.sums_of(query, self.pages.rows(trends.SUMS_OF_PLACE, trend_rows.parameters_of(query)))

    def add_peaks(self, peaks: Sequence[Peak]) -> None:
        """See `TrendStore.add_peaks`."""
        with self.transaction() as writer:
            trends.add_peaks(writer, peaks)

    def peaks(self, query: TrendQuery) -> list[Peak]:
        """See `TrendStore.peaks`."""
        return trend_rows.peaks_of(query, self.pages.rows(trends.PEAKS_OF_PLACE, trend_rows.parameters_of(query)))

    def remember(self, name: str, state: Mapping[str, object]) -> None:
        """See `NoteStore.remember`."""
        with self.transaction() as writer:
            writer.execute("INSERT OR REPLACE INTO states (name, body) VALUES (?, seal(?))", (name, pack(state)))

    def recall(self, name: str) -> SavedState | None:
        """See `NoteStore.recall`."""
        rows = self._reader.rows("SELECT body FROM states WHERE name = ?", (name,))
        return unpack(rows[0][0]) if rows else None

    def claim(self, name: str, holder: str, *, now: float, seconds: float) -> bool:
        """See `NoteStore.claim`. A release takes effect at once even if the clock is set back."""
        until = now + seconds if seconds > 0.0 else -math.inf
        with self.transaction() as writer:
            writer.execute(
                "INSERT INTO claims (name, holder, until) VALUES (?1, ?2, ?3) ON CONFLICT (name) DO UPDATE"
                " SET holder = excluded.holder, until = excluded.until WHERE claims.holder = ?2 OR claims.until <= ?4",
                (name, holder, until, now),
            )
            return bool(writer.execute("SELECT holder = ? FROM claims WHERE name = ?", (holder, name)).fetchone()[0])


def _count_labels(writer: SqliteWriter) -> int:
    return int(writer.execute("SELECT COUNT(*) FROM labels").fetchone()[0])
