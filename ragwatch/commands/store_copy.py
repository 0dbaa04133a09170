"""`ragwatch store copy`: copies a SQLite state into an empty PostgreSQL store."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click

from ragwatch.config import load
from ragwatch.daemon.state_secret import stored_secret
from ragwatch.errors import ConfigError, StoreError
from ragwatch.stores import postgres
from ragwatch.stores.lock import StateLock
from ragwatch.telemetry import configure_logging


def copy(state: Path, path: Path) -> int:
    """Copy a SQLite state into the store of a configuration. Returns 0."""
    configure_logging("error")
    config = load(path)
    options = config.store.options
    if not isinstance(options, postgres.Options):
        raise ConfigError(f"store.kind: is {config.store.kind}; name a configuration whose store is postgres")
    if not state.is_dir():
        raise StoreError(f"state: {state} does not exist; give the state directory of a SQLite store")
    with closing(StateLock(state)), closing(postgres.connected(options)) as store:
        from ragwatch.stores.copying import copy_state  # noqa: PLC0415 - needs the extra, which is checked by now
        from ragwatch.stores.postgres.store import PostgresStore  # noqa: PLC0415 - the same

        assert isinstance(store, PostgresStore)  # noqa: S101 - for the type checker
        secret = stored_secret(state)
        counts = copy_state(state, store)
        if secret is not None:
            store.shared_secret(secret)
    for table, count in counts.items():
        click.echo(f"{count} rows of {table}")
    return 0
