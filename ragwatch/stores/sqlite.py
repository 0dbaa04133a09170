"""The SQLite store: one file, one writer, WAL. Each public method is one transaction; a kill between loses nothing."""

from __future__ import annotations

import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from pydantic import BaseModel, ByteSize, ConfigDict, Field

from ragwatch.core.sample import Draw, RejectReason
from ragwatch.core.tally import Tallies, Tally, of_verdict
from ragwatch.core.verdict import Verdict
from ragwatch.errors import StoreError
from ragwatch.ports import Admission, Event, Found, Query, Retention, ScoreRow
from ragwatch.stores import entries, rows, search, sweep
from ragwatch.stores.disk import MIB, advice, free_bytes, refuse_network
from ragwatch.stores.lock import StateLock
from ragwatch.stores.opening import open_writer
from ragwatch.stores.reader import Reader
from ragwatch.stores.schema import BUSY_MS, WAL_BYTES

_TALLIES = "SELECT name, labels, value FROM tallies"
_PENDING = "SELECT judge, COUNT(*) FROM work GROUP BY judge"
LEFT_TO_JUDGING = 8  # verdicts are written down to this part of the floor: the log must always fit the database
VACUUM_PAGES = 512  # 8 MiB a turn: others write in between


class Options(BaseModel):
    """Configuration of the SQLite store."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    min_free: ByteSize = Field(
        ByteSize(256 << 20), description="Free bytes on the disk below which nothing more is read from the sources."
    )


def build(options: Options, state: Path) -> SqliteStore:
    """The store that these options describe, opened and locked."""
    return SqliteStore(state, min_free=options.min_free)


class SqliteStore:
    """Durable memory in `state/ragwatch.db`.

    Writers take turns on one connection; readers have others, which see the last commit and never block them. Pages
    have one of their own, so that a search through everything does not hold up the loops.

    Args:
        state: Directory that belongs to this process alone.
        min_free: Free bytes on its disk below which nothing is admitted.

    Raises:
        StoreError: The directory is locked or on a network, the database is damaged, gone, or of a newer version.
    """

    def __init__(self, state: Path, *, min_free: int = 0) -> None:
        refuse_network(state)
        self._state, self._min_free = state, min_free
        self._lock_file = StateLock(state)
        path = state / "ragwatch.db"
        try:
            self._writer = open_writer(path)
        except StoreError:
            self._lock_file.close()
            raise
        self._reader, self._pages = Reader(path), Reader(path)
        self._writing = threading.Lock()
        self._leasing = threading.Lock()
        self._leases: dict[tuple[str, str], float] = {}  # one process owns the state, so leases need no disk

    @contextmanager
    def _transaction(self, floor: int = 0) -> Iterator[sqlite3.Connection]:
        """One transaction, refused where fewer bytes than `floor` are free on the disk."""
        with self._writing:
            self._make_room(floor)
            try:
                self._writer.execute("BEGIN IMMEDIATE")
                yield self._writer
                self._writer.execute("COMMIT")
            except sqlite3.Error as error:
                self._roll_back()
                with suppress(sqlite3.Error):  # the log may hold the room that is missing
                    self._fold()
                raise StoreError(f"state: cannot write: {error}; {advice(error)}") from error
            except BaseException:
                self._roll_back()
                raise

    def _make_room(self, floor: int) -> None:
        """Stop what comes in before the disk is full; what is in can still be judged, read and forgotten."""
        if self._free() >= max(floor, WAL_BYTES):
            return
        with suppress(sqlite3.Error):  # our own log may be what fills the disk: where room is short, keep it short
            self._fold()
        if (free := self._free()) < floor:
            raise StoreError(
                f"state: {free // MIB} MiB are free on the disk of {self._state}, and nothing more is read below "
                f"{self._min_free // MIB} MiB (store.min_free); free some space, it goes on by itself"
            )

    def _free(self) -> int:
        try:
            return free_bytes(self._state)
        except OSError as error:
            raise StoreError(f"state: cannot look at the disk of {self._state}: {error.strerror}") from error

    def _roll_back(self) -> None:
        with suppress(sqlite3.Error):  # told by the error that brought us here, and tried again at the next one
            if self._writer.in_transaction:  # a full disk has rolled back already
                self._writer.execute("ROLLBACK")

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
                    tallies[Tally.REJECTED, (admission.source, RejectReason.DUPLICATE_ID)] += 1
                    continue
                new += 1
                tallies[Tally.DRAWN, (draw.route,)] += 1
                tallies.update((Tally.ASSIGNED, (each.judge,)) for each in assignments)
                writer.executemany(
                    "INSERT INTO work (key, judge, probability) VALUES (?, ?, ?)",
                    [(draw.key, each.judge, each.probability) for each in assignments],
                )
            entries.add(writer, tallies)
            entries.move(writer, admission)
        return new

    def lease(self, judge: str, limit: int, *, now: float, seconds: float) -> list[Draw]:
        """Pending draws for a judge, oldest first, held for `seconds`; their probability is that judge's."""
        with self._leasing:
            self._leases = {held: until for held, until in self._leases.items() if until > now}
            taken = [key for name, key in self._leases if name == judge]
            holes = ",".join("?" * len(taken))
            found = self._reader.rows(
                "SELECT key, source, route, at, body, probability FROM work JOIN samples USING (key)"  # noqa: S608 - holes only
                f" WHERE judge = ? AND key NOT IN ({holes}) ORDER BY seq LIMIT ?",
                (judge, *taken, limit),
            )
            draws = [rows.draw_of(row) for row in found]
            self._leases.update({(judge, draw.key): now + seconds for draw in draws})
            return draws

    def settle(self, verdicts: Sequence[Verdict]) -> int:
        """Write verdicts and what they add to the tallies. One that was settled before changes nothing."""
        tallies: Tallies = Counter()
        new = 0
        with self._transaction(self._min_free // LEFT_TO_JUDGING) as writer:
            for verdict in verdicts:
                place = (verdict.reading.judge, verdict.draw.key)
                if writer.execute("DELETE FROM work WHERE judge = ? AND key = ?", place).rowcount == 0:
                    continue
                new += 1
                entries.insert_verdict(writer, verdict)
                tallies.update(of_verdict(verdict))
            entries.add(writer, tallies)
        with self._leasing:
            for verdict in verdicts:
                self._leases.pop((verdict.reading.judge, verdict.draw.key), None)
        return new

    def record(self, event: Event) -> None:
        """Keep an event."""
        with self._transaction() as writer:
            writer.execute("INSERT INTO events VALUES (?, ?, ?)", (event.at, event.kind, event.detail))

    def events(self, since: float) -> list[Event]:
        """Events since an instant, oldest first."""
        return [Event(*row) for row in self._pages.rows("SELECT * FROM events WHERE at >= ? ORDER BY at", (since,))]

    def window(self, after: int, since: float, limit: int) -> list[ScoreRow]:
        """Score rows settled behind `after` whose answers are not older than `since`, in order of settling."""
        found = self._reader.rows(
            f"SELECT {rows.SCORE_COLUMNS} FROM verdicts WHERE seq > ? AND at >= ? ORDER BY seq LIMIT ?",  # noqa: S608 - constant
            (after, since, limit),
        )
        return [rows.score_row(row) for row in found]

    def find(self, query: Query) -> list[Found]:
        """Stored verdicts, newest first."""
        return [search.found_of(row) for row in self._pages.rows(*search.statement(query))]

    def prune(self, retention: Retention, *, now: float) -> int:
        """Forget what is older or larger than allowed, failures last."""
        gone = 0
        with suppress(StoreError):  # what the log holds twice may be the room that forgetting needs
            self._checkpoint()
        while few := self._forget(lambda writer: sweep.by_age(writer, retention, now)):
            gone += few
        while self._size() > retention.bytes and (few := self._forget(sweep.oldest)):
            gone += few
        self._shrink()
        return gone

    def _forget(self, a_few: Callable[[sqlite3.Connection], int]) -> int:
        """One small transaction, so that others get their turn and the log stays short."""
        with self._transaction() as writer:
            return a_few(writer)

    def _size(self) -> int:
        """Bytes of the database that hold something."""
        pages, free, page = (self._pragma(name) for name in ("page_count", "freelist_count", "page_size"))
        return (pages - free) * page

    def _pragma(self, name: str) -> int:
        return int(self._reader.rows(f"PRAGMA {name}")[0][0])

    def _shrink(self) -> None:
        before = 0
        while (free := self._pragma("freelist_count")) not in (0, before):
            before = free
            with self._writing, _giving_back():
                # Not `execute`: it takes one step of a PRAGMA without columns, and that frees one page.
                self._writer.executescript(f"PRAGMA incremental_vacuum({VACUUM_PAGES})")
        self._checkpoint()

    def _checkpoint(self) -> None:
        with self._writing, _giving_back():
            self._fold()

    def _fold(self) -> None:
        """Move what the log holds into the database, and empty the log. The caller has the turn to write."""
        self._writer.execute("PRAGMA busy_timeout=0")  # a reader under way must not hold up the writer
        try:
            self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            self._writer.execute(f"PRAGMA busy_timeout={BUSY_MS}")

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

    def close(self) -> None:
        """Release the state directory."""
        self._reader.close()
        self._pages.close()
        self._writer.close()
        self._lock_file.close()


@contextmanager
def _giving_back() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(f"state: cannot give space back: {error}; {advice(error)}") from error
