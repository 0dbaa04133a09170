"""Retention. Verdicts with a fault are kept longer than others, because people come back for them.

The verdicts that remain from a time of which some were deleted are a biased sample: see `stores.engine.UNBIASED`.
"""

from collections.abc import Callable
from typing import TypeVar

from ragwatch.ports import Retention
from ragwatch.stores.accounts import compact_costs
from ragwatch.stores.counting import add_tallies
from ragwatch.stores.engine import DAY, SEQUENCES, Component, Row, Writer
from ragwatch.stores.feedback import expire
from ragwatch.stores.search_index import SearchIndex
from ragwatch.stores.settling import delete_old_parts
from ragwatch.stores.trends import delete_old

MAX_ROWS_PER_STEP = 500
MAX_RUNS_PER_STEP = 10
MAX_RUNS_SHARE = 0.25  # of the allowed bytes, so that canary runs do not evict verdicts
ROW_BYTES = 80  # of a row's header and its entries in indexes
_ORPHAN = (  # a label does not keep a sample: without a verdict no page shows the text
    "NOT EXISTS (SELECT 1 FROM verdicts v WHERE v.key = samples.key)"
    " AND NOT EXISTS (SELECT 1 FROM work w WHERE w.key = samples.key)"
)
_EXPIRED = "SELECT seq FROM verdicts WHERE failing = :failing{part} AND at < :before ORDER BY at LIMIT :limit"
_OLDEST = "SELECT seq FROM verdicts ORDER BY failing, at LIMIT :limit"
_DELETE = (
    "DELETE FROM verdicts WHERE seq = INTS(:seqs)"
    " RETURNING key, at, LENGTH(line) + COALESCE(LENGTH(CAST(scores AS text)), 0)"
)
_OLDEST_RUNS = (
    "DELETE FROM runs WHERE id IN (SELECT id FROM runs"
    " WHERE id NOT IN (SELECT MAX(id) FROM runs GROUP BY kind, name) ORDER BY failing, at LIMIT :limit)"
)
_RUNS_SIZE = "SELECT CAST(COALESCE(SUM(LENGTH(body)), 0) AS bigint) FROM runs"

Value = TypeVar("Value")


class Retaining(Component):
    """Deletes what exceeds the limits."""

    index: SearchIndex

    def prune(self, retention: Retention, *, now: float) -> int:
        """See `Store.prune`. Does nothing while another worker prunes. Every step is a transaction of its own."""
        deleted = self.pruning_begins(retention, now)
        self.step(lambda writer: compact_costs(writer, now), None)
        while self.step(lambda writer: delete_old_parts(writer, now), 0):
            pass
        self.step(lambda writer: add_tallies(writer, expire(writer, now)), None)
        self.step(lambda writer: delete_old(writer, retention, now), None)
        while count := self.step(lambda writer: self._delete_expired(writer, retention, now), 0):
            deleted += count
        while self.step(lambda writer: _delete_oldest_runs(writer, retention.bytes * MAX_RUNS_SHARE), 0):
            pass
        excess = self.excess(retention.bytes)
        while excess > 0:
            count, size = self.step(lambda writer: self._delete_oldest(writer, now), (0, 0))
            if not count:
                break
            deleted, excess = deleted + count, self.excess(retention.bytes, excess - size)
        self.pruning_ends(now)
        return deleted

    def pruning_begins(self, retention: Retention, now: float) -> int:  # noqa: ARG002 - of one engine
        """Do what an engine does before. Returns the number of verdicts that were deleted."""
        return 0

    def pruning_ends(self, now: float) -> None:
        """Do what an engine does afterwards."""

    def excess(self, limit: int, estimate: int | None = None) -> int:
        """Return how many bytes of rows exceed a limit: the estimate, where files do not shrink."""
        raise NotImplementedError

    def step(self, step: Callable[[Writer], Value], nothing: Value) -> Value:
        """Run one step in its own transaction, unless another worker deletes."""
        with self.engine.transaction() as writer:
            return step(writer) if writer.may_prune() else nothing

    def _delete_expired(self, writer: Writer, retention: Retention, now: float) -> int:
        """Delete some of the expired verdicts, expired runs and events, and samples without further use.

        Verdicts without a fault in the partition of a day are left: the whole day is dropped when it is over.
        """
        deleted: list[Row] = []
        for failing, days, part in ((0, retention.days, " AND PART"), (1, retention.failing_days, "")):
            values: dict[str, object] = {"failing": failing, "before": now - days * DAY}
            deleted += _delete(writer, _EXPIRED.format(part=part), values)
            writer.execute("DELETE FROM runs WHERE failing = :failing AND at < :before", values)
        oldest = now - max(retention.days, retention.failing_days) * DAY
        writer.execute("DELETE FROM events WHERE at < :oldest", {"oldest": oldest})
        self._record_deletion(writer, deleted, now)
        return len(deleted)

    def _delete_oldest(self, writer: Writer, now: float) -> tuple[int, int]:
        """Delete some of the oldest verdicts, those without a fault first. Returns their number and bytes."""
        deleted = _delete(writer, _OLDEST, {})
        size = self._record_deletion(writer, deleted, now)
        return len(deleted), size + sum(line + ROW_BYTES for *_, line in deleted)

    def _record_deletion(self, writer: Writer, deleted: list[Row], now: float) -> int:
        """Record the latest time of the deleted verdicts, and delete their samples if these have no further use.

        Returns the bytes of the deleted samples.
        """
        if not deleted:
            return 0
        writer.lock(SEQUENCES)  # below this number, no verdict is committed any more
        set_pruned(writer, max(at for _, at, _ in deleted), now)
        keys = {"keys": sorted({key for key, _, _ in deleted})}
        sql = f"SELECT key, LENGTH(body) FROM samples WHERE key = LIST(:keys) AND {_ORPHAN} ORDER BY key"  # noqa: S608 - constants
        orphans = writer.rows(sql, keys)
        gone = {"keys": [key for key, _ in orphans]}
        self.index.remove(writer, gone["keys"])
        writer.execute("DELETE FROM samples WHERE key = LIST(:keys)", gone)
        writer.execute("DELETE FROM SAMPLE_KEYS WHERE key = LIST(:keys)", gone)
        for table in ("feedback", "traits"):
            writer.execute(
                f"DELETE FROM {table} WHERE key = LIST(:keys)"  # noqa: S608 - constants
                f" AND NOT EXISTS (SELECT 1 FROM samples s WHERE s.key = {table}.key)",
                keys,
            )
        return sum(size + ROW_BYTES for _, size in orphans)


def _delete(writer: Writer, selected: str, values: dict[str, object]) -> list[Row]:
    seqs = [seq for (seq,) in writer.rows(selected, {**values, "limit": MAX_ROWS_PER_STEP})]
    return writer.rows(_DELETE, {"seqs": seqs}) if seqs else []


def set_pruned(writer: Writer, newest: float, now: float) -> None:
    """Record up to when, and to which sequence number, verdicts were deleted."""
    ((before,),) = writer.rows("SELECT PRUNED_UNTIL")
    until = max(newest, newest if before is None else before)
    ((last,),) = writer.rows("SELECT LAST_SEQ")
    writer.set_pruned(min(now, until), int(last or 0))  # timestamps of a fast clock may lie in the future


def _delete_oldest_runs(writer: Writer, limit: float) -> int:
    """Delete some of the oldest runs beyond a limit of bytes, successful ones first; of each name the newest stays."""
    ((size,),) = writer.rows(_RUNS_SIZE)
    return writer.execute(_OLDEST_RUNS, {"limit": MAX_RUNS_PER_STEP}) if size > limit else 0
