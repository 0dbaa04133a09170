"""The part of the PostgreSQL store that keeps runs, labels by people, feedback, saved state of loops, and claims."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import TypeVar

from psycopg.rows import TupleRow

from ragwatch.core.estimate import Addends
from ragwatch.core.labels.label import Label
from ragwatch.core.tally import Tallies
from ragwatch.core.trends import BucketKey
from ragwatch.errors import StoreError
from ragwatch.ports import Peak, SavedState, ScoreRow, StoredRun, TrendQuery, TrendSums
from ragwatch.stores import trend_rows
from ragwatch.stores.decoding import label_of, run_of
from ragwatch.stores.encryption import TextCipher
from ragwatch.stores.limits import MAX_RUNS_BYTES
from ragwatch.stores.postgres import feedback, trends
from ragwatch.stores.postgres.connections import Connections, Target
from ragwatch.stores.postgres.locks import STATES, lock
from ragwatch.stores.postgres.statements import SLOTS, add_tallies
from ragwatch.stores.rows import number, pack, score_row, unpack
from ragwatch.stores.texts import PackedText, damaged_text

KEY_STATE = "sampling key"
_RUNS = "SELECT kind, name, at, failing, body FROM runs WHERE kind = %s AND name = %s"
_LABELS = "SELECT body, key FROM labels WHERE at >= %s ORDER BY at, key"
_LABELS_OF = "SELECT body, key FROM labels WHERE key = %s ORDER BY at DESC LIMIT %s"
_LABELS_AFTER = (
    "SELECT body, key FROM labels WHERE (at, key, annotator) > (%s::float8, %s, %s)"
    " ORDER BY at, key, annotator LIMIT %s"
)
_ADD_LABEL = (
    "INSERT INTO labels (key, annotator, at, body) VALUES (%s, %s, %s, %s) ON CONFLICT (key, annotator)"
    " DO UPDATE SET at = excluded.at, body = excluded.body RETURNING xmax = 0"
)
_CLAIM = (
    "INSERT INTO claims (name, holder, until) VALUES (%(name)s, %(holder)s, %(until)s) ON CONFLICT (name) DO UPDATE"
    " SET holder = excluded.holder, until = excluded.until"
    " WHERE claims.holder = excluded.holder OR claims.until <= %(now)s RETURNING holder"
)
_RECALL = "SELECT body FROM states WHERE name = %s"
_REMEMBER = "INSERT INTO states (name, body) VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET body = excluded.body"

Value = TypeVar("Value")


class PostgresNotes(Connections):
    """Implements `ports.NoteStore`, `ports.FeedbackStore` and `ports.TrendStore`, and counts damaged rows."""

    def __init__(self, target: Target, *, cipher: TextCipher | None = None) -> None:
        super().__init__(target, cipher=cipher)
        self._slot = random.randrange(SLOTS)  # noqa: S311 - not a secret

    def record_run(self, run: StoredRun, tallies: Tallies, sums: Mapping[BucketKey, Addends] | None = None) -> None:
        """See `NoteStore.record_run`."""
        row = (run.kind, run.name, run.at, int(run.failing), self.seal(pack(run.body)))
        with self.transaction() as writer:
            writer.execute("INSERT INTO runs (kind, name, at, failing, body) VALUES (%s, %s, %s, %s, %s)", row)
            add_tallies(writer, tallies, self._slot)
            trends.add(writer, sums or {})

    def runs(self, kind: str, name: str, limit: int, *, failing: bool | None = None) -> list[StoredRun]:
        """See `NoteStore.runs`. Returns fewer runs if together they exceed `MAX_RUNS_BYTES`, but at least one."""
        flags = "" if failing is None else f" AND failing = {int(failing)}"
        sql = f"{_RUNS}{flags} ORDER BY at DESC, id DESC LIMIT %s"
        return self._decoded(run_of, sql, (kind, name, limit), ("runs", kind, name), max_bytes=MAX_RUNS_BYTES)

    def add_labels(self, labels: Sequence[Label]) -> int:
        """See `NoteStore.add_labels`."""
        new = 0
        with self.transaction() as writer:
            for label in labels:
                row = (label.key, label.annotator, label.at, self.seal(pack(label.to_record())))
                inserted = writer.execute(_ADD_LABEL, row).fetchone()
                new += inserted is not None and bool(inserted[0])
        return new

    def labels(self, since: float) -> list[Label]:
        """See `NoteStore.labels`."""
        return self._decoded(label_of, _LABELS, (since,), ("labels",))

    def labels_of(self, key: str, limit: int) -> list[Label]:
        """See `NoteStore.labels_of`."""
        return self._decoded(label_of, _LABELS_OF, (key, limit), ("labels",))[::-1]

    def labels_after(self, place: tuple[float, str, str] | None, limit: int) -> list[Label]:
        """See `NoteStore.labels_after`."""
        start = (-math.inf, "", "") if place is None else place
        return self._decoded(label_of, _LABELS_AFTER, (*start, limit), ("labels",))

    def damaged(self) -> int:
        """See `Store.damaged`."""
        return len(self.damage)

    def _decoded(
        self,
        decode: Callable[[TupleRow], Value],
        sql: str,
        parameters: Sequence[object],
        table: tuple[str, ...],
        *,
        max_bytes: float = math.inf,
    ) -> list[Value]:
        """Decode rows; damaged ones are counted and skipped. Stops at `max_bytes` of JSON, but not before the first."""
        values: list[Value] = []
        with closing(self.walk(sql, parameters)) as rows:
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
        return [(int(place), float(at)) for place, at in self.rows(feedback.AFTER, (seq, limit))]

    def feedback_of(self, key: str) -> tuple[float, float] | None:
        """See `FeedbackStore.feedback_of`."""
        stored = self.rows(feedback.OF_SAMPLE, (key,))
        return (float(stored[0][0]), float(stored[0][1])) if stored else None

    def rated(self, since: float, until: float) -> list[tuple[ScoreRow, float]]:
        """See `FeedbackStore.rated`."""
        return [(score_row(row[:-1]), number(row[-1])) for row in self.rows(feedback.RATED, (since, until))]

    def trends(self, query: TrendQuery) -> list[TrendSums]:
        """See `TrendStore.trends`."""
        return trend_rows.sums_of(query, self.rows(trends.SUMS_OF_PLACE, trend_rows.parameters_of(query)))

    def add_peaks(self, peaks: Sequence[Peak]) -> None:
        """See `TrendStore.add_peaks`."""
        with self.transaction() as writer:
            trends.add_peaks(writer, peaks)

    def peaks(self, query: TrendQuery) -> list[Peak]:
        """See `TrendStore.peaks`."""
        return trend_rows.peaks_of(query, self.rows(trends.PEAKS_OF_PLACE, trend_rows.parameters_of(query)))

    def remember(self, name: str, state: Mapping[str, object]) -> None:
        """See `NoteStore.remember`."""
        with self.transaction() as writer:
            writer.execute(_REMEMBER, (name, self.seal(pack(state))))

    def revise(self, name: str, change: Callable[[SavedState | None], Mapping[str, object] | None]) -> SavedState:
        """See `RevisesStates.revise`."""
        with self.transaction() as writer:
            lock(writer, STATES, name)
            row = writer.execute(_RECALL, (name,)).fetchone()
            state = None if row is None else unpack(self.unseal(row[0]))
            revised = change(state)
            if revised is None:
                return state
            writer.execute(_REMEMBER, (name, self.seal(pack(revised))))
        return revised

    def recall(self, name: str) -> SavedState | None:
        """See `NoteStore.recall`."""
        rows = self.rows(_RECALL, (name,))
        return unpack(rows[0][0]) if rows else None

    def shared_secret(self, ours: bytes) -> bytes:
        """See `SharesSecret.shared_secret`."""
        with self.transaction() as writer:
            writer.execute(
                "INSERT INTO states (name, body) VALUES (%s, %s) ON CONFLICT (name) DO NOTHING",
                (KEY_STATE, self.seal(pack({"secret": ours.hex()}))),
            )
        stored = self.recall(KEY_STATE) or {}
        try:
            return bytes.fromhex(stored["secret"])
        except (LookupError, TypeError, ValueError) as error:
            raise damaged_text(error) from error

    def claim(self, name: str, holder: str, *, now: float, seconds: float) -> bool:
        """See `NoteStore.claim`. A release takes effect at once even if the clock is set back."""
        until = now + seconds if seconds > 0.0 else -math.inf
        with self.transaction() as writer:
            values = {"name": name, "holder": holder, "until": until, "now": now}
            return writer.execute(_CLAIM, values).fetchone() is not None
