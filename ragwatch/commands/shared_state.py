"""Reads verdicts, runs and labels from a database that running workers share; see `state_reader` for SQLite."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeGuard

from ragwatch.config.validation import KindConfig
from ragwatch.ports import Query, Store, StoredVerdict
from ragwatch.stores import postgres
from ragwatch.stores.days import DayReader


def is_shared(store: KindConfig) -> bool:
    """Whether a store is a database that other processes may use at the same time."""
    return _is_postgres(store.options)


@contextmanager
def shared_store(store: KindConfig) -> Iterator[Store]:
    """Open such a store beside the running workers.

    Raises:
        ConfigError: The extra is not installed, or an encryption key is missing.
        StoreError: The server cannot be reached, or the database cannot be used.
    """
    options = store.options
    assert _is_postgres(options)  # noqa: S101 - callers ask `is_shared` first
    opened = postgres.connected(options)
    try:
        yield opened
    finally:
        opened.close()


@contextmanager
def shared_days(store: KindConfig) -> Iterator[DayReader]:
    """Open what reads all verdicts of such a store day by day.

    Raises:
        ConfigError: The extra is not installed, or an encryption key is missing.
        StoreError: The server cannot be reached, or the database cannot be used.
    """
    with shared_store(store) as opened:
        from ragwatch.stores.postgres.statements import DAYS  # noqa: PLC0415 - needs the extra, which is checked by now
        from ragwatch.stores.postgres.store import PostgresStore  # noqa: PLC0415 - the same

        assert isinstance(opened, PostgresStore)  # noqa: S101 - for the type checker
        yield DayReader(opened, DAYS)


def walk(store: Store, query: Query) -> Iterator[StoredVerdict]:
    """Yield matching verdicts, newest first, one at a time in memory.

    Raises:
        StoreError: The database cannot be read.
    """
    for entry in store.entries(query):
        place = Query(key=entry.verdict.key, judge=entry.verdict.judge, limit=1, texts=query.texts)
        yield from store.find(place)


def _is_postgres(options: object) -> TypeGuard[postgres.Options]:
    return isinstance(options, postgres.Options)
