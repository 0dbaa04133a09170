"""Reads all stored verdicts day by day, in the order in which they were settled, with a limited number in memory."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Protocol

from ragwatch.errors import StoreError
from ragwatch.ports import StoredVerdict
from ragwatch.stores.decoding import verdict_of
from ragwatch.stores.limits import DAY

ROWS_AT_ONCE = 100

Row = tuple[Any, ...]  # what is in the columns depends on the statement
Rows = list[Row]


@dataclass(frozen=True, slots=True)
class DayStatements:
    """SQL statements of a kind of store.

    Attributes:
        next_at: Time of the oldest verdict since an instant.
        newest_seq: Sequence number of the newest verdict.
        pruned_seq: Sequence number up to which retention has deleted verdicts.
        of_day: Route and sequence number of the verdicts from an instant until another, up to a sequence number.
        by_seqs: Columns, line, sample and source of verdicts by their sequence numbers, in their order.
        key_of: Key and judge of the verdict with a sequence number.
        list_of: Converts sequence numbers to the parameter of `by_seqs`.
    """

    next_at: str
    newest_seq: str
    pruned_seq: str
    of_day: str
    by_seqs: str
    key_of: str
    list_of: Callable[[Sequence[int]], object]


class DayRows(Protocol):
    """Runs statements."""

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> Rows:
        """Return all rows of a statement."""
        ...

    def walk(self, sql: str, parameters: Sequence[object] = ()) -> Generator[Row, None, None]:
        """Yield the rows of a statement."""
        ...


@dataclass(frozen=True, slots=True)
class DayVerdict:
    """A stored verdict.

    Attributes:
        seq: Sequence number in the order of settlement.
        stored: The verdict, with its sample if that is kept.
        source: Name of the source of the sample; None once retention has deleted it.
    """

    seq: int
    stored: StoredVerdict
    source: str | None


class DayReader:
    """Reads verdicts beside a running ragwatch: every statement is short, and none waits for a writer.

    Args:
        connection: Runs the statements.
        statements: Those of the kind of store.

    Attributes:
        unreadable: Number of rows that were skipped, because not even their columns can be read.
    """

    def __init__(self, connection: DayRows, statements: DayStatements) -> None:
        self._connection, self._statements = connection, statements
        self.unreadable = 0

    def newest_seq(self) -> int:
        """Return the sequence number of the newest verdict; 0 without one. Later ones have a greater one."""
        return self._number(self._statements.newest_seq)

    def highest_seq(self) -> int:
        """Return a sequence number that no verdict exceeds, also none of those that retention has deleted."""
        return max(self.newest_seq(), self._number(self._statements.pruned_seq))

    def _number(self, sql: str) -> int:
        stored = self._connection.rows(sql)
        return int(stored[0][0] or 0) if stored else 0

    def days(self, since: float = -math.inf) -> Iterator[int]:
        """Yield the days with verdicts, oldest first: days since 1970-01-01, in UTC."""
        start = since
        while True:
            ((at,),) = self._connection.rows(self._statements.next_at, (start,))
            if at is None:
                return
            day = math.floor(at / DAY)
            yield day
            start = (day + 1) * DAY

    def of_day(self, day: int, until_seq: int) -> dict[str, array[int]]:
        """Return the sequence numbers of the verdicts of a day by route, in their order."""
        by_route: dict[str, array[int]] = {}
        parameters = (day * DAY, (day + 1) * DAY, until_seq)
        with closing(self._connection.walk(self._statements.of_day, parameters)) as stored:
            for route, seq in stored:
                by_route.setdefault(str(route), array("q")).append(seq)
        return {route: array("q", sorted(seqs)) for route, seqs in sorted(by_route.items())}

    def verdicts(self, seqs: Sequence[int]) -> Iterator[DayVerdict]:
        """Yield the verdicts with these sequence numbers, in order; those that were deleted meanwhile are left out."""
        for start in range(0, len(seqs), ROWS_AT_ONCE):
            chunk = self._statements.list_of(seqs[start : start + ROWS_AT_ONCE])
            for row in self._connection.rows(self._statements.by_seqs, (chunk,)):
                try:
                    yield DayVerdict(int(row[0]), verdict_of(row[:-1]), row[-1])
                except StoreError:
                    self.unreadable += 1

    def name_of(self, seq: int) -> tuple[str, str] | None:
        """Return key and judge of the verdict with a sequence number; None if there is none any more."""
        stored = self._connection.rows(self._statements.key_of, (seq,))
        return (str(stored[0][0]), str(stored[0][1])) if stored else None
