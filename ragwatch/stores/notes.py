"""Runs, labels by people, saved state of loops, and claims."""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import TypeVar

from ragwatch.errors import StoreError
from ragwatch.model.estimate import Addends
from ragwatch.ports import SavedState, StoredRun
from ragwatch.statistics.labels.label import Label, from_record
from ragwatch.statistics.tally import Tallies
from ragwatch.statistics.trends import BucketKey
from ragwatch.stores.counting import add_tallies
from ragwatch.stores.engine import RECALL, REMEMBER, Component, Row
from ragwatch.stores.rows import known_scores, raises_store_error
from ragwatch.stores.texts import PackedText, damaged_text, pack, unpack
from ragwatch.stores.trends import add_sums

_RUNS = "SELECT kind, name, at, failing, body FROM runs WHERE kind = :kind AND name = :name"
_LABELS = "SELECT body, key FROM labels WHERE at >= :since ORDER BY at, key"
_LABELS_OF = "SELECT body, key FROM labels WHERE key = :key ORDER BY at DESC LIMIT :limit"
_LABELS_AFTER = (
    "SELECT body, key FROM labels WHERE (at, key, annotator) > (CAST(:at AS double precision), :key, :annotator)"
    " ORDER BY at, key, annotator LIMIT :limit"
)
_REPLACE_LABEL = "UPDATE labels SET at = :at, body = :body WHERE key = :key AND annotator = :annotator"
_CLAIM = (
    "INSERT INTO claims (name, holder, until) VALUES (:name, :holder, :until) ON CONFLICT (name) DO UPDATE"
    " SET holder = excluded.holder, until = excluded.until"
    " WHERE claims.holder = excluded.holder OR claims.until <= :now RETURNING holder"
)
MAX_RUNS_BYTES = 8 << 20  # of runs read at a time: a suite may store whole answers

Value = TypeVar("Value")


class Notes(Component):
    """Implements `ports.NoteStore`."""

    def record_run(self, run: StoredRun, tallies: Tallies, sums: Mapping[BucketKey, Addends] | None = None) -> None:
        row = {"kind": run.kind, "name": run.name, "at": run.at, "failing": int(run.failing)}
        with self.engine.transaction() as writer:
            writer.insert("runs", [{**row, "body": writer.seal(pack(run.body))}])
            add_tallies(writer, tallies)
            add_sums(writer, sums or {})

    def runs(self, kind: str, name: str, limit: int, *, failing: bool | None = None) -> list[StoredRun]:
        """See `NoteStore.runs`. Returns fewer runs if together they exceed `MAX_RUNS_BYTES`, but at least one."""
        flag = "" if failing is None else f" AND failing = {int(failing)}"
        sql, values = f"{_RUNS}{flag} ORDER BY at DESC, id DESC LIMIT :limit", {"kind": kind, "name": name}
        return self._decoded(_run_of, sql, {**values, "limit": limit}, ("runs", kind, name), max_bytes=MAX_RUNS_BYTES)

    def add_labels(self, labels: Sequence[Label]) -> int:
        new = 0
        with self.engine.transaction() as writer:
            for label in labels:
                row = {"key": label.key, "annotator": label.annotator, "at": label.at}
                row["body"] = writer.seal(pack(label.to_record()))
                if writer.insert("labels", [row], "ON CONFLICT DO NOTHING"):
                    new += 1
                else:
                    writer.execute(_REPLACE_LABEL, row)
        return new

    def labels(self, since: float) -> list[Label]:
        return self._decoded(_label_of, _LABELS, {"since": since}, ("labels",))

    def labels_of(self, key: str, limit: int) -> list[Label]:
        return self._decoded(_label_of, _LABELS_OF, {"key": key, "limit": limit}, ("labels",))[::-1]

    def labels_after(self, place: tuple[float, str, str] | None, limit: int) -> list[Label]:
        at, key, annotator = (-math.inf, "", "") if place is None else place
        values = {"at": at, "key": key, "annotator": annotator, "limit": limit}
        return self._decoded(_label_of, _LABELS_AFTER, values, ("labels",))

    def _decoded(
        self,
        decode: Callable[[Row], Value],
        sql: str,
        parameters: Mapping[str, object],
        table: tuple[str, ...],
        *,
        max_bytes: float = math.inf,
    ) -> list[Value]:
        """Decode rows; damaged ones are counted and skipped. Stops at `max_bytes` of JSON, but not before the first."""
        values: list[Value] = []
        with closing(self.engine.pages.walk(sql, parameters)) as rows:
            for row in rows:
                try:
                    if max_bytes < math.inf:
                        max_bytes -= PackedText(row[-1]).size()
                    if max_bytes < 0 and values:
                        break
                    values.append(decode(row))
                except StoreError:
                    self.engine.damage.note(*table, *map(str, row[1:4]))
        return values

    def remember(self, name: str, state: Mapping[str, object]) -> None:
        with self.engine.transaction() as writer:
            writer.execute(REMEMBER, {"name": name, "body": writer.seal(pack(state))})

    def recall(self, name: str) -> SavedState | None:
        rows = self.engine.rows(RECALL, {"name": name})
        return unpack(rows[0][0]) if rows else None

    def claim(self, name: str, holder: str, *, now: float, seconds: float) -> bool:
        """See `NoteStore.claim`. A release takes effect at once even if the clock is set back."""
        until = now + seconds if seconds > 0.0 else -math.inf
        with self.engine.transaction() as writer:
            return bool(writer.rows(_CLAIM, {"name": name, "holder": holder, "until": until, "now": now}))


@raises_store_error
def _run_of(row: Row) -> StoredRun:
    kind, name, at, failing, body = row
    return StoredRun(kind, name, at, bool(failing), unpack(body))


@raises_store_error
def _label_of(row: Row) -> Label:
    """Decode a row that begins with the body of a label."""
    record = unpack(row[0])
    try:
        known = known_scores({**record["scores"], "criteria": record.get("criteria")})
        return from_record({**record, "scores": dict(known)})
    except (LookupError, ValueError, TypeError, AttributeError) as error:
        raise damaged_text(error) from error
