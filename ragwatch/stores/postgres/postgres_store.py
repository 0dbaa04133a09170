"""PostgreSQL store: one database for any number of workers. Each method is one transaction, safe across crashes.

Workers share leases of draws, a leader, counters, and states that any of them may change. A lease is a time in the row
of the draw: it lasts as long as was meant, also if its worker is killed. Times are those of the callers, so the clocks
of workers must agree to within a fraction of a lease.

A leader leads for a time by the clock of the server, within a numbered term. Its transactions lock the row of the
leader in shared mode, so that no other worker begins a term while one of them is under way, and write nothing if their
term is over: a process that was stopped for longer than its time, and wakes, cannot write.
"""

import copy
import math
import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack, suppress
from functools import partial
from typing import Self
from uuid import uuid4

from ragwatch.errors import StoreError
from ragwatch.model.sample import Draw
from ragwatch.ports import Retention, SavedState
from ragwatch.statistics.tally import Tallies
from ragwatch.stores.counting import tallies_of
from ragwatch.stores.dropping import NEWEST, Place
from ragwatch.stores.engine import RECALL, REMEMBER, Writer
from ragwatch.stores.kept_texts import Texts, rules_of
from ragwatch.stores.lock import StateLock
from ragwatch.stores.postgres import partitions
from ragwatch.stores.postgres.connections import PostgresEngine, unless_in_use
from ragwatch.stores.postgres.migrations import prepare_database
from ragwatch.stores.postgres.options import Options
from ragwatch.stores.postgres.postgres_search import PostgresIndex, PostgresQueries, drop_words
from ragwatch.stores.postgres.postgres_writer import STATES
from ragwatch.stores.retention import ROW_BYTES
from ragwatch.stores.store_base import StoreBase
from ragwatch.stores.texts import damaged_text, pack, unpack

KEY_STATE = "sampling key"
UNSEEN = "interval '1 day'"
"""Time after which what a worker that has ended has counted is counted under number 0."""
_LEAD = (
    "INSERT INTO leader (holder, term, until)"
    " VALUES (:holder, 1, clock_timestamp() + make_interval(secs => :seconds))"
    " ON CONFLICT (one) DO UPDATE SET holder = excluded.holder, until = excluded.until,"
    " term = leader.term + (leader.holder <> excluded.holder OR leader.until <= clock_timestamp())::int"
    " WHERE leader.holder = excluded.holder OR leader.until <= clock_timestamp() OR :force RETURNING term"
)
_RESIGN = "UPDATE leader SET until = '-infinity' WHERE term = :term"
_REGISTER = (
    "INSERT INTO workers (name) VALUES (:name) ON CONFLICT (name) DO UPDATE SET seen = clock_timestamp() RETURNING slot"
)
_SEEN = (
    "INSERT INTO workers (slot, name) OVERRIDING SYSTEM VALUE VALUES (:slot, :name) ON CONFLICT (slot) DO UPDATE"
    " SET seen = clock_timestamp() WHERE workers.seen < clock_timestamp() - interval '10 minutes'"
)
_OWN_TALLIES = "SELECT name, labels, label_names, value FROM tallies WHERE slot = :slot"
_FOLD = (
    "WITH gone AS (DELETE FROM tallies WHERE slot = :slot RETURNING name, labels, label_names, value)"
    " INSERT INTO tallies (name, labels, slot, label_names, value)"
    " SELECT name, labels, 0, label_names, value FROM gone ORDER BY name, labels"
    " ON CONFLICT (name, labels, slot)"
    " DO UPDATE SET value = tallies.value + excluded.value, label_names = excluded.label_names"
)
_UNSEEN_WORKERS = f"SELECT slot FROM workers WHERE seen < clock_timestamp() - {UNSEEN} FOR UPDATE SKIP LOCKED"  # noqa: S608 - constants
_LEASABLE = (
    "SELECT w.key, s.source, s.route, s.at, s.body, w.probability FROM work w JOIN samples s ON s.key = w.key"
    " WHERE w.judge = :judge AND w.batch IS NULL AND w.since < :since AND w.leased_until <= :now"
    " ORDER BY w.seq LIMIT :limit FOR UPDATE OF w SKIP LOCKED"
)
_LEASE = "UPDATE work SET holder = :holder, leased_until = :until WHERE judge = :judge AND key = LIST(:keys)"
_SHIFT = "UPDATE work SET leased_until = leased_until - :seconds WHERE holder = :holder"
_RELEASE = "UPDATE work SET holder = NULL, leased_until = '-Infinity' WHERE holder = :holder"
EXACT_BYTES = 256 << 20  # tables up to this size are measured whole, larger ones by a sample of their pages
TABLES = ("verdicts", "samples", "traits", "answer_index", "replies", "runs", "parts", "labels", "events")
RELATION_SIZE = (
    "SELECT SUM(pg_total_relation_size(p.relid))"  # noqa: S608 - constants
    f" FROM unnest(ARRAY{list(TABLES)}) AS t(name), pg_partition_tree(t.name::regclass) AS p"
)


class PostgresStore(StoreBase):
    """Implements `ports.Store`, and `SharedStore` of `ports.capabilities`, in a schema of a PostgreSQL database.

    It releases the lock `state` at the end, and counts under `name`, also after a restart. `holder` is the name of this
    worker in its leases. Raises as `Database.connected`.
    """

    engine: PostgresEngine

    def __init__(self, options: Options, *, state: StateLock | None = None, name: str | None = None) -> None:
        cipher = options.cipher()
        self.engine = PostgresEngine(options, cipher=cipher)
        self.rules = rules_of(options.texts, cipher, text_search=options.text_search)
        self.index, self.queries = PostgresIndex(), PostgresQueries
        self._behind: Place | None = NEWEST
        self._state, self._name = state, name
        self.holder = uuid4().hex
        self._leasing = threading.Lock()
        self._leased_at = -math.inf
        prepare_database(options, cipher)
        self._make_partitions(time.time())
        if name is not None:
            with self.engine.transaction() as writer:
                ((self.engine.slot,),) = writer.rows(_REGISTER, {"name": name})

    def lease(self, judge: str, limit: int, *, now: float, seconds: float, before: float | None = None) -> list[Draw]:
        values = {"judge": judge, "since": math.inf if before is None else before, "now": now, "limit": limit}
        with self._leasing, self.engine.transaction() as writer:
            # If the clock is set back, leases are moved with it; otherwise they would last that much longer.
            if now < self._leased_at:
                writer.execute(_SHIFT, {"seconds": self._leased_at - now, "holder": self.holder})
            draws = self.leased(writer.rows(_LEASABLE, values))
            self._lease(writer, judge, [draw.key for draw in draws], now + seconds)
            self._leased_at = now
        return draws

    def postpone(self, judge: str, keys: Collection[str], until: float) -> None:
        with self.engine.transaction() as writer:
            self._lease(writer, judge, sorted(keys), until)

    def _lease(self, writer: Writer, judge: str, keys: list[str], until: float) -> None:
        if keys:
            writer.execute(_LEASE, {"holder": self.holder, "until": until, "judge": judge, "keys": keys})

    def release(self) -> None:
        """Return what this worker has leased or postponed to the queue, at its end."""
        with suppress(StoreError), self.engine.transaction() as writer:  # without the server, leases expire
            writer.execute(_RELEASE, {"holder": self.holder})

    def lead(self, seconds: float, *, force: bool = False) -> int | None:
        """See `SharedStore.lead`. Also tells the other workers that this one exists."""
        terms: list[tuple[int]] = []
        with unless_in_use(), self.engine.transaction() as writer:
            if self._name is not None:
                writer.execute(_SEEN, {"slot": self.engine.slot, "name": self._name})
            terms = writer.rows(_LEAD, {"holder": self.holder, "seconds": seconds, "force": force})
        return int(terms[0][0]) if terms else None

    def resign(self, term: int) -> None:
        with self.engine.transaction() as writer:
            writer.execute(_RESIGN, {"term": term})

    def fenced(self, term: Callable[[], int | None]) -> Self:
        """See `SharedStore.fenced`. Connections and everything else are shared with this store."""
        fenced = copy.copy(self)
        fenced.engine = copy.copy(self.engine)
        fenced.engine.term = term
        return fenced

    def own_tallies(self) -> Tallies:
        return tallies_of(self.engine.rows(_OWN_TALLIES, {"slot": self.engine.slot}))

    def revise(self, name: str, change: Callable[[SavedState | None], Mapping[str, object] | None]) -> SavedState:
        with self.engine.transaction() as writer:
            writer.lock(STATES, name)
            stored = writer.rows(RECALL, {"name": name})
            state = unpack(stored[0][0]) if stored else None
            revised = change(state)
            if revised is None:
                return state
            writer.execute(REMEMBER, {"name": name, "body": writer.seal(pack(revised))})
        return revised

    def shared_secret(self, ours: bytes) -> bytes:
        with self.engine.transaction() as writer:
            row = {"name": KEY_STATE, "body": writer.seal(pack({"secret": ours.hex()}))}
            writer.insert("states", [row], "ON CONFLICT (name) DO NOTHING")
        stored = self.recall(KEY_STATE) or {}
        try:
            return bytes.fromhex(stored["secret"])
        except (LookupError, TypeError, ValueError) as error:
            raise damaged_text(error) from error

    def excess(self, limit: int, estimate: int | None = None) -> int:
        """See `Retaining.excess`. Files do not shrink, so what is deleted is added up."""
        if estimate is not None:
            return estimate
        relations = self._bytes(RELATION_SIZE)
        return 0 if relations <= limit else sum(map(self._bytes, sizes(relations))) - limit

    def _bytes(self, sql: str) -> int:
        return int(self.engine.rows(sql)[0][0])

    def pruning_begins(self, retention: Retention, now: float) -> int:
        """See `Retaining.pruning_begins`. Makes partitions ahead of time, and drops the days that are over."""
        self.step(fold_workers, None)
        self._make_partitions(time.time())
        deleted = 0
        for day in partitions.over(self.engine.days(), retention, now):
            with unless_in_use():
                self.step(partial(partitions.keep, day=day, retention=retention, now=now), None)
                deleted += self.step(partial(partitions.drop, day=day, retention=retention, now=now), 0)
        self.engine.parts.refresh(changed=True)
        return deleted

    def _make_partitions(self, now: float) -> None:
        """Make partitions. If a table is in use for long, the next time will do."""
        if partitions.day_of(now) + 1 not in self.engine.days():
            with unless_in_use(), self.engine.transaction() as writer:
                partitions.make(writer, now)
        self.engine.parts.refresh(changed=True)

    def pruning_ends(self, now: float) -> None:  # noqa: ARG002 - of the other engine
        """See `Retaining.pruning_ends`. Indexes the answers that other versions have judged, once after each start."""
        while self.rules.texts is not Texts.ALL and self.step(self.drop_earlier, 0):
            pass
        deleted = self._behind is not None and self.rules.words_off is not None
        while deleted:
            with self.engine.transaction() as writer:
                deleted = drop_words(writer) > 0
        while self._behind is not None:
            self._behind = self.index_behind(self._behind)

    def rewritten(self) -> bool:
        return self.engine.rewrite((*TABLES, "states"))

    def close(self) -> None:
        """Return leased draws to the queue, close the connections, and unlock the state directory."""
        with ExitStack() as stack:
            if self._state is not None:
                stack.callback(self._state.close)
            stack.callback(self.engine.close)
            self.release()


def fold_workers(writer: Writer) -> None:
    """Count under number 0 what workers have counted that ended more than a day ago."""
    for (slot,) in writer.rows(_UNSEEN_WORKERS):
        writer.execute(_FOLD, {"slot": slot})
        writer.execute("DELETE FROM workers WHERE slot = :slot", {"slot": slot})


def sizes(relation_bytes: int) -> list[str]:
    """Return statements that measure the bytes of the stored rows: a table's file also has free space.

    >>> ["TABLESAMPLE" in sql for sql in sizes(EXACT_BYTES)], "(25.0)" in sizes(4 * EXACT_BYTES)[0]
    ([False, False, False], True)
    """
    percent = 100.0 * min(1.0, EXACT_BYTES / max(1, relation_bytes))
    part = "" if percent >= 100.0 else f"TABLESAMPLE SYSTEM ({percent})"
    factor = 100.0 / percent
    columns = {
        "verdicts": "octet_length(line) + coalesce(octet_length(scores::text), 0)",
        "samples": "octet_length(body)",
        "runs": "octet_length(body)",
    }
    return [
        f"SELECT COALESCE({factor} * SUM({ROW_BYTES} + {size}), 0)::bigint FROM {table} {part}"  # noqa: S608 - constants
        for table, size in columns.items()
    ]
