"""SQLite store: one file, one writer, a write-ahead log. Each public method is one transaction, safe across crashes."""

from __future__ import annotations

import json
import math
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from ragwatch.core.budget import Cost, SpendingCap
from ragwatch.core.sample import Draw
from ragwatch.core.tally import Tallies, count_draw, count_duplicate
from ragwatch.core.trends import score_sums
from ragwatch.core.units import size_bytes
from ragwatch.core.verdict import Verdict
from ragwatch.errors import StoreError
from ragwatch.ports import (
    Admission,
    FollowUp,
    OpenBatch,
    Part,
    RecordedEvent,
    Retention,
    ScoreRow,
)
from ragwatch.stores import rows
from ragwatch.stores.encryption import EncryptionOptions, TextCipher
from ragwatch.stores.engine import ADMITTING, JUDGING
from ragwatch.stores.kept_texts import TEXT_SEARCH, Texts
from ragwatch.stores.sqlite import feedback, indexing, replies, statements, trends
from ragwatch.stores.sqlite.finding import SqliteSearch
from ragwatch.stores.sqlite.retention import LIVE, PRUNED_UNTIL, delete_expired, delete_oldest, delete_oldest_runs
from ragwatch.stores.sqlite.sqlite_writer import SqliteWriter

_TALLIES = "SELECT name, labels, label_names, value FROM tallies"
_PENDING = "SELECT judge, COUNT(*) FROM work GROUP BY judge"
_LEASABLE = (
    "SELECT key, source, route, at, body, probability FROM work JOIN samples USING (key)"
    " WHERE judge = ? AND batch IS NULL AND since < ? AND key NOT IN (SELECT value FROM json_each(?))"
    " ORDER BY seq LIMIT ?"
)
_OVERDUE = (
    "SELECT route, judge, CAST(at / 60 AS INTEGER), SUM(1 / probability) FROM work JOIN samples USING (key)"
    " WHERE since < ? GROUP BY 1, 2, 3"
)
_WINDOW = (
    f"SELECT {rows.SCORE_COLUMNS} FROM verdicts"  # noqa: S608 - constants only
    f" WHERE seq > ?1 AND at >= ?2 AND {LIVE} ORDER BY seq LIMIT ?3"
)
MAX_RUNS_SHARE = 0.25  # of the allowed bytes, so that canary runs do not evict verdicts
MAX_LEASED_CHARS = 8 << 20  # of texts leased at a time; the last draw may exceed it

Result = TypeVar("Result")


class Options(BaseModel):
    """Configuration of the SQLite store. The texts are those of samples and verdicts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    min_free: Annotated[int, BeforeValidator(size_bytes)] = Field(
        256 << 20, ge=0, description="Free bytes on the disk below which nothing more is read from the sources."
    )
    texts: Texts = Field(Texts.ALL, description="Texts of which answers are kept after judging; scores always are.")
    text_search: bool = Field(default=True, description=TEXT_SEARCH)
    encryption: EncryptionOptions | None = Field(None, description="Keys that encrypt stored texts.")

    def cipher(self) -> TextCipher | None:
        """Read the keys; None without encryption.

        Raises:
            ConfigError: A key cannot be read, or the extra is not installed.
        """
        return None if self.encryption is None else self.encryption.cipher()


def build(options: Options, state: Path) -> SqliteStore:
    """Open and lock the store."""
    cipher, search = options.cipher(), options.text_search
    return SqliteStore(state, min_free=options.min_free, texts=options.texts, cipher=cipher, text_search=search)


class SqliteStore(SqliteSearch):
    """Implements `ports.Store` in one SQLite database."""

    def __init__(
        self,
        state: Path,
        *,
        min_free: int = 0,
        texts: Texts = Texts.ALL,
        cipher: TextCipher | None = None,
        text_search: bool = True,
    ) -> None:
        super().__init__(state, min_free=min_free, texts=texts, cipher=cipher, text_search=text_search)
        self._leasing = threading.Lock()
        self._leases: dict[tuple[str, str], float] = {}  # in memory, because one process owns the state directory
        self._leased_at = -math.inf
        with suppress(StoreError):  # on a full disk they expire by themselves
            self._drop_claims()

    def cursors(self, source: str) -> dict[str, str]:
        """See `Store.cursors`."""
        return dict(self._reader.rows("SELECT stream, cursor FROM cursors WHERE source = ?", (source,)))

    def parts(self, source: str) -> Iterator[Part]:
        """See `Store.parts`."""
        with closing(self._reader.walk(statements.WAITING_PARTS, (source,))) as stored:
            for row in stored:
                try:
                    yield rows.part_of(row)
                except StoreError:
                    self.damage.note("parts", row[1])

    def received(self, source: str, ids: Collection[str]) -> set[str]:
        """See `Store.received`."""
        known: set[str] = set()
        for sql, parameters, by_digest in statements.received_queries(source, ids):
            known.update(by_digest[digest] for (digest,) in self._reader.rows(sql, parameters))
        return known

    def admit(self, admission: Admission) -> int:
        """See `Store.admit`."""
        tallies: Tallies = Counter(admission.tallies)
        new: list[str] = []
        with self.transaction(ADMITTING) as writer:
            for draw, assignments in admission.draws:
                if not statements.insert_sample(writer, draw, self._texts):
                    count_duplicate(tallies, admission.source)
                    continue
                new.append(draw.key)
                count_draw(tallies, draw.route, (assignment.judge for assignment in assignments))
                tallies.update(admission.of_draws.get(draw.key, {}))
                since = draw.at if admission.at is None else admission.at
                statements.insert_work(writer, draw.key, assignments, since)
            feedback.write(writer, admission, new, tallies)
            statements.add_tallies(writer, tallies)
            statements.store_cursor(writer, admission)
            statements.write_parts(writer, admission)
            trends.add_versions(writer, admission)
            self._note_dropped(admission.release)
        return len(new)

    def lease(self, judge: str, limit: int, *, now: float, seconds: float, before: float | None = None) -> list[Draw]:
        """See `Store.lease`."""
        since = math.inf if before is None else before
        with self._leasing:
            # If the clock is set back, leases are moved with it; otherwise they would last that much longer.
            shift, self._leased_at = max(0.0, self._leased_at - now), now
            self._leases = {lease: until - shift for lease, until in self._leases.items() if until - shift > now}
            leased = json.dumps([key for name, key in self._leases if name == judge])
            draws = self._leasable_draws((judge, since, leased, limit))
            self._leases.update({(judge, draw.key): now + seconds for draw in draws})
            return draws

    def _leasable_draws(self, parameters: Sequence[object]) -> list[Draw]:
        """Load pending draws, until their texts exceed `MAX_LEASED_CHARS`."""
        draws: list[Draw] = []
        chars = 0
        with closing(self._reader.walk(_LEASABLE, parameters)) as stored:
            for row in stored:
                draws.append(self._draw_of(row))
                chars += draws[-1].sample.chars
                if chars > MAX_LEASED_CHARS:
                    break
        return draws

    def _draw_of(self, row: rows.DrawCells) -> Draw:
        draw = rows.draw_of(row)
        if draw.damage is not None:
            self.damage.note("samples", draw.key)
        return draw

    def postpone(self, judge: str, keys: Collection[str], until: float) -> None:
        """See `Store.postpone`. Not durable: after a restart the draws are pending at once."""
        with self._leasing:
            self._leases.update({(judge, key): until for key in keys})

    def _release(self, judge: str, keys: Collection[str]) -> None:
        with self._leasing:
            for key in keys:
                self._leases.pop((judge, key), None)

    def settle(
        self, verdicts: Sequence[Verdict], follow_ups: Sequence[FollowUp] = (), tallies: Tallies | None = None
    ) -> int:
        """See `Store.settle`."""
        counts: Tallies = Counter()
        with self.transaction(JUDGING) as writer:
            settled = statements.settle(writer, verdicts, counts)
            new = {(verdict.reading.judge, verdict.draw.key) for verdict in settled}
            if new or not verdicts:
                counts.update(tallies or {})
            caused = [follow_up for follow_up in follow_ups if (follow_up.after, follow_up.key) in new]
            statements.insert_follow_ups(writer, caused, counts)
            statements.add_tallies(writer, counts)
            replies.add(writer, settled, self._rules)
            trends.add(writer, score_sums(settled))
            self._drop_texts(writer, {key for _, key in new})
            indexing.add(writer, settled, self._rules)
        for verdict in verdicts:
            self._release(verdict.reading.judge, [verdict.draw.key])
        return len(new)

    def overdue(self, before: float) -> dict[tuple[str, str, int], float]:
        """See `Store.overdue`."""
        weights = self._reader.rows(_OVERDUE, (before,))
        return {(route, judge, minute): weight for route, judge, minute, weight in weights}

    def reserve(self, judge: str, worst: Cost, caps: Sequence[SpendingCap], *, now: float) -> int | None:
        """See `Accounts.reserve`. Refused on a disk too full to store the verdict."""
        with self.transaction(JUDGING) as writer:
            return statements.reserve_cost(writer, judge, worst, caps, now)

    def pay(self, reservation: int, actual: Cost) -> None:
        """See `Accounts.pay`."""
        with self.transaction() as writer:
            statements.pay_cost(writer, reservation, actual)

    def spent(self, judge: str, since: float) -> Cost:
        """See `Accounts.spent`."""
        return Cost(*self._reader.rows(statements.SPENT, (judge, since))[0])

    def prepare_batch(self, judge: str, draws: Mapping[str, int], seed: str, *, now: float) -> int:
        """See `Batches.prepare_batch`."""
        with self.transaction() as writer:
            batch = statements.prepare_batch(writer, judge, draws, seed, now)
        self._release(judge, draws)
        return batch

    def send_batch(self, batch: int, provider_id: str) -> None:
        """See `Batches.send_batch`."""
        with self.transaction() as writer:
            statements.send_batch(writer, batch, provider_id)

    def batches(self, judge: str) -> list[OpenBatch]:
        """See `Batches.batches`."""
        return [OpenBatch(*row) for row in self._reader.rows(statements.OPEN_BATCHES, (judge,))]

    def batched(self, batch: int) -> list[tuple[Draw, int]]:
        """See `Batches.batched`."""
        return [statements.batched_draw(row) for row in self._reader.rows(statements.BATCHED_DRAWS, (batch,))]

    def close_batch(self, batch: int) -> int:
        """See `Batches.close_batch`."""
        with self.transaction() as writer:
            return statements.close_batch(writer, batch)

    def record(self, event: RecordedEvent) -> None:
        """See `Store.record`."""
        with self.transaction() as writer:
            writer.execute("INSERT INTO events VALUES (?, ?, ?)", (event.at, event.kind, event.detail))

    def events(self, since: float) -> list[RecordedEvent]:
        """See `Store.events`."""
        return [
            RecordedEvent(*row) for row in self.pages.rows("SELECT * FROM events WHERE at >= ? ORDER BY at", (since,))
        ]

    def last_events(self, since: float) -> dict[str, float]:
        """See `Store.last_events`."""
        return dict(self._reader.rows("SELECT kind, MAX(at) FROM events WHERE at >= ? GROUP BY kind", (since,)))

    def window(self, after: int, since: float, limit: int) -> list[ScoreRow]:
        """See `Store.window`."""
        newest = rows.single_number(self._reader.rows("SELECT MAX(at) FROM verdicts"))
        if newest is None or newest < since:  # quick exit for a silent service or an old log
            return []
        return [rows.score_row(row) for row in self._reader.rows(_WINDOW, (after, since, limit))]

    def pruned_until(self) -> float:
        """See `Store.pruned_until`."""
        stored = self._reader.rows(PRUNED_UNTIL)
        return float(stored[0][0]) if stored else -math.inf

    def prune(self, retention: Retention, *, now: float) -> int:
        """See `Store.prune`."""
        deleted = 0
        with suppress(StoreError):  # truncating the write-ahead log may free the space that deleting needs
            self._checkpoint()
        self._delete(lambda writer: statements.compact_costs(writer, now))
        while self._delete(lambda writer: statements.delete_old_parts(writer, now)):
            pass
        self._delete(lambda writer: feedback.expire(writer, now))
        self._delete(lambda writer: trends.delete_old(writer, retention, now))
        while count := self._delete(lambda writer: delete_expired(writer, retention, now)):
            deleted += count
        while self._runs_size() > retention.bytes * MAX_RUNS_SHARE and self._delete(delete_oldest_runs):
            pass
        while self._size() > retention.bytes and (count := self._delete(lambda writer: delete_oldest(writer, now))):
            deleted += count
        self._drop_earlier_texts()
        self._catch_up()
        self._shrink()
        self._rewrite_if_dropped(now)
        return deleted

    def _runs_size(self) -> int:
        return int(self._reader.rows("SELECT COALESCE(SUM(LENGTH(body)), 0) FROM runs")[0][0])

    def _delete(self, step: Callable[[SqliteWriter], Result]) -> Result:
        """Run one step in its own transaction: other writers are not blocked, the write-ahead log stays small."""
        with self.transaction() as writer:
            return step(writer)

    def tallies(self) -> Tallies:
        """See `Store.tallies`."""
        return rows.tallies_of(self._reader.rows(_TALLIES))

    def pending(self) -> dict[str, int]:
        """See `Store.pending`."""
        return dict(self._reader.rows(_PENDING))

    def tallies_and_pending(self) -> tuple[Tallies, dict[str, int]]:
        """See `Store.books`."""
        tallies, pending = self._reader.at_once(_TALLIES, _PENDING)
        return rows.tallies_of(tallies), dict(pending)
