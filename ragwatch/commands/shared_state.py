"""Opens a database that running workers share; see `state_reader` for SQLite."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeGuard

from ragwatch.config.validation import KindConfig
from ragwatch.stores import postgres

if TYPE_CHECKING:
    from ragwatch.stores.postgres.postgres_store import PostgresStore


def is_shared(store: KindConfig) -> bool:
    """Whether a store is a database that other processes may use at the same time."""
    return _is_postgres(store.options)


@contextmanager
def shared_store(store: KindConfig) -> Iterator[PostgresStore]:
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


def _is_postgres(options: object) -> TypeGuard[postgres.Options]:
    return isinstance(options, postgres.Options)
