"""Stored: verdicts in the state directory, for commands that only read. The daemon may run meanwhile."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime

from ragwatch.config import Config
from ragwatch.errors import ConfigError, StoreError
from ragwatch.ports import Query, StoredVerdict
from ragwatch.stores.sqlite.reader import ReadConnection
from ragwatch.stores.sqlite.retention import PRUNED_UNTIL
from ragwatch.stores.sqlite.search import statement, verdict_of

LATEST = 20_000  # verdicts that are looked at


def verdicts(config: Config, query: Query) -> Iterator[StoredVerdict]:
    """What the query finds, the newest first, through a connection that takes no lock of the daemon's.

    Raises:
        ConfigError: The store is another than sqlite.
        StoreError: There is no state yet, or it cannot be read.
    """
    reader = _opened(config)
    try:
        yield from map(verdict_of, reader.rows(*statement(query)))
    finally:
        reader.close()


def picked_until(config: Config) -> float:
    """See `ports.Store.picked_until`.

    Raises:
        ConfigError: The store is another than sqlite.
        StoreError: There is no state yet, or it cannot be read.
    """
    reader = _opened(config)
    try:
        found = reader.rows(PRUNED_UNTIL)
    finally:
        reader.close()
    return float(found[0][0]) if found else -math.inf


def has_started(config: Config, source: str) -> bool:
    """Whether a daemon has read this source before, so that its `start` is over. False where that cannot be asked."""
    try:
        reader = _opened(config)
        try:
            return bool(reader.rows("SELECT 1 FROM cursors WHERE source = ? LIMIT 1", (source,)))
        finally:
            reader.close()
    except (ConfigError, StoreError, sqlite3.Error):
        return False


def picked_line(until: float) -> str:
    """What people are told where answers of before an instant are left out, because retention has picked from them."""
    at = f"{datetime.fromtimestamp(until, UTC):%Y-%m-%d %H:%M} UTC"
    return f"only answers since {at}: retention has taken good ones of before, and what is left would look too bad"


def _opened(config: Config) -> ReadConnection:
    if config.store.kind != "sqlite":
        raise ConfigError(f"store.kind: stored verdicts are read from sqlite only, not from {config.store.kind}")
    database = config.settings.state / "ragwatch.db"
    if not database.is_file():
        raise StoreError(f"state: {database} is not there; let ragwatch run, and judge some traffic first")
    return ReadConnection(database)
