"""The SQLite store: one file, one writer, WAL. Each public method is one transaction; a kill between loses nothing."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from ragwatch.core.sample import Draw, RejectReason
from ragwatch.core.tally import Tallies, Tally, of_verdict
from ragwatch.core.verdict import Verdict
from ragwatch.errors import StoreError
from ragwatch.ports import Admission, Event, Found, Query, Retention, ScoreRow
from ragwatch.stores import rows, search, sweep
from ragwatch.stores.lock import StateLock
from ragwatch.stores.schema import prepare

_TALLIES = "SELECT name, labels, value FROM tallies"
_PENDING = "SELECT judge, COUNT(*) FROM work GROUP BY judge"


class Options(BaseModel):
    """Configuration of the SQLite store: there is nothing to choose."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def build(options: Options, state: Path) -> SqliteStore:
    """The store that these options describe, opened and locked."""
    del options  # the kind has no options of its own
    return SqliteStore(state)


class SqliteStore:
    """Durable memory in `state/ragwatch.db`.

    Writers take turns on one connection; readers have another, which sees the last commit and never blocks them.

    Args:
        state: Directory that belongs to this process alone.

    Raises:
        StoreError: The directory is locked, the database is damaged, or it comes from a newer version.
    """

    def __init__(self, state: Path) -> None:
        self._lock_file = StateLock(state)
        path = state / "ragwatch.db"
        try:
            self._writer, self._reader = _open(path)
        except (sqlite3.Error, OSError) as error:
            self._lock_file.close()
            raise StoreError(f"state: cannot open {path}: {error}; restore it or move it away to start anew") from error
        except StoreError:
            self._lock_file.close()
            raise
        self._writing = threading.Lock()
        self._reading = threading.Lock()
        self._leasing = threading.Lock()
        self._leases: dict[tuple[str, str], float] = {}  # one process owns the state, so leases need no disk

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._writing:
            try:
                self._writer.execute("BEGIN IMMEDIATE")
                yield self._writer
                self._writer.execute("COMMIT")
            except sqlite3.Error as error:
                self._roll_back()
                raise StoreError(f"state: cannot write: {error}") from error
            except BaseException:
                self._roll_back()
                raise

    def _roll_back(self) -> None:
        with suppress(sqlite3.Error):  # told by the error that brought us here, and tried again at the next one
            if self._writer.in_transaction:  # a full disk has rolled back already
                self._writer.execute("ROLLBACK")

    def _read(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._reading:
            try:
                return self._reader.execute(sql, parameters).fetchall()
            except sqlite3.Error as error:
                raise StoreError(f"state: cannot read: {error}") from error

    def cursors(self, source: str) -> dict[str, str]:
        """Stored cursors of a source, by stream."""
        return dict(self._read("SELECT stream, cursor FROM cursors WHERE source = ?", (source,)))

    def admit(self, admission: Admission) -> int:
        """Write draws, cursor and tallies. Known keys are counted as duplicates and change nothing else."""
        tallies: Tallies = Counter(admission.tallies)
        new = 0
        with self._transaction() as writer:
            for draw, assignments in admission.draws:
                if not _insert_sample(writer, draw):
                    tallies[Tally.REJECTED, (admission.source, RejectReason.DUPLICATE_ID)] += 1
                    continue
                new += 1
                tallies[Tally.DRAWN, (draw.route,)] += 1
                tallies.update((Tally.ASSIGNED, (each.judge,)) for each in assignments)
                writer.executemany(
                    "INSERT INTO work (key, judge, probability) VALUES (?, ?, ?)",
                    [(draw.key, each.judge, each.probability) for each in assignments],
                )
            _add(writer, tallies)
            _move(writer, admission)
        return new

    def lease(self, judge: str, limit: int, *, now: float, seconds: float) -> list[Draw]:
        """Pending draws for a judge, oldest first, held for `seconds`; their probability is that judge's."""
        with self._leasing:
            self._leases = {held: until for held, until in self._leases.items() if until > now}
            taken = [key for name, key in self._leases if name == judge]
            holes = ",".join("?" * len(taken))
            found = self._read(
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
        with self._transaction() as writer:
            for verdict in verdicts:
                place = (verdict.reading.judge, verdict.draw.key)
                if writer.execute("DELETE FROM work WHERE judge = ? AND key = ?", place).rowcount == 0:
                    continue
                new += 1
                _insert_verdict(writer, verdict)
                tallies.update(of_verdict(verdict))
            _add(writer, tallies)
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
        return [Event(*row) for row in self._read("SELECT * FROM events WHERE at >= ? ORDER BY at", (since,))]

    def window(self, after: int, since: float, limit: int) -> list[ScoreRow]:
        """Score rows settled behind `after` whose answers are not older than `since`, in order of settling."""
        found = self._read(
            f"SELECT {rows.SCORE_COLUMNS} FROM verdicts WHERE seq > ? AND at >= ? ORDER BY seq LIMIT ?",  # noqa: S608 - constant
            (after, since, limit),
        )
        return [rows.score_row(row) for row in found]

    def find(self, query: Query) -> list[Found]:
        """Stored verdicts, newest first."""
        return [search.found_of(row) for row in self._read(*search.statement(query))]

    def prune(self, retention: Retention, *, now: float) -> int:
        """Forget what is older or larger than allowed, failures last."""
        with self._transaction() as writer:
            gone = sweep.by_age(writer, retention, now)
        while self._size() > retention.bytes:
            with self._transaction() as writer:
                few = sweep.oldest(writer)
            if not few:
                break
            gone += few
            self._shrink()
        self._shrink()
        return gone

    def _size(self) -> int:
        """Bytes of the database that hold something."""
        pages, free, page = (
            int(self._read(f"PRAGMA {name}")[0][0]) for name in ("page_count", "freelist_count", "page_size")
        )
        return (pages - free) * page

    def _shrink(self) -> None:
        with self._writing:
            try:
                self._writer.execute("PRAGMA incremental_vacuum").fetchall()
                self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            except sqlite3.Error as error:
                raise StoreError(f"state: cannot give space back: {error}") from error

    def tallies(self) -> Tallies:
        """All counts."""
        return _tallies_of(self._read(_TALLIES))

    def pending(self) -> dict[str, int]:
        """Draws not settled yet, by judge."""
        return dict(self._read(_PENDING))

    def books(self) -> tuple[Tallies, dict[str, int]]:
        """All counts and the unsettled draws by judge, at one instant."""
        with self._reading:
            try:
                self._reader.execute("BEGIN")  # a read transaction sees one commit, whatever is written meanwhile
                try:
                    counted = self._reader.execute(_TALLIES).fetchall()
                    waiting = self._reader.execute(_PENDING).fetchall()
                finally:
                    self._reader.execute("COMMIT")
            except sqlite3.Error as error:
                raise StoreError(f"state: cannot read: {error}") from error
        return _tallies_of(counted), dict(waiting)

    def close(self) -> None:
        """Release the state directory."""
        self._reader.close()
        self._writer.close()
        self._lock_file.close()


def _tallies_of(found: Sequence[tuple[str, str, float]]) -> Tallies:
    return Counter({(Tally(name), tuple(json.loads(labels))): value for name, labels, value in found})


def _open(path: Path) -> tuple[sqlite3.Connection, sqlite3.Connection]:
    """Writer and reader of a database that is up to date, readable by nobody else."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))  # its WAL gets the same mode
    path.chmod(0o600)
    writer = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        prepare(writer)
        uri = f"{path.absolute().as_uri()}?mode=ro"  # a path may hold ? and #
        return writer, sqlite3.connect(uri, uri=True, check_same_thread=False)
    except BaseException:
        writer.close()
        raise


def _insert_sample(writer: sqlite3.Connection, draw: Draw) -> bool:
    row = (draw.key, draw.source, draw.route, draw.at, rows.pack(draw.sample.to_record()))
    return writer.execute("INSERT OR IGNORE INTO samples VALUES (?, ?, ?, ?, ?)", row).rowcount == 1


def _insert_verdict(writer: sqlite3.Connection, verdict: Verdict) -> None:
    row = rows.verdict_row(verdict)
    names = ", ".join(row)
    holes = ", ".join(f":{name}" for name in row)
    writer.execute(f"INSERT INTO verdicts ({names}) VALUES ({holes})", row)  # noqa: S608 - names of our own columns


def _add(writer: sqlite3.Connection, tallies: Tallies) -> None:
    writer.executemany(
        "INSERT INTO tallies VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = value + excluded.value",
        [(str(tally), json.dumps(labels), amount) for (tally, labels), amount in tallies.items()],
    )


def _move(writer: sqlite3.Connection, admission: Admission) -> None:
    place = (admission.source, admission.stream)
    if admission.cursor:
        writer.execute("INSERT OR REPLACE INTO cursors VALUES (?, ?, ?)", (*place, admission.cursor))
    else:  # the stream has ended for good
        writer.execute("DELETE FROM cursors WHERE source = ? AND stream = ?", place)
