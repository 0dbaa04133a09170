"""Kind `postgres`: stores everything in a PostgreSQL database that any number of workers share. Needs psycopg."""

from __future__ import annotations

from pathlib import Path

from ragwatch.errors import ConfigError
from ragwatch.ports import Store
from ragwatch.stores.lock import StateLock
from ragwatch.stores.postgres.options import EXTRA, Options

__all__ = ["Options", "build", "connected"]


def build(options: Options, state: Path) -> Store:
    """Open the database, and lock the state directory, which holds the secret of sampling.

    Raises:
        ConfigError: The extra is not installed, or an encryption key is missing.
        StoreError: The server cannot be reached, the database cannot be used, or the state directory is locked.
    """
    lock = StateLock(state)
    try:
        return connected(options, lock)
    except BaseException:
        lock.close()
        raise


def connected(options: Options, state: StateLock | None = None) -> Store:
    """Open the database beside running workers, without a state directory unless its lock is given.

    Raises:
        ConfigError: The extra is not installed, or an encryption key is missing.
        StoreError: The server cannot be reached, or the database cannot be used.
    """
    try:
        from ragwatch.stores.postgres.connections import Target  # noqa: PLC0415 - an extra
        from ragwatch.stores.postgres.store import PostgresStore  # noqa: PLC0415 - the same
    except ImportError as error:
        raise ConfigError(
            f"store.kind: needs the extra `{EXTRA}`; run pip install 'ragwatch-exporter[{EXTRA}]'"
        ) from error
    target = Target(options.address(), options.database_schema, options.connections, options.timeout_seconds)
    return PostgresStore(target, state=state, texts=options.texts, cipher=options.cipher())
