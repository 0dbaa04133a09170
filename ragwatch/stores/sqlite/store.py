"""The SQLite store: one file, one writer, WAL. Each public method is one transaction; a kill between loses nothing."""

from __future__ import annotations

import json
import math
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ByteSize, ConfigDict, Field

from ragwatch.core.budget import Cost, SpendingCap
from ragwatch.core.sample import Draw
from ragwatch.core.tally import Tallies, count_draw, count_duplicate
from ragwatch.core.verdict import Verdict
from ragwatch.errors import StoreError
from ragwatch.ports import (
    Admission,
    FollowUp,
    OpenBatch,
    PackedVerdict,
    Query,
    RecordedEvent,
    Retention,
    ScoreRow,
    StoredVerdict,
)
from ragwatch.stores.sqlite import accounts, batches, rows, search
from ragwatch.stores.sqlite import retention as sweep
from ragwatch.stores.sqlite import verdicts as entries
from ragwatch.stores.sqlite.notebook import SqliteNotes

_TALLIES = "SELECT name, labels, value FROM tallies"
_PENDING = "SELECT judge, COUNT(*) FROM work GROUP BY judge"
_FREE = (
    "SELECT key, source, route, at, body, probability FROM work JOIN samples USING (key)"
    " WHERE judge = ? AND batch IS NULL AND since < ? AND key NOT IN (SELECT value FROM json_each(?))"
    " ORDER BY seq LIMIT ?"
)
_OVERDUE = (
    "SELECT route, judge, CAST(at / 60 AS INTEGER), SUM(1 / probability) FROM work JOIN samples USING (key)"
    " WHERE since < ? GROUP BY 1, 2, 3"
)
_WINDOW = (
    f"SELECT {rows.SCORE_COLUMNS} FROM verdicts"  # noqa: S608 - our own words
    f" WHERE seq > ?1 AND at >= ?2 AND {sweep.UNPICKED} ORDER BY seq LIMIT ?3"
)
RUNS_SHARE = 0.25  # of the bytes allowed: canaries must not evict verdicts
LEASED_CHARS = 8 << 20  # of texts that are leased at a time, and the one that goes beyond
LEFT_TO_JUDGING = 8  # judging goes on down to this part of the floor: the log must always fit the database

Made = TypeVar("Made")


class Options(BaseModel):
    """Configuration of the SQLite store."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    min_free: ByteSize = Field(
        ByteSize(256 << 20), description="Free bytes on the disk below which nothing more is read from the sources."
    )


def build(options: Options, state: Path) -> SqliteStore:
    """The store that these options describe, opened and locked."""
    return SqliteStore(state, min_free=options.min_free)


class SqliteStore(SqliteNotes):
    """Durable memory in one file."""

    def __init__(self, state: Path, *, min_free: int = 0) -> None:
        super().__init__(state, min_free=min_free)
        self._leasing = threading.Lock()
        self._leases: dict[tuple[str, str], float] = {}  # one process owns the state, so leases need no disk
        self._leased_at = -math.inf
        with suppress(StoreError):  # on a full disk they run out by themselves
            self._drop_claims()

    @property
    def _judging_floor(self) -> int:
        return self._min_free // LEFT_TO_JUDGING

    def cursors(self, source: str) -> dict[str, str]:
        """Stored cursors of a source, by stream."""
        return dict(self._reader.rows("SELECT stream, cursor FROM cursors WHERE source = ?", (source,)))

    def admit(self, admission: Admission) -> int:
        """Write draws, cursor and tallies. Known keys are counted as duplicates and change nothing else."""
        tallies: Tallies = Counter(admission.tallies)
        new = 0
        with self._transaction(self._min_free) as writer:
            for draw, assignments in admission.draws:
                if not entries.insert_sample(writer, draw):
                    count_duplicate(tallies, admission.source)
                    continue
                new += 1
                count_draw(tallies, draw.route, (assignment.judge for assignment in assignments))
                tallies.update(admission.of_draws.get(draw.key, {}))
                since = draw.at if admission.at is None else admission.at
                entries.insert_work(writer, draw.key, assignments, since)
            entries.add(writer, tallies)
            entries.move(writer, admission)
        return new

    def lease(self, judge: str, limit: int, *, now: float, seconds: float, before: float | None = None) -> list[Draw]:
        """Pending draws for a judge, oldest first, held for `seconds`; their probability is that judge's."""
        since = math.inf if before is None else before
        with self._leasing:
            # A clock that is set back takes leases with it: they would hold until it is where it was.
            back, self._leased_at = max(0.0, self._leased_at - now), now
            self._leases = {held: until - back for held, until in self._leases.items() if until - back > now}
            taken = json.dumps([key for name, key in self._leases if name == judge])
            draws = self._free_draws((judge, since, taken, limit))
            self._leases.update({(judge, draw.key): now + seconds for draw in draws})
            return draws

    def _free_draws(self, parameters: Sequence[object]) -> list[Draw]:
        """Pending draws; as soon as their texts are large together, they are enough."""
        draws: list[Draw] = []
        chars = 0
        with closing(self._reader.walk(_FREE, parameters)) as found:
            for row in found:
                draws.append(self._draw_of(row))
                chars += draws[-1].sample.chars
                if chars > LEASED_CHARS:
                    break
        return draws

    def _draw_of(self, row: tuple[Any, ...]) -> Draw:
        draw = rows.draw_of(row)
        if draw.damage is not None:
            self._note_damage("samples", draw.key)
        return draw

    def postpone(self, judge: str, keys: Collection[str], until: float) -> None:
        """Hold draws back until an instant. A process that begins anew asks for them at once."""
        with self._leasing:
            self._leases.update({(judge, key): until for key in keys})

    def _release(self, judge: str, keys: Collection[str]) -> None:
        with self._leasing:
            for key in keys:
                self._leases.pop((judge, key), None)

    def settle(
        self, verdicts: Sequence[Verdict], follow_ups: Sequence[FollowUp] = (), tallies: Tallies | None = None
    ) -> int:
        """Write verdicts, what they bring and what they add to the tallies. What was settled before changes nothing."""
        counts: Tallies = Counter()
        with self._transaction(self._judging_floor) as writer:
            new = entries.settle(writer, verdicts, counts)
            if new or not verdicts:
                counts.update(tallies or {})
            entries.follow(writer, [each for each in follow_ups if (each.after, each.key) in new], counts)
            entries.add(writer, counts)
        for verdict in verdicts:
            self._release(verdict.reading.judge, [verdict.draw.key])
        return len(new)

    def overdue(self, before: float) -> dict[tuple[str, str, int], float]:
        """Weight of draws pending since before an instant, by (route, judge, minute of `at`)."""
        found = self._reader.rows(_OVERDUE, (before,))
        return {(route, judge, minute): weight for route, judge, minute, weight in found}

    def reserve(self, judge: str, worst: Cost, caps: Sequence[SpendingCap], *, now: float) -> int | None:
        """Set money aside; None when a cap would be passed. Refused where the verdict could not be written either."""
        with self._transaction(self._judging_floor) as writer:
            return accounts.reserve(writer, judge, worst, caps, now)

    def pay(self, reservation: int, actual: Cost) -> None:
        """Replace what was set aside by what it did cost; the first word counts."""
        with self._transaction() as writer:
            accounts.pay(writer, reservation, actual)

    def spent(self, judge: str, since: float) -> Cost:
        """Money set aside or paid for calls begun after an instant."""
        return Cost(*self._reader.rows(accounts.SPENT, (judge, since))[0])

    def prepare_batch(self, judge: str, draws: Mapping[str, int], seed: str, *, now: float) -> int:
        """Put draws aside for one message batch. Returns its number."""
        with self._transaction() as writer:
            batch = batches.prepare(writer, judge, draws, seed, now)
        self._release(judge, draws)
        return batch

    def send_batch(self, batch: int, provider_id: str) -> None:
        """The provider has accepted the batch under this name."""
        with self._transaction() as writer:
            batches.send(writer, batch, provider_id)

    def batches(self, judge: str) -> list[OpenBatch]:
        """Batches that are not closed, oldest first."""
        return [OpenBatch(*row) for row in self._reader.rows(batches.OPEN, (judge,))]

    def batched(self, batch: int) -> list[tuple[Draw, int]]:
        """Draws of a batch that are not settled, each with its reservation."""
        return [batches.inside(row) for row in self._reader.rows(batches.INSIDE, (batch,))]

    def close_batch(self, batch: int) -> int:
        """Forget a batch; its draws that are not settled return to the queue. Returns how many did."""
        with self._transaction() as writer:
            return batches.close(writer, batch)

    def record(self, event: RecordedEvent) -> None:
        """Keep an event."""
        with self._transaction() as writer:
            writer.execute("INSERT INTO events VALUES (?, ?, ?)", (event.at, event.kind, event.detail))

    def events(self, since: float) -> list[RecordedEvent]:
        """Events since an instant, oldest first."""
        return [
            RecordedEvent(*row) for row in self._pages.rows("SELECT * FROM events WHERE at >= ? ORDER BY at", (since,))
        ]

    def window(self, after: int, since: float, limit: int) -> list[ScoreRow]:
        """Score rows settled behind `after` whose answers are not older than `since`, in order of settling."""
        newest = rows.newest_of(self._reader.rows("SELECT MAX(at) FROM verdicts"))
        if newest is None or newest < since:  # of a service that is silent, or a log of last year: not row by row
            return []
        found = self._reader.rows(_WINDOW, (after, since, limit))
        return [rows.score_row(row) for row in found]

    def picked_until(self) -> float:
        """Instant up to which retention has taken some answers and left others; minus infinity where it took none."""
        found = self._reader.rows(sweep.UNTIL)
        return float(found[0][0]) if found else -math.inf

    def find(self, query: Query) -> list[StoredVerdict]:
        """Stored verdicts, newest first, whole and all at once."""
        return self._found(search.found_of, *search.statement(query))

    def summaries(self, query: Query) -> list[StoredVerdict]:
        """Stored verdicts as lists show them, newest first."""
        return self._found(search.summary_of, *search.summaries(query))

    def entries(self, query: Query) -> Iterator[PackedVerdict]:
        """Stored verdicts, newest first, one by one. None is read before it is asked for, and nothing is held up."""
        for place in self._pages.rows(*search.places(query)):
            for row in self._pages.rows(search.ENTRY, place):
                yield search.entry_of(row)

    def _found(
        self, make: Callable[[tuple[Any, ...]], StoredVerdict], sql: str, parameters: Sequence[object]
    ) -> list[StoredVerdict]:
        found: list[StoredVerdict] = []
        damaged: list[str] = []
        with closing(self._pages.walk(sql, parameters)) as rows_:
            for row in rows_:
                try:
                    found.append(make(row))
                except StoreError:  # its very place is damaged: nobody could ask for it
                    damaged.append(f"seq {row[0]}")
        damaged += [str(each.verdict["key"]) for each in found if each.damage is not None]
        for key in damaged:
            self._note_damage("verdicts", key)
        return found

    def prune(self, retention: Retention, *, now: float) -> int:
        """Forget what is older or larger than allowed, failures last."""
        gone = 0
        with suppress(StoreError):  # what the log holds twice may be the room that forgetting needs
            self._checkpoint()
        self._forget(lambda writer: accounts.forget(writer, now))
        while few := self._forget(lambda writer: sweep.by_age(writer, retention, now)):
            gone += few
        while self._runs_size() > retention.bytes * RUNS_SHARE and self._forget(sweep.oldest_runs):
            pass
        while self._size() > retention.bytes and (few := self._forget(lambda writer: sweep.oldest(writer, now))):
            gone += few
        self._shrink()
        return gone

    def _runs_size(self) -> int:
        return int(self._reader.rows("SELECT COALESCE(SUM(LENGTH(body)), 0) FROM runs")[0][0])

    def _forget(self, a_few: Callable[[sqlite3.Connection], Made]) -> Made:
        """One small transaction, so that others get their turn and the log stays short."""
        with self._transaction() as writer:
            return a_few(writer)

    def tallies(self) -> Tallies:
        """All counts."""
        return entries.tallies_of(self._reader.rows(_TALLIES))

    def pending(self) -> dict[str, int]:
        """Draws not settled yet, by judge."""
        return dict(self._reader.rows(_PENDING))

    def books(self) -> tuple[Tallies, dict[str, int]]:
        """All counts and the unsettled draws by judge, at one instant."""
        counted, waiting = self._reader.at_once(_TALLIES, _PENDING)
        return entries.tallies_of(counted), dict(waiting)
