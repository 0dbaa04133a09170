"""`ragwatch store copy`: copies a SQLite state into an empty PostgreSQL store, or back."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import click

from ragwatch.commands.options.serving import StoreCopyArguments
from ragwatch.config import load
from ragwatch.daemon.state_secret import stored_secret, write_secret
from ragwatch.errors import ConfigError, StoreError
from ragwatch.stores import postgres
from ragwatch.stores.copying import copy_state
from ragwatch.stores.lock import StateLock
from ragwatch.stores.sqlite.reader import ReadConnection
from ragwatch.stores.sqlite.sqlite_engine import SqliteEngine
from ragwatch.telemetry import configure_logging


def copy(given: StoreCopyArguments) -> int:
    """Copy a SQLite state into the store of a configuration, or that store into a new state. Returns 0."""
    configure_logging("error")
    back = given.source.is_file()
    path, state = (given.source, given.target) if back else (given.target, given.source)
    config = load(path)
    options = config.store.options
    if not isinstance(options, postgres.Options):
        raise ConfigError(f"store.kind: is {config.store.kind}; name a configuration whose store is postgres")
    counts = _to_state(options, state) if back else _from_state(state, options)
    for table, count in counts.items():
        click.echo(f"{count} rows of {table}")
    return 0


def _to_state(options: postgres.Options, state: Path) -> dict[str, int]:
    """Copy the database of a server to a new state directory."""
    with (
        closing(postgres.connected(options)) as store,
        closing(postgres.without_keys(options)) as source,
        closing(SqliteEngine(state)) as target,
    ):
        counts = copy_state(source, target)
        write_secret(state, store.shared_secret(stored_secret(state) or secrets.token_bytes(32)))
    return counts


def _from_state(state: Path, options: postgres.Options) -> dict[str, int]:
    """Copy the database of a state directory to a server."""
    with _read(state) as source, closing(postgres.connected(options)) as store:
        with closing(postgres.without_keys(options)) as target:
            counts = copy_state(source, target)
        if (secret := stored_secret(state)) is not None:
            store.shared_secret(secret)
    return counts


@contextmanager
def _read(state: Path) -> Iterator[ReadConnection]:
    """Open the database of a state directory, and lock it."""
    if not state.is_dir():
        raise StoreError(f"state: {state} does not exist; give the state directory of a SQLite store")
    database = state / "ragwatch.db"
    with closing(StateLock(state)):
        if not database.is_file():
            raise StoreError(f"state: {state} contains no ragwatch.db; give the state directory of a SQLite store")
        with closing(ReadConnection(database, tolerant=True)) as connection:
            yield connection
