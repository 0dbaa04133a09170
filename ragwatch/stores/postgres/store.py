"""PostgreSQL store: one database for any number of workers. Each method is one transaction, safe across crashes."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from typing import TypeVar

from ragwatch.core.budget import Cost, SpendingCap
from ragwatch.core.sample import Draw
from ragwatch.core.tally import Tallies, count_draw, count_duplicate
from ragwatch.core.trends import score_sums
from ragwatch.core.verdict import Verdict
from ragwatch.errors import StoreError
from ragwatch.ports import (
    Admission,
    Erased,
    Erasure,
    FollowUp,
    OpenBatch,
    Part,
    RecordedEvent,
    Retention,
    ScoreRow,
)
from ragwatch.stores import rows
from ragwatch.stores.answer_terms import rules_of
from ragwatch.stores.encryption import TextCipher
from ragwatch.stores.erasing import OtherRow, Selection, rows_of_table, samples_of, with_lines
from ragwatch.stores.kept_texts import Texts
from ragwatch.stores.limits import MAX_RUNS_SHARE
from ragwatch.stores.lock import StateLock
from ragwatch.stores.postgres import (
    feedback,
    forgetting,
    indexing,
    partitions,
    pruning,
    replies,
    statements,
    trends,
)
from ragwatch.stores.postgres.connections import Target, Writer, unless_in_use
from ragwatch.stores.postgres.finding import PostgresSearch
from ragwatch.stores.postgres.locks import RETENTION, try_lock
from ragwatch.stores.postgres.opening import prepare_database
from ragwatch.stores.postgres.partitions import Parts

_WINDOW = (
    f"SELECT {rows.SCORE_COLUMNS.replace('scores', 'scores::text')} FROM verdicts"  # noqa: S608 - constants only
    f" WHERE seq > %s AND at >= %s AND {pruning.live()} ORDER BY seq LIMIT %s"
)
_NEWEST = "SELECT MAX(at) FROM verdicts"

Result = TypeVar("Result")


class PostgresStore(PostgresSearch):
    """Implements `ports.Store` in a schema of a PostgreSQL database.

    Args:
        target: Where to connect.
        state: Lock of the state directory, which is released at the end; None for none.
        name: Name under which this worker counts, also after a restart; None for none.
        texts: Texts of which answers are kept after judging.
        cipher: Encrypts texts; None stores them as they are.
        text_search: Whether words of texts are indexed.

    Raises:
        ConfigError: Texts are encrypted with a key that is not given.
        StoreError: The server cannot be reached, or the database cannot be used.
    """

    def __init__(
        self,
        target: Target,
        *,
        state: StateLock | None = None,
        name: str | None = None,
        texts: Texts = Texts.ALL,
        cipher: TextCipher | None = None,
        text_search: bool = True,
    ) -> None:
        super().__init__(target, cipher=cipher)
        self._rules = rules_of(texts, cipher, text_search=text_search)
        self._state = state
        prepare_database(target, cipher)
        self._parts = Parts(self._days)
        self._make_partitions(time.time())
        if name is not None:
            self.register(name)

    def cursors(self, source: str) -> dict[str, str]:
        """See `Store.cursors`."""
        return dict(self.rows("SELECT stream, cursor FROM cursors WHERE source = %s", (source,)))

    def parts(self, source: str) -> Iterator[Part]:
        """See `Store.parts`."""
        with closing(self.walk(statements.WAITING_PARTS, (source,))) as stored:
            for row in stored:
                try:
                    yield rows.part_of(row)
                except StoreError:
                    self.damage.note("parts", row[1])

    def received(self, source: str, ids: Collection[str]) -> set[str]:
        """See `Store.received`."""
        by_digest = {rows.digest(identity): identity for identity in ids}
        if not by_digest:
            return set()
        known = self.rows(statements.RECEIVED, (source, list(by_digest)))
        return {by_digest[digest] for (digest,) in known}

    def admit(self, admission: Admission) -> int:
        """See `Store.admit`."""
        tallies: Tallies = Counter(admission.tallies)
        self._parts.refresh()
        with self.transaction() as writer:
            draws = [draw for draw, _ in admission.draws]
            stored = statements.insert_samples(writer, draws, seal=self.seal, part=self._parts.of)
            new: dict[str, Draw] = {}
            work = []
            for draw, assignments in admission.draws:
                if draw.key not in stored or draw.key in new:
                    count_duplicate(tallies, admission.source)
                    continue
                new[draw.key] = draw
                count_draw(tallies, draw.route, (assignment.judge for assignment in assignments))
                tallies.update(admission.of_draws.get(draw.key, {}))
                since = draw.at if admission.at is None else admission.at
                work += [(draw.key, assignment, since) for assignment in assignments]
            with writer.connection.pipeline():  # the server queues them while this computes traits
                statements.insert_work(writer, work)
                statements.insert_traits(writer, new, self._texts, seal=self.seal)
            feedback.write(writer, admission, list(new), tallies)
            statements.store_cursor(writer, admission)
            statements.write_parts(writer, admission, self.seal)
            trends.add_versions(writer, admission)
            statements.add_tallies(writer, tallies, self._slot)
        return len(new)

    def settle(
        self, verdicts: Sequence[Verdict], follow_ups: Sequence[FollowUp] = (), tallies: Tallies | None = None
    ) -> int:
        """See `Store.settle`."""
        counts: Tallies = Counter()
        self._parts.refresh()
        with self.transaction() as writer:
            settled = statements.settle(writer, verdicts, counts, seal=self.seal, part=self._parts.of)
            new = {(verdict.reading.judge, verdict.draw.key) for verdict in settled}
            if new or not verdicts:
                counts.update(tallies or {})
            caused = [follow_up for follow_up in follow_ups if (follow_up.after, follow_up.key) in new]
            statements.insert_follow_ups(writer, caused, counts)
            replies.add(writer, settled, self._rules, self.seal)
            self._drop_texts(writer, {key for _, key in new})
            indexing.add(writer, settled, self._rules)
            statements.add_tallies(writer, counts, self._slot)
            trends.add(writer, score_sums(settled))
        return len(new)

    def overdue(self, before: float) -> dict[tuple[str, str, int], float]:
        """See `Store.overdue`."""
        weights = self.rows(statements.OVERDUE, (before,))
        return {(route, judge, minute): weight for route, judge, minute, weight in weights}

    def reserve(self, judge: str, worst: Cost, caps: Sequence[SpendingCap], *, now: float) -> int | None:
        """See `Accounts.reserve`."""
        with self.transaction() as writer:
            return statements.reserve_cost(writer, judge, worst, caps, now)

    def pay(self, reservation: int, actual: Cost) -> None:
        """See `Accounts.pay`."""
        with self.transaction() as writer:
            statements.pay_cost(writer, reservation, actual)

    def spent(self, judge: str, since: float) -> Cost:
        """See `Accounts.spent`."""
        return Cost(*self.rows(statements.SPENT, (judge, since))[0])

    def prepare_batch(self, judge: str, draws: Mapping[str, int], seed: str, *, now: float) -> int:
        """See `Batches.prepare_batch`."""
        with self.transaction() as writer:
            return statements.prepare_batch(writer, judge, draws, seed, now)

    def send_batch(self, batch: int, provider_id: str) -> None:
        """See `Batches.send_batch`."""
        with self.transaction() as writer:
            statements.send_batch(writer, batch, provider_id)

    def batches(self, judge: str) -> list[OpenBatch]:
        """See `Batches.batches`."""
        return [OpenBatch(*row) for row in self.rows(statements.OPEN_BATCHES, (judge,))]

    def batched(self, batch: int) -> list[tuple[Draw, int]]:
        """See `Batches.batched`."""
        return [(rows.draw_of(row[1:]), row[0]) for row in self.rows(statements.BATCHED_DRAWS, (batch,))]

    def close_batch(self, batch: int) -> int:
        """See `Batches.close_batch`."""
        with self.transaction() as writer:
            return statements.close_batch(writer, batch)

    def record(self, event: RecordedEvent) -> None:
        """See `Store.record`."""
        with self.transaction() as writer:
            row = (event.at, event.kind, event.detail)
            writer.execute("INSERT INTO events (at, kind, detail) VALUES (%s, %s, %s)", row)

    def events(self, since: float) -> list[RecordedEvent]:
        """See `Store.events`."""
        stored = self.rows("SELECT at, kind, detail FROM events WHERE at >= %s ORDER BY at, id", (since,))
        return [RecordedEvent(*row) for row in stored]

    def last_events(self, since: float) -> dict[str, float]:
        """See `Store.last_events`."""
        return dict(self.rows("SELECT kind, MAX(at) FROM events WHERE at >= %s GROUP BY kind", (since,)))

    def window(self, after: int, since: float, limit: int) -> list[ScoreRow]:
        """See `Store.window`."""
        newest = rows.single_number(self.rows(_NEWEST))
        if newest is None or newest < since:  # quick exit for a silent service or an old log
            return []
        return [rows.score_row(row) for row in self.rows(_WINDOW, (after, since, limit))]

    def pruned_until(self) -> float:
        """See `Store.pruned_until`."""
        stored = self.rows(pruning.PRUNED_UNTIL)
        return float(stored[0][0]) if stored else -math.inf

    def prune(self, retention: Retention, *, now: float) -> int:
        """See `Store.prune`. Does nothing while another worker prunes."""
        limits, deleted = retention, 0
        self._delete(lambda writer: statements.compact_costs(writer, now), None)
        self._delete(self._fold_workers, None)
        self._make_partitions(time.time())
        deleted += self._drop_days(limits, now)
        while self._delete(lambda writer: statements.delete_old_parts(writer, now), 0):
            pass
        self._delete(lambda writer: self._expire_feedback(writer, now), None)
        self._delete(lambda writer: trends.delete_old(writer, retention, now), None)
        while count := self._delete(lambda writer: pruning.delete_expired(writer, limits, now), 0):
            deleted += count
        while self._bytes(pruning.RUNS_SIZE) > limits.bytes * MAX_RUNS_SHARE and self._delete(
            pruning.delete_oldest_runs, 0
        ):
            pass
        deleted += self._delete_excess(limits, now)
        while self._texts is not Texts.ALL and self._delete(self._drop_earlier, 0):
            pass
        self._catch_up()
        return deleted

    def _days(self) -> list[int]:
        return [day for (day,) in self.rows(partitions.DAYS)]

    def _make_partitions(self, now: float) -> None:
        """Make partitions ahead of time. If a table is in use for long, the next time will do."""
        if partitions.day_of(now) + 1 not in self._days():
            with unless_in_use(), self.transaction() as writer:
                partitions.make(writer, now)
            self._parts.changed()
        self._parts.refresh()

    def _drop_days(self, limits: Retention, now: float) -> int:
        """Drop the days that are over. Returns the number of deleted verdicts."""
        deleted = 0
        for day in partitions.over(self._days(), limits, now):
            with unless_in_use():
                self._delete(partial(partitions.keep, day=day, retention=limits, now=now), None)
                deleted += self._delete(partial(partitions.drop, day=day, retention=limits, now=now), 0)
        self._parts.changed()
        self._parts.refresh()
        return deleted

    def _expire_feedback(self, writer: Writer, now: float) -> None:
        tallies: Tallies = Counter()
        feedback.expire(writer, now, tallies)
        statements.add_tallies(writer, tallies, self._slot)

    def _delete_excess(self, limits: Retention, now: float) -> int:
        """Delete the oldest verdicts until the rest fits: files do not shrink, so what is deleted is added up."""
        relations = self._bytes(pruning.RELATION_SIZE)
        if relations <= limits.bytes:
            return 0
        excess = sum(map(self._bytes, pruning.sizes(relations))) - limits.bytes
        deleted = 0
        while excess > 0:
            count, size = self._delete(lambda writer: pruning.delete_oldest(writer, now), (0, 0))
            if not count:
                break
            deleted, excess = deleted + count, excess - size
        return deleted

    def _bytes(self, sql: str) -> int:
        return int(self.rows(sql)[0][0])

    def _delete(self, step: Callable[[Writer], Result], nothing: Result) -> Result:
        """Run one step in its own transaction, unless another worker deletes."""
        with self.transaction() as writer:
            return step(writer) if try_lock(writer, RETENTION) else nothing

    def forget(self, erasure: Erasure, *, dry_run: bool = False, seconds: float = 0.0) -> Erased:  # noqa: ARG002 - statements wait for readers by themselves
        """See `Store.forget`. Other workers may go on; the tables are rewritten afterwards."""
        selection = self._selected(erasure)
        others = self._rows_with(selection.texts)
        if dry_run or not selection.keys:
            counts = self.rows(forgetting.COUNTS, (list(selection.keys),))[0]
            return replace(forgetting.erased(selection, counts), others=len(others))
        tallies: Tallies = Counter()
        with self.transaction() as writer:
            erased = forgetting.erase(
                writer,
                selection,
                erasure,
                tallies,
                self._rules,
                seal=self.seal,
                unseal=self.unseal,
                part=self._parts.of,
            )
            forgetting.clear(writer, others, self.seal)
            statements.add_tallies(writer, tallies, self._slot)
        return replace(erased, others=len(others), complete=self.rewrite(forgetting.REWRITTEN))

    def _selected(self, erasure: Erasure) -> Selection:
        with closing(self.walk(forgetting.SAMPLES)) as samples:
            selection = samples_of(samples, erasure)
        if erasure.ids:
            with closing(self.walk(forgetting.LINES)) as lines:
                selection = with_lines(selection, lines, erasure)
        return selection

    def _rows_with(self, texts: frozenset[str]) -> list[OtherRow]:
        if not texts:
            return []
        others: list[OtherRow] = []
        for table, sql in forgetting.OTHERS.items():
            with closing(self.walk(sql)) as stored:
                others += rows_of_table(table, stored, texts)
        return others

    def tallies(self) -> Tallies:
        """See `Store.tallies`."""
        return rows.tallies_of(self.rows(statements.TALLIES))

    def pending(self) -> dict[str, int]:
        """See `Store.pending`."""
        return dict(self.rows(statements.PENDING))

    def tallies_and_pending(self) -> tuple[Tallies, dict[str, int]]:
        """See `Store.tallies_and_pending`."""
        tallies, pending = self.at_once(statements.TALLIES, statements.PENDING)
        return rows.tallies_of(tallies), dict(pending)

    def close(self) -> None:
        """Return leased draws to the queue, close the connections, and unlock the state directory."""
        with ExitStack() as stack:
            if self._state is not None:
                stack.callback(self._state.close)
            stack.callback(self.disconnect)
            self.release()
