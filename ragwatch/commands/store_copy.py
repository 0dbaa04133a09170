"""`ragwatch store copy`: copies a SQLite state into an empty PostgreSQL store."""

from __future__ import annotations

from contextlib import closing

import click

from ragwatch.commands.options.administration import StoreCopyArguments
from ragwatch.config import load
from ragwatch.daemon.state_secret import stored_secret
from ragwatch.errors import ConfigError, StoreError
from ragwatch.stores import postgres
from ragwatch.stores.lock import StateLock
from ragwatch.telemetry import configure_logging


def copy(given: StoreCopyArguments) -> int:
    """Copy a SQLite state into the store of a configuration. Returns 0."""
    configure_logging("error")
    config = load(given.path)
    options = config.store.options
    if not isinstance(options, postgres.Options):
        raise ConfigError(f"store.kind: is {config.store.kind}; name a configuration whose store is postgres")
    if not given.state.is_dir():
        raise StoreError(f"state: {given.state} does not exist; give the state directory of a SQLite store")
    with closing(StateLock(given.state)), closing(postgres.connected(options)) as store:
        from ragwatch.stores.copying import copy_state  # noqa: PLC0415 - needs the extra, which is checked by now
        from ragwatch.stores.postgres.store import PostgresStore  # noqa: PLC0415 - the same

        assert isinstance(store, PostgresStore)  # noqa: S101 - for the type checker
        secret = stored_secret(given.state)
        counts = copy_state(given.state, store)
        if secret is not None:
            store.shared_secret(secret)
    for table, count in counts.items():
        click.echo(f"{count} rows of {table}")
    return 0
