"""PostgreSQL store: one database for any number of workers. Each method is one transaction, safe across crashes."""

from __future__ import annotations

import time
from contextlib import ExitStack
from functools import partial

from ragwatch.ports import Retention
from ragwatch.stores.codec.encryption import TextCipher
from ragwatch.stores.codec.kept_texts import Texts
from ragwatch.stores.lock import StateLock
from ragwatch.stores.postgres import partitions
from ragwatch.stores.postgres.connections import PostgresEngine, Target, unless_in_use
from ragwatch.stores.postgres.leading import Sharing, fold_workers
from ragwatch.stores.postgres.migrations import prepare_database
from ragwatch.stores.postgres.postgres_index import PostgresIndex, drop_words
from ragwatch.stores.postgres.postgres_queries import PostgresQueries
from ragwatch.stores.retention import ROW_BYTES
from ragwatch.stores.search.answer_terms import rules_of
from ragwatch.stores.search.indexing import NEWEST, Place

EXACT_BYTES = 256 << 20  # tables up to this size are measured whole, larger ones by a sample of their pages
TABLES = ("verdicts", "samples", "traits", "answer_index", "replies", "runs", "parts", "labels", "events")
RELATION_SIZE = (
    "SELECT SUM(pg_total_relation_size(p.relid))"  # noqa: S608 - constants
    f" FROM unnest(ARRAY{list(TABLES)}) AS t(name), pg_partition_tree(t.name::regclass) AS p"
)


class PostgresStore(Sharing):
    """Implements `ports.Store` in a schema of a PostgreSQL database.

    It releases the lock `state` at the end, and counts under `name`, also after a restart.

    Raises:
        ConfigError: Texts are encrypted with a key that is not given.
        StoreError: The server cannot be reached, or the database cannot be used.
    """

    def __init__(
        self,
        target: Target,
        *,
        state: StateLock | None = None,
        name: str | None = None,
        texts: Texts = Texts.ALL,
        cipher: TextCipher | None = None,
        text_search: bool = True,
    ) -> None:
        super().__init__(PostgresEngine(target, cipher=cipher))
        self.rules = rules_of(texts, cipher, text_search=text_search)
        self.index, self.queries = PostgresIndex(), PostgresQueries
        self._behind: Place | None = NEWEST
        self._state = state
        prepare_database(target, cipher)
        self._make_partitions(time.time())
        if name is not None:
            self.register(name)

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
        self._parts_changed()
        return deleted

    def _make_partitions(self, now: float) -> None:
        """Make partitions. If a table is in use for long, the next time will do."""
        if partitions.day_of(now) + 1 not in self.engine.days():
            with unless_in_use(), self.engine.transaction() as writer:
                partitions.make(writer, now)
        self._parts_changed()

    def _parts_changed(self) -> None:
        self.engine.parts.changed()
        self.engine.parts.refresh()

    def pruning_ends(self, now: float) -> None:  # noqa: ARG002 - of the other engine
        """See `Retaining.pruning_ends`. Indexes the answers that other versions have judged, once after each start."""
        while self.rules.texts is not Texts.ALL and self.step(self.drop_earlier, 0):
            pass
        if self._behind is not None and self.rules.words_off is not None:
            while self._delete_some_words():
                pass
        while self._behind is not None:
            self._behind = self.index_behind(self._behind)

    def _delete_some_words(self) -> int:
        with self.engine.transaction() as writer:
            return drop_words(writer)

    def rewritten(self) -> bool:
        """See `Forgetting.rewritten`."""
        return self.engine.rewrite((*TABLES, "states"))

    def close(self) -> None:
        """Return leased draws to the queue, close the connections, and unlock the state directory."""
        with ExitStack() as stack:
            if self._state is not None:
                stack.callback(self._state.close)
            stack.callback(self.engine.close)
            self.release()


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
