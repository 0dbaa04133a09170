"""Reads the state of a configuration without its lock, so that the daemon may be running.

A SQLite file is read on a connection that reads only; a PostgreSQL database, which workers share, beside them.
"""

from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import orjson

from ragwatch import stores
from ragwatch.config import Config
from ragwatch.config.validation import KindConfig
from ragwatch.errors import ConfigError, StoreError
from ragwatch.ports import Query, ScoreRow, Store, StoredVerdict
from ragwatch.statistics.labels.label import Label
from ragwatch.statistics.tally import Tally
from ragwatch.stores import postgres
from ragwatch.stores.encryption import check_keys
from ragwatch.stores.sqlite.opening import VERSION
from ragwatch.stores.sqlite.sqlite_engine import ReadConnection
from ragwatch.stores.sqlite.store import Options, SqliteReader
from ragwatch.stores.store_base import StoreBase
from ragwatch.terminal.output import moment

MAX_VERDICTS = 20_000  # read by one command
_PAGE_ROWS = 5000
_USER_SCORES = "SELECT key, score FROM feedback WHERE answered >= :since AND score IS NOT NULL"
_COUNTER = "SELECT labels, SUM(value) FROM tallies WHERE name = :name GROUP BY labels"


def is_shared(store: KindConfig) -> bool:
    """Whether a store is a database that other processes may use at the same time."""
    return isinstance(store.options, postgres.Options)


@contextmanager
def writable_store(store: KindConfig, state: Path) -> Iterator[Store]:
    """Open a store to write to it: beside the workers that share it, else with the lock of the state directory."""
    if isinstance(store.options, postgres.Options):
        opened: Store = postgres.database(store.options).connected()
    else:
        opened = stores.KINDS[store.kind].build(store.options, state)
    with closing(opened):
        yield opened


@contextmanager
def state_reader(config: Config) -> Iterator[StoreBase]:
    """Open what reads the state beside the daemon.

    `ConfigError` if the kind of store cannot be read, `StoreError` if there is no state yet, or it cannot be read.
    """
    options = config.store.options
    if isinstance(options, postgres.Options):
        with closing(postgres.database(options).connected()) as store:
            yield store
        return
    if config.store.kind != "sqlite":
        raise ConfigError(f"store.kind: this can be read from sqlite only, not from {config.store.kind}")
    database = config.settings.state / "ragwatch.db"
    if not database.is_file():
        raise StoreError(f"state: {database} does not exist; run ragwatch until it has judged some samples")
    cipher = options.cipher() if isinstance(options, Options) else None
    with closing(ReadConnection(database, cipher=cipher)) as connection:
        version = int(connection.rows("PRAGMA user_version")[0][0])
        if version == 0:  # the disk was full, or ragwatch was killed, when it was made
            raise StoreError(f"state: {database} holds nothing yet; run ragwatch until it has judged some samples")
        refuse_newer(version)
        check_keys(connection.rows, cipher)
        yield SqliteReader(connection)


def verdicts(config: Config, query: Query) -> Generator[StoredVerdict, None, None]:
    """Verdicts that match a query, newest first, one at a time in memory. Raises what `state_reader` does."""
    with state_reader(config) as store:
        yield from store.verdicts(query)


def labels_by_key(config: Config) -> dict[str, list[Label]]:
    """Labels by people, by the key of the sample."""
    by_key: dict[str, list[Label]] = {}
    with state_reader(config) as store:
        for label in store.labels(0.0):
            by_key.setdefault(label.key, []).append(label)
    return by_key


def user_scores(config: Config, since: float) -> dict[str, float]:
    """The last score by users, by the key of the sample, of the answers since an instant."""
    with state_reader(config) as store:
        stored = store.engine.rows(_USER_SCORES, {"since": since})
    return {str(key): float(score) for key, score in stored}


def last_index_event(config: Config) -> str | None:
    """Date (UTC, YYYY-MM-DD) of the last event of kind `index`; None where none is recorded."""
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


def score_rows(store: StoreBase) -> list[ScoreRow]:
    """Return the rows of all scores, in the order in which they were stored."""
    rows: list[ScoreRow] = []
    while page := store.window(rows[-1].seq if rows else 0, 0.0, _PAGE_ROWS):
        rows += page
    return rows


def retention_warning(until: float) -> str:
    """Warning that answers before an instant are left out, because retention has deleted only good ones of them."""
    return (
        f"only answers since {moment(until)}: before that, retention has deleted good answers, so the mean would be "
        "too low"
    )


def refuse_newer(version: int) -> None:
    """Refuse the schema of a newer ragwatch with `StoreError`: what it holds may mean something else."""
    if version > VERSION:
        raise StoreError(
            f"state: written by a newer ragwatch (schema {version}, this one knows {VERSION}); "
            "run that version, or point `state` to an empty directory"
        )
