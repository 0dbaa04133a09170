"""What the components of a store need of an engine, SQLite or PostgreSQL. `dialect` has the words of statements."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import MappingProxyType
from typing import Any, Protocol

from ragwatch.stores.encryption import TextCipher
from ragwatch.stores.kept_texts import Rules

Row = tuple[Any, ...]  # what is in the columns depends on the statement
Rows = list[Row]
Parameters = Mapping[str, object] | Sequence[object]
"""By name; a statement of one engine may also have them by place."""

DAY = 86400.0
MAX_DAMAGED_ROWS = 10_000  # rows that are remembered; beyond that an exact count is of no use

SEQUENCES = 1
"""Lock that is held while sequence numbers of verdicts and feedback are assigned, until they are committed.

Otherwise a reader could see number 10 before 9 is committed, go on after 10, and never see 9. A transaction takes locks
in this order: rows, `SEQUENCES`, then counters.
"""
BUDGET = 2
"""Lock that is held while a judge's budget is checked and reserved, so that workers together stay within it."""

JUDGING, ADMITTING = 0.125, 1.0
"""Shares of the free space to keep (`store.min_free`) below which no verdicts are stored, and no draws."""

UNBIASED = "(v.at > COALESCE(PRUNED_UNTIL, LOWEST) OR v.seq > PRUNED_SEQ)"
"""Condition that a verdict is newer than what retention has deleted, or was settled since."""
LIVE = f"{UNBIASED} AND NOT REJUDGED(v.)"
"""Condition that a verdict is of a draw that was assigned to its judge, of a time that is whole."""

RECALL = "SELECT body FROM states WHERE name = :name"
REMEMBER = "INSERT INTO states (name, body) VALUES (:name, :body) ON CONFLICT (name) DO UPDATE SET body = excluded.body"
"""Statements that read and write a saved state."""


class Reader(Protocol):
    """Runs statements that read, and decrypts the texts in their rows. Raises a `StoreError` if they cannot be read."""

    def rows(self, sql: str, parameters: Parameters = (), *, planned_once: bool = True) -> Rows:
        """Return all rows of a statement; without `planned_once` it is planned for these parameters alone."""

    def walk(self, sql: str, parameters: Parameters = ()) -> Generator[Row, None, None]:
        """Yield the rows of a statement, a limited number of them in memory at a time."""


class Writer(Protocol):
    """Runs statements within a transaction. What it does by itself is right where there is one worker."""

    slot: Mapping[str, int] = MappingProxyType({})
    """Column of counters in which this worker counts; none where there is one worker."""
    cipher: TextCipher | None

    def part(self, at: float) -> Mapping[str, int]:  # noqa: ARG002 - of partitions
        """Column of samples and verdicts with the partition of an answer, by its time; none without partitions."""
        return {}

    def seal(self, body: bytes) -> bytes:
        """Encrypt a compressed text, if there is a key."""
        return body if self.cipher is None else self.cipher.seal(body)

    def rows(self, sql: str, parameters: Parameters = ()) -> Rows:
        """Return all rows of a statement, texts decrypted."""

    def execute(self, sql: str, parameters: Parameters = ()) -> int:
        """Run a statement. Returns how many rows were written."""

    def executemany(self, sql: str, parameters: Sequence[Parameters]) -> None:
        """Run a statement once for each of several rows of parameters."""

    def insert(self, table: str, rows: Sequence[Mapping[str, object]], conflict: str = "") -> int:
        """Insert rows of the same columns in this order, with a clause ON CONFLICT. Returns how many were written."""

    def queued(self) -> AbstractContextManager[object]:
        """Within the block, statements are sent without waiting for their results, whose row counts are unknown."""
        return nullcontext()

    def insert_samples(self, rows: Sequence[Mapping[str, object]]) -> set[str]:
        """Insert samples, one of each key, unless they are stored. Returns the keys of those that are new."""

    def may_prune(self) -> bool:
        """Whether this worker may delete what exceeds the limits in this transaction: one at a time may."""
        return True

    def continue_numbers(self, last: int) -> None:
        """Number new rows after those that were inserted with numbers, and verdicts after `last`."""

    def set_pruned(self, until: float, seq: int) -> None:
        """Record up to when, and to which sequence number, retention has deleted verdicts."""

    def lock(self, number: int, name: str = "") -> None:
        """Wait for the lock of a number and a name, which is held until the end of the transaction."""


class Engine(Reader, Protocol):
    """A database."""

    def close(self) -> None:
        """Close its connections."""

    @property
    def pages(self) -> Reader:
        """Reads beside `rows` for web pages, so that a long search does not block the loops."""

    @property
    def damage(self) -> DamagedRows:
        """The damaged rows that were met."""

    def transaction(self, reserve: float = 0.0) -> AbstractContextManager[Writer]:
        """Run one transaction, unless less than this share of the free space to keep is left.

        Raises a `StoreError` if nothing was written.
        """


class Component:
    """A part of a store: what belongs together, over one engine."""

    engine: Engine
    rules: Rules


class DamagedRows:
    """Counts the damaged rows that were met, each once."""

    def __init__(self) -> None:
        self._rows: set[tuple[str, ...]] = set()

    def note(self, *row: str) -> None:
        """Note a row: its table, and what names it."""
        if len(self._rows) < MAX_DAMAGED_ROWS:
            self._rows.add(row)

    def __len__(self) -> int:
        return len(self._rows)
