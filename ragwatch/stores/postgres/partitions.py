"""Partitions of samples and verdicts by day of the answer: made ahead of time, and dropped by retention.

A row belongs to the partition of its day if that exists, else to the rest (an answer of long ago, or of a clock that is
ahead). Before a day is dropped, what outlives it (verdicts with a fault, and their samples) moves to the rest.
"""

import threading
import time
from collections.abc import Callable, Collection

from ragwatch.ports import Retention
from ragwatch.stores.engine import DAY, SEQUENCES, Writer
from ragwatch.stores.postgres.postgres_writer import PARTITIONS
from ragwatch.stores.retention import set_pruned

REST = -1
AHEAD_DAYS = 3
REFRESH_SECONDS = 60.0
LOCK_SECONDS = 1  # a table that is in use for longer is left for the next time
DAYS = (
    "SELECT substr(c.relname, 11)::integer FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
    " WHERE i.inhparent = to_regclass('verdicts') AND c.relname ~ '^verdicts_d[0-9]+$' ORDER BY 1"
)
_NEW = "CREATE TABLE {table}_d{day} (LIKE {table} INCLUDING DEFAULTS INCLUDING STORAGE, CHECK (part = {day}))"
_ATTACH = "ALTER TABLE {table} ATTACH PARTITION {table}_d{day} FOR VALUES IN ({day})"
_INDEXES = (
    "CREATE UNIQUE INDEX ON samples_d{day} (key)",
    "CREATE UNIQUE INDEX ON verdicts_d{day} (key, judge)",
    "CREATE UNIQUE INDEX ON verdicts_d{day} (seq)",
    "CREATE INDEX ON verdicts_d{day} (at, seq)",
    "CREATE INDEX ON verdicts_d{day} (failing, at)",
)
_KEEP_VERDICTS = "UPDATE verdicts SET part = -1 WHERE part = :day AND failing = 1 AND at >= :oldest"
_KEEP_SAMPLES = (
    "WITH kept AS (UPDATE samples s SET part = -1 WHERE part = :day"
    " AND (EXISTS (SELECT 1 FROM work w WHERE w.key = s.key)"
    " OR EXISTS (SELECT 1 FROM verdicts v WHERE v.key = s.key AND v.part <> :day)) RETURNING key)"
    " UPDATE sample_keys k SET part = -1 FROM kept WHERE k.key = kept.key"
)
_DELETED = "SELECT count(*), max(at) FROM verdicts WHERE part = :day"
_DROP = ("ALTER TABLE {table} DETACH PARTITION {table}_d{day}", "DROP TABLE {table}_d{day}")
_FORGET = (
    "DELETE FROM feedback f USING samples s WHERE s.key = f.key AND s.part = :day",
    "DELETE FROM traits t USING samples s WHERE s.key = t.key AND s.part = :day",
    "DELETE FROM sample_keys WHERE part = :day",
)


def day_of(at: float) -> int:
    """Return the day of an instant: a number of days since 1970-01-01, in UTC."""
    return int(at // DAY)


def make(writer: Writer, now: float) -> None:
    """Make the partitions of this day, the one before and the next ones."""
    writer.execute(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'")
    writer.lock(PARTITIONS)
    existing = {day for (day,) in writer.rows(DAYS)}
    for day in range(day_of(now) - 1, day_of(now) + AHEAD_DAYS):
        if day in existing:
            continue
        for table in ("samples", "verdicts"):
            writer.execute(_NEW.format(table=table, day=day))
        for index in _INDEXES:
            writer.execute(index.format(day=day))
        for table in ("samples", "verdicts"):
            writer.execute(_ATTACH.format(table=table, day=day))


def over(days: Collection[int], retention: Retention, now: float) -> list[int]:
    """Return the days of which all verdicts without a fault are older than retention keeps them.

    >>> over([100, 101, 102], Retention(1.0, 9.0, 1), 86400.0 * 103 + 1.0)
    [100, 101]
    """
    return [day for day in days if (day + 1) * DAY <= now - retention.days * DAY]


def keep(writer: Writer, day: int, retention: Retention, now: float) -> None:
    """Move what outlives a day to the rest."""
    writer.execute("SET LOCAL statement_timeout = 0")
    writer.execute(_KEEP_VERDICTS, {"day": day, "oldest": now - retention.failing_days * DAY})
    writer.execute(_KEEP_SAMPLES, {"day": day})


def drop(writer: Writer, day: int, retention: Retention, now: float) -> int:
    """Drop a day, after what outlives it has moved. Returns the number of deleted verdicts."""
    writer.execute(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'")
    keep(writer, day, retention, now)
    for statement in _FORGET:
        writer.execute(statement, {"day": day})
    ((count, newest),) = writer.rows(_DELETED, {"day": day})
    if newest is not None:
        writer.lock(SEQUENCES)
        set_pruned(writer, newest, now)
    for table in ("verdicts", "samples"):
        for statement in _DROP:
            writer.execute(statement.format(table=table, day=day))
    return int(count)


class Parts:
    """Tells in which partition a row belongs, by the days that have one. Thread-safe."""

    def __init__(self, read: Callable[[], Collection[int]]) -> None:
        self._read = read
        self._lock = threading.Lock()
        self._days: frozenset[int] = frozenset()
        self._next = 0.0

    def refresh(self, *, changed: bool = False) -> None:
        """Read the days again if they have changed, or if that was long ago.

        Called outside of a transaction: it may need a connection.
        """
        with self._lock:
            if changed or time.monotonic() >= self._next:
                self._days = frozenset(self._read())
                self._next = time.monotonic() + REFRESH_SECONDS

    def of(self, at: float) -> int:
        """Return the partition of an answer."""
        day = day_of(at)
        return day if day in self._days else REST
