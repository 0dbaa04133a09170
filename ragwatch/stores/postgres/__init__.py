"""Kind `postgres`: stores everything in a PostgreSQL database that any number of workers share. Needs psycopg."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ragwatch.errors import extra_for
from ragwatch.ports import Store
from ragwatch.stores.lock import StateLock, worker_name
from ragwatch.stores.postgres.options import Options as Options

if TYPE_CHECKING:
    from ragwatch.stores.postgres.postgres_database import Database

EXTRA = "postgres"


def build(options: Options, state: Path) -> Store:
    """Open the database, and lock the state directory, which holds the secret of sampling and the worker's name.

    Raises:
        ConfigError: The extra is not installed, or an encryption key is missing.
        StoreError: The server cannot be reached, the database cannot be used, or the state directory is locked.
    """
    lock = StateLock(state)
    try:
        store = database(options).connected(lock, worker_name(state))
    except BaseException:
        lock.close()
        raise
    return store.require_complete()


def database(options: Options) -> Database:
    """The database of a store, not yet connected; a ConfigError if the extra is not installed."""
    with extra_for("store.kind", EXTRA):
        from ragwatch.stores.postgres.postgres_database import Database  # noqa: PLC0415 - an extra
    return Database(options)
