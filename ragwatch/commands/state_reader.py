"""Reads the state of a configuration without its lock, so that the daemon may be running.

A SQLite file is read on a connection that reads only; a PostgreSQL database, which workers share, beside them.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

import orjson

from ragwatch.config import Config
from ragwatch.config.validation import KindConfig
from ragwatch.core.labels.label import Label
from ragwatch.core.tally import Tally
from ragwatch.errors import ConfigError, StoreError
from ragwatch.ports import Query, StoredVerdict
from ragwatch.stores import postgres
from ragwatch.stores.days import DayReader
from ragwatch.stores.encryption import check_keys
from ragwatch.stores.sqlite.reader import ReadConnection
from ragwatch.stores.sqlite.schema import VERSION
from ragwatch.stores.sqlite.store import Options, SqliteReader
from ragwatch.stores.store_base import StoreBase

if TYPE_CHECKING:
    from ragwatch.stores.postgres.postgres_store import PostgresStore

MAX_VERDICTS = 20_000  # read by one command
_USER_SCORES = "SELECT key, score FROM feedback WHERE answered >= :since AND score IS NOT NULL"
_COUNTER = "SELECT labels, SUM(value) FROM tallies WHERE name = :name GROUP BY labels"


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


@contextmanager
def state_reader(config: Config) -> Iterator[StoreBase]:
    """Open what reads the state beside the daemon, of any kind of store.

    Raises:
        ConfigError: The kind of store cannot be read.
        StoreError: There is no state yet, or it cannot be read.
    """
    if is_shared(config.store):
        with shared_store(config.store) as store:
            yield store
        return
    connection = _connect(config)
    try:
        yield SqliteReader(connection)
    finally:
        connection.close()


def verdicts(config: Config, query: Query) -> Generator[StoredVerdict, None, None]:
    """Verdicts that match a query, newest first, one at a time in memory.

    Raises:
        ConfigError: The kind of store cannot be read.
        StoreError: There is no state yet, or it cannot be read.
    """
    with state_reader(config) as store:
        yield from store.verdicts(query)


@contextmanager
def day_reader(config: Config) -> Iterator[DayReader]:
    """Open what reads all verdicts day by day.

    Raises:
        ConfigError: The kind of store cannot be read.
        StoreError: There is no state yet, or it cannot be read.
    """
    with state_reader(config) as store:
        yield DayReader(store.engine)


def labels_by_key(config: Config) -> dict[str, list[Label]]:
    """Labels by people, by the key of the sample.

    Raises:
        ConfigError: The kind of store cannot be read.
        StoreError: There is no state yet, or it cannot be read.
    """
    by_key: dict[str, list[Label]] = {}
    with state_reader(config) as store:
        for label in store.labels(0.0):
            by_key.setdefault(label.key, []).append(label)
    return by_key


def user_scores(config: Config, since: float) -> dict[str, float]:
    """The last score by users, by the key of the sample, of the answers since an instant.

    Raises:
        ConfigError: The kind of store cannot be read.
        StoreError: There is no state yet, or it cannot be read.
    """
    with state_reader(config) as store:
        stored = store.engine.rows(_USER_SCORES, {"since": since})
    return {str(key): float(score) for key, score in stored}


def last_index_event(config: Config) -> str | None:
    """Date (UTC, YYYY-MM-DD) of the last event of kind `index`; None where none is recorded.

    Raises:
        ConfigError: The kind of store cannot be read.
        StoreError: There is no state yet, or it cannot be read.
    """
    with state_reader(config) as store:
        at = store.last_events(0.0).get("index")
    return None if at is None else f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}"


def stored_tallies(config: Config, tally: Tally) -> dict[tuple[str, ...], float]:
    """Values of a counter by its labels; empty if there is no state yet, or it cannot be read."""
    try:
        with state_reader(config) as store:
            rows = store.engine.rows(_COUNTER, {"name": str(tally)})
    except (ConfigError, StoreError):
        return {}
    return {tuple(orjson.loads(labels)): value for labels, value in rows}


def has_started(config: Config, source: str) -> bool:
    """Whether a daemon has read this source before, so that `start` has no effect. False if the state is unreadable."""
    try:
        with state_reader(config) as store:
            return bool(store.cursors(source))
    except (ConfigError, StoreError):
        return False


def retention_warning(until: float) -> str:
    """Warning that answers before an instant are left out, because retention has deleted only good ones of them."""
    at = f"{datetime.fromtimestamp(until, UTC):%Y-%m-%d %H:%M} UTC"
    return f"only answers since {at}: before that, retention has deleted good answers, so the mean would be too low"


def _connect(config: Config) -> ReadConnection:
    if config.store.kind != "sqlite":
        raise ConfigError(f"store.kind: this can be read from sqlite only, not from {config.store.kind}")
    database = config.settings.state / "ragwatch.db"
    if not database.is_file():
        raise StoreError(f"state: {database} does not exist; run ragwatch until it has judged some samples")
    options = config.store.options
    cipher = options.cipher() if isinstance(options, Options) else None
    connection = ReadConnection(database, cipher=cipher)
    try:
        version = int(connection.rows("PRAGMA user_version")[0][0])
        _refuse_empty(version, database)
        refuse_newer(version)
        check_keys(connection.rows, cipher)
    except (ConfigError, StoreError):
        connection.close()
        raise
    return connection


def _refuse_empty(version: int, database: Path) -> None:
    """Raise an error if a database has no table: the disk was full, or ragwatch was killed, when it was made."""
    if version == 0:
        raise StoreError(f"state: {database} holds nothing yet; run ragwatch until it has judged some samples")


def refuse_newer(version: int) -> None:
    """Raise an error if a database has a schema of a newer ragwatch: what it holds may mean something else.

    Raises:
        StoreError: It has.
    """
    if version > VERSION:
        raise StoreError(
            f"state: written by a newer ragwatch (schema {version}, this one knows {VERSION}); "
            "run that version, or point `state` to an empty directory"
        )
