"""Stored: verdicts in the state directory, for commands that only read. The daemon may run meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

from ragwatch.config import Config
from ragwatch.errors import ConfigError, StoreError
from ragwatch.ports import Found, Query
from ragwatch.stores.reader import Reader
from ragwatch.stores.search import found_of, statement

LATEST = 20_000  # verdicts that are looked at


def verdicts(config: Config, query: Query) -> Iterator[Found]:
    """What the query finds, the newest first, through a connection that takes no lock of the daemon's.

    Raises:
        ConfigError: The store is another than sqlite.
        StoreError: There is no state yet, or it cannot be read.
    """
    if config.store.kind != "sqlite":
        raise ConfigError(f"store.kind: stored verdicts are read from sqlite only, not from {config.store.kind}")
    database = config.settings.state / "ragwatch.db"
    if not database.is_file():
        raise StoreError(f"state: {database} is not there; let ragwatch run, and judge some traffic first")
    reader = Reader(database)
    try:
        yield from map(found_of, reader.rows(*statement(query)))
    finally:
        reader.close()
