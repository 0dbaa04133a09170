"""The part of the PostgreSQL store that leases pending draws to workers.

A lease is a time in the row of the draw: it lasts as long as was meant, also if its worker is killed. Times are those
of the callers, so the clocks of workers must agree to within a fraction of a lease.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Collection
from contextlib import suppress
from uuid import uuid4

from ragwatch.core.sample import Draw
from ragwatch.errors import StoreError
from ragwatch.stores.encryption import TextCipher
from ragwatch.stores.limits import MAX_LEASED_CHARS
from ragwatch.stores.postgres.connections import Target
from ragwatch.stores.postgres.notes import PostgresNotes
from ragwatch.stores.rows import DrawCells, draw_of

_LEASABLE = (
    "SELECT w.seq, w.key, s.source, s.route, s.at, s.body, w.probability FROM work w JOIN samples s ON s.key = w.key"
    " WHERE w.judge = %s AND w.batch IS NULL AND w.since < %s AND w.leased_until <= %s"
    " ORDER BY w.seq LIMIT %s FOR UPDATE OF w SKIP LOCKED"
)
_LEASE = "UPDATE work SET holder = %s, leased_until = %s WHERE seq = ANY(%b::bigint[])"
_POSTPONE = "UPDATE work SET holder = %s, leased_until = %s WHERE judge = %s AND key = ANY(%b::text[])"
_SHIFT = "UPDATE work SET leased_until = leased_until - %s WHERE holder = %s"
_RELEASE = "UPDATE work SET holder = NULL, leased_until = '-Infinity' WHERE holder = %s"


class PostgresQueue(PostgresNotes):
    """Leases draws.

    Attributes:
        holder: Name of this worker in its leases.
    """

    def __init__(self, target: Target, *, cipher: TextCipher | None = None) -> None:
        super().__init__(target, cipher=cipher)
        self.holder = uuid4().hex
        self._leasing = threading.Lock()
        self._leased_at = -math.inf

    def lease(self, judge: str, limit: int, *, now: float, seconds: float, before: float | None = None) -> list[Draw]:
        """See `Store.lease`."""
        since = math.inf if before is None else before
        with self._leasing, self.transaction() as writer:
            # If the clock is set back, leases are moved with it; otherwise they would last that much longer.
            if now < self._leased_at:
                writer.execute(_SHIFT, (self._leased_at - now, self.holder))
            draws: list[Draw] = []
            numbers: list[int] = []
            chars = 0
            for number, *row in self._opened(writer.execute(_LEASABLE, (judge, since, now, limit)).fetchall()):
                draws.append(self._draw_of(tuple(row)))
                numbers.append(number)
                chars += draws[-1].sample.chars
                if chars > MAX_LEASED_CHARS:
                    break
            if numbers:
                writer.execute(_LEASE, (self.holder, now + seconds, numbers))
            self._leased_at = now
        return draws

    def _draw_of(self, row: DrawCells) -> Draw:
        draw = draw_of(row)
        if draw.damage is not None:
            self.damage.note("samples", draw.key)
        return draw

    def postpone(self, judge: str, keys: Collection[str], until: float) -> None:
        """See `Store.postpone`."""
        if keys:
            with self.transaction() as writer:
                writer.execute(_POSTPONE, (self.holder, until, judge, sorted(keys)))

    def release(self) -> None:
        """Return what this worker has leased or postponed to the queue, at its end."""
        with suppress(StoreError), self.transaction() as writer:  # without the server, leases expire by themselves
            writer.execute(_RELEASE, (self.holder,))
