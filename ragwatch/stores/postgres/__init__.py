"""Kind `postgres`: stores everything in a PostgreSQL database that any number of workers share. Needs psycopg."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ragwatch.errors import ConfigError
from ragwatch.ports import Store
from ragwatch.stores.lock import StateLock, worker_name
from ragwatch.stores.postgres.options import Options as Options

if TYPE_CHECKING:
    from ragwatch.stores.postgres.connections import PostgresEngine
    from ragwatch.stores.postgres.postgres_store import PostgresStore

EXTRA = "postgres"


@contextmanager
def _extra() -> Iterator[None]:
    """Say which extra is missing if an import fails."""
    try:
        yield
    except ImportError as error:
        raise ConfigError(
            f"store.kind: needs the extra `{EXTRA}`; run pip install 'ragwatch-exporter[{EXTRA}]'"
        ) from error


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
    return store.require_complete()


@_extra()
def connected(options: Options, state: StateLock | None = None, name: str | None = None) -> PostgresStore:
    """Open the database beside running workers, without a state directory unless its lock is given.

    Without a `name` this process exports no counters.

    Raises:
        ConfigError: The extra is not installed, or an encryption key is missing.
        StoreError: The server cannot be reached, or the database cannot be used.
    """
    from ragwatch.stores.postgres import postgres_store  # noqa: PLC0415 - an extra

    return postgres_store.PostgresStore(options, state=state, name=name)


@_extra()
def without_keys(options: Options) -> PostgresEngine:
    """Open the database, which `connected` has made ready, without keys: texts are as they are stored."""
    from ragwatch.stores.postgres import connections  # noqa: PLC0415 - an extra

    return connections.PostgresEngine(options)


@_extra()
def describe(options: Options) -> str:
    """Connect, and return server and schema as text for people. Changes nothing. Raises as `connected`."""
    from ragwatch.stores.postgres.migrations import describe_database  # noqa: PLC0415 - an extra

    return describe_database(options)


@_extra()
def make_views(options: Options, readers: Collection[str]) -> tuple[str, tuple[str, ...]]:
    """Create the views as `views.make_views`. Returns the name of their schema, and the roles that may read them."""
    from ragwatch.stores.postgres import views  # noqa: PLC0415 - an extra

    return views.views_schema(options.database_schema), views.make_views(options, readers)


@_extra()
def views_text(options: Options) -> str:
    """Return the SQL statements that create the views."""
    from ragwatch.stores.postgres import views  # noqa: PLC0415 - an extra

    return f"{views.schema_statement(options.database_schema)}\n{views.views_script(options.database_schema)}"
