"""Kind `postgres`: stores everything in a PostgreSQL database that any number of workers share. Needs psycopg."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ragwatch.errors import ConfigError, StoreError
from ragwatch.ports import Store
from ragwatch.stores.lock import StateLock, worker_name
from ragwatch.stores.postgres.options import EXTRA, Options

if TYPE_CHECKING:
    from ragwatch.stores.postgres.connections import PostgresEngine, Target
    from ragwatch.stores.postgres.postgres_store import PostgresStore

__all__ = ["Options", "build", "connected", "describe", "make_views", "views_text", "without_keys"]


def build(options: Options, state: Path) -> Store:
    """Open the database, and lock the state directory, which holds the secret of sampling and the worker's name.

    Raises:
        ConfigError: The extra is not installed, or an encryption key is missing.
        StoreError: The server cannot be reached, the database cannot be used, or the state directory is locked.
    """
    lock = StateLock(state)
    try:
        store = connected(options, lock, worker_name(state))
    except BaseException:
        lock.close()
        raise
    try:
        store.refuse_half_copied()
    except StoreError:
        store.close()
        raise
    return store


def connected(options: Options, state: StateLock | None = None, name: str | None = None) -> PostgresStore:
    """Open the database beside running workers, without a state directory unless its lock is given.

    Args:
        options: Where to connect.
        state: Lock of the state directory.
        name: Name under which this worker counts; None for a process that exports no counters.

    Raises:
        ConfigError: The extra is not installed, or an encryption key is missing.
        StoreError: The server cannot be reached, or the database cannot be used.
    """
    with _extra():
        from ragwatch.stores.postgres import postgres_store  # noqa: PLC0415 - an extra
    cipher, search = options.cipher(), options.text_search
    return postgres_store.PostgresStore(
        _target(options), state=state, name=name, texts=options.texts, cipher=cipher, text_search=search
    )


def without_keys(options: Options) -> PostgresEngine:
    """Open the database, which `connected` has made ready, without keys: texts are as they are stored.

    Raises:
        ConfigError: The extra is not installed.
    """
    with _extra():
        from ragwatch.stores.postgres import connections  # noqa: PLC0415 - an extra
    return connections.PostgresEngine(_target(options))


def describe(options: Options) -> str:
    """Connect, and return server and schema as text for people. Changes nothing.

    Raises:
        ConfigError: The extra is not installed, or an encryption key is missing.
        StoreError: The server cannot be reached, or the database cannot be used.
    """
    with _extra():
        from ragwatch.stores.postgres.migrations import describe_database  # noqa: PLC0415 - an extra
    return describe_database(_target(options), options.cipher())


def make_views(options: Options, readers: Collection[str]) -> tuple[str, tuple[str, ...]]:
    """Create the views of the tables, which exist. Returns the name of their schema, and the roles that may read them.

    Raises:
        ConfigError: The extra is not installed.
        StoreError: The server cannot be reached, a role does not exist, or a view is in use.
    """
    with _extra():
        from ragwatch.stores.postgres import views  # noqa: PLC0415 - an extra
    return views.views_schema(options.database_schema), views.make_views(_target(options), readers)


def views_text(options: Options) -> str:
    """Return the SQL statements that create the views.

    Raises:
        ConfigError: The extra is not installed.
    """
    with _extra():
        from ragwatch.stores.postgres import views  # noqa: PLC0415 - an extra
    return f"{views.schema_statement(options.database_schema)}\n{views.views_script(options.database_schema)}"


def _target(options: Options) -> Target:
    from ragwatch.stores.postgres.connections import Target  # noqa: PLC0415 - an extra

    return Target(options.url.get_secret_value(), options.database_schema, options.connections, options.timeout_seconds)


@contextmanager
def _extra() -> Iterator[None]:
    """Say which extra is missing if an import fails."""
    try:
        yield
    except ImportError as error:
        raise ConfigError(
            f"store.kind: needs the extra `{EXTRA}`; run pip install 'ragwatch-exporter[{EXTRA}]'"
        ) from error
