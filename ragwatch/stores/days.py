"""Reads all stored verdicts day by day, in the order in which they were settled, with a limited number in memory."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

from ragwatch.errors import StoreError
from ragwatch.ports import StoredVerdict
from ragwatch.stores.engine import DAY, Reader
from ragwatch.stores.rows import VERDICT_COLUMNS, single_number, verdict_of

ROWS_AT_ONCE = 100

_NEXT_AT = "SELECT MIN(at) FROM verdicts WHERE at >= :since"
# With the plus sign, SQLite uses the index of `at` and not the primary key.
_OF_DAY = "SELECT route, seq FROM verdicts WHERE at >= :since AND at < :until AND +seq <= :last"
_BY_SEQS = (
    f"SELECT {VERDICT_COLUMNS}, v.line, NULLIF(s.body, DROPPED), s.source"  # noqa: S608 - constants only
    " FROM verdicts v LEFT JOIN samples s ON s.key = v.key WHERE v.seq = INTS(:seqs) ORDER BY v.seq"
)
_KEY_OF = "SELECT key, judge FROM verdicts WHERE seq = :seq"


@dataclass(frozen=True, slots=True)
class DayVerdict:
    """A stored verdict with its number in the order of settlement, and its source; None once the sample is deleted."""

    seq: int
    stored: StoredVerdict
    source: str | None


class DayReader:
    """Reads verdicts beside a running ragwatch: every statement is short, and none waits for a writer."""

    def __init__(self, connection: Reader) -> None:
        self._connection = connection
        self.unreadable = 0  # rows that were skipped, because not even their columns can be read

    def newest_seq(self) -> int:
        """Return the sequence number of the newest verdict; 0 without one. Later ones have a greater one."""
        return int(single_number(self._connection.rows("SELECT MAX(seq) FROM verdicts")) or 0)

    def highest_seq(self) -> int:
        """Return a sequence number that no verdict exceeds, also none of those that retention has deleted."""
        return max(self.newest_seq(), int(single_number(self._connection.rows("SELECT PRUNED_SEQ")) or 0))

    def days(self, since: float = -math.inf) -> Iterator[int]:
        """Yield the days with verdicts, oldest first: days since 1970-01-01, in UTC."""
        start = since
        while True:
            ((at,),) = self._connection.rows(_NEXT_AT, {"since": start})
            if at is None:
                return
            day = math.floor(at / DAY)
            yield day
            start = (day + 1) * DAY

    def of_day(self, day: int, until_seq: int) -> dict[str, array[int]]:
        """Return the sequence numbers of the verdicts of a day by route, in their order."""
        by_route: dict[str, array[int]] = {}
        parameters = {"since": day * DAY, "until": (day + 1) * DAY, "last": until_seq}
        with closing(self._connection.walk(_OF_DAY, parameters)) as stored:
            for route, seq in stored:
                by_route.setdefault(str(route), array("q")).append(seq)
        return {route: array("q", sorted(seqs)) for route, seqs in sorted(by_route.items())}

    def verdicts(self, seqs: Sequence[int]) -> Iterator[DayVerdict]:
        """Yield the verdicts with these sequence numbers, in order; those that were deleted meanwhile are left out."""
        for start in range(0, len(seqs), ROWS_AT_ONCE):
            chunk = list(seqs[start : start + ROWS_AT_ONCE])
            for row in self._connection.rows(_BY_SEQS, {"seqs": chunk}):
                try:
                    yield DayVerdict(int(row[0]), verdict_of(row[:-1]), row[-1])
                except StoreError:
                    self.unreadable += 1

    def name_of(self, seq: int) -> tuple[str, str] | None:
        """Return key and judge of the verdict with a sequence number; None if there is none any more."""
        stored = self._connection.rows(_KEY_OF, {"seq": seq})
        return (str(stored[0][0]), str(stored[0][1])) if stored else None
