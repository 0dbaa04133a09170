"""The part of the PostgreSQL store that elects the leader, and counts by worker.

A leader leads for a time by the clock of the server, within a numbered term. Its transactions lock the row of the
leader in shared mode, so that no other worker begins a term while one of them is under way, and write nothing if their
term is over: a process that was stopped for longer than its time, and wakes, cannot write.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Self

from ragwatch.core.tally import Tallies
from ragwatch.errors import NotLeadingError
from ragwatch.stores import rows
from ragwatch.stores.postgres.connections import Writer, unless_in_use
from ragwatch.stores.postgres.queue import PostgresQueue

FIRST_SLOT = 16
"""The first number of a worker. Numbers below are shared."""
UNSEEN = "interval '1 day'"
"""Time after which what a worker that has ended has counted is counted under number 0."""
_LEAD = (
    "INSERT INTO leader (holder, term, until)"
    " VALUES (%(holder)s, 1, clock_timestamp() + make_interval(secs => %(seconds)s))"
    " ON CONFLICT (one) DO UPDATE SET holder = excluded.holder, until = excluded.until,"
    " term = leader.term + (leader.holder <> excluded.holder OR leader.until <= clock_timestamp())::int"
    " WHERE leader.holder = excluded.holder OR leader.until <= clock_timestamp() OR %(force)s RETURNING term"
)
_RESIGN = "UPDATE leader SET until = '-infinity' WHERE term = %s"
_IN_TERM = "SELECT 1 FROM leader WHERE term = %s AND until > clock_timestamp() FOR SHARE"
_REGISTER = (
    "INSERT INTO workers (name) VALUES (%s) ON CONFLICT (name) DO UPDATE SET seen = clock_timestamp() RETURNING slot"
)
_SEEN = (
    "INSERT INTO workers (slot, name) OVERRIDING SYSTEM VALUE VALUES (%s, %s) ON CONFLICT (slot) DO UPDATE"
    " SET seen = clock_timestamp() WHERE workers.seen < clock_timestamp() - interval '10 minutes'"
)
_OWN_TALLIES = "SELECT name, labels, label_names, value FROM tallies WHERE slot = %s"
_FOLD = (
    "WITH gone AS (DELETE FROM tallies WHERE slot = %s RETURNING name, labels, label_names, value)"
    " INSERT INTO tallies (name, labels, slot, label_names, value)"
    " SELECT name, labels, 0, label_names, value FROM gone ORDER BY name, labels"
    " ON CONFLICT (name, labels, slot)"
    " DO UPDATE SET value = tallies.value + excluded.value, label_names = excluded.label_names"
)
_UNSEEN_WORKERS = f"SELECT slot FROM workers WHERE seen < clock_timestamp() - {UNSEEN} FOR UPDATE SKIP LOCKED"  # noqa: S608 - constants


class PostgresLeading(PostgresQueue):
    """Implements `ports.capabilities.ElectsLeader` and `CountsByWorker`."""

    _name: str | None = None
    _term: Callable[[], int | None] | None = None

    def register(self, name: str) -> None:
        """Count under the number of the worker of this name, a new one at its first start."""
        with self.transaction() as writer:
            ((self._slot,),) = writer.execute(_REGISTER, (name,)).fetchall()
        self._name = name

    def lead(self, seconds: float, *, force: bool = False) -> int | None:
        """See `ElectsLeader.lead`. Also tells the other workers that this one exists."""
        row = None
        with unless_in_use(), self.transaction() as writer:
            if self._name is not None:
                writer.execute(_SEEN, (self._slot, self._name))
            row = writer.execute(_LEAD, {"holder": self.holder, "seconds": seconds, "force": force}).fetchone()
        return None if row is None else int(row[0])

    def resign(self, term: int) -> None:
        """See `ElectsLeader.resign`."""
        with self.transaction() as writer:
            writer.execute(_RESIGN, (term,))

    def fenced(self, term: Callable[[], int | None]) -> Self:
        """See `ElectsLeader.fenced`. Connections and everything else are shared with this store."""
        fenced = copy.copy(self)
        fenced.within(term)
        return fenced

    def within(self, term: Callable[[], int | None]) -> None:
        """Refuse transactions outside of the term that `term` returns."""
        self._term = term

    def _begin(self, writer: Writer) -> None:
        if self._term is None:
            return
        term = self._term()
        if term is None or writer.execute(_IN_TERM, (term,)).fetchone() is None:
            raise NotLeadingError("store: another worker leads; it does this step")

    def own_tallies(self) -> Tallies:
        """See `CountsByWorker.own_tallies`."""
        return rows.tallies_of(self.rows(_OWN_TALLIES, (self._slot,)))

    def _fold_workers(self, writer: Writer) -> None:
        """Count under number 0 what workers have counted that ended more than a day ago."""
        for (slot,) in writer.execute(_UNSEEN_WORKERS).fetchall():
            writer.execute(_FOLD, (slot,))
            writer.execute("DELETE FROM workers WHERE slot = %s", (slot,))
