"""Reads the state of a configuration without its lock, so that the daemon may be running.

A SQLite file is read on a connection that reads only; a PostgreSQL database, which workers share, beside them.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol, TypeGuard

from ragwatch.config import Config
from ragwatch.config.validation import KindConfig
from ragwatch.core.causes.traits import Traits
from ragwatch.core.labels.label import Label
from ragwatch.core.tally import Tallies, Tally
from ragwatch.errors import ConfigError, StoreError
from ragwatch.ports import AnswerQuery, Query, RejudgeReader, SavedState, ScoreRow, Store, StoredRun, StoredVerdict
from ragwatch.stores import postgres
from ragwatch.stores.days import DayReader
from ragwatch.stores.decoding import label_of, run_of, verdict_of
from ragwatch.stores.encryption import check_keys
from ragwatch.stores.rows import SCORE_COLUMNS, score_row, tallies_of, unpack
from ragwatch.stores.sqlite.feedback import SCORES_SINCE
from ragwatch.stores.sqlite.notes import LABELS, RUNS
from ragwatch.stores.sqlite.reader import DAYS, ReadConnection
from ragwatch.stores.sqlite.rejudging import RejudgeConnection
from ragwatch.stores.sqlite.retention import LIVE, PRUNED_UNTIL
from ragwatch.stores.sqlite.schema import VERSION
from ragwatch.stores.sqlite.search import answers_statement, statement
from ragwatch.stores.sqlite.store import Options
from ragwatch.stores.traits import answer_of

MAX_VERDICTS = 20_000  # read by one command
_NEVER = 1e12  # seconds since the epoch
_WINDOW = (
    f"SELECT {SCORE_COLUMNS} FROM verdicts"  # noqa: S608 - constants only
    f" WHERE seq > ? AND at >= ? AND {LIVE} ORDER BY seq LIMIT ?"
)


class StateReader(RejudgeReader, Protocol):
    """The part of `ports.Store` that commands read; each method as there."""

    def find(self, query: Query) -> Sequence[StoredVerdict]:
        """See `ports.Store.find`."""
        ...

    def answers(self, query: AnswerQuery) -> list[tuple[ScoreRow, Traits | None]]:
        """See `ports.Store.answers`."""
        ...

    def window(self, after: int, since: float, limit: int) -> list[ScoreRow]:
        """See `ports.Store.window`."""
        ...

    def recall(self, name: str) -> SavedState | None:
        """See `ports.Store.recall`."""
        ...

    def runs(self, kind: str, name: str, limit: int) -> list[StoredRun]:
        """See `ports.Store.runs`."""
        ...

    def labels(self, since: float) -> list[Label]:
        """See `ports.Store.labels`."""
        ...

    def last_events(self, since: float) -> dict[str, float]:
        """See `ports.Store.last_events`."""
        ...

    def pruned_until(self) -> float:
        """See `ports.Store.pruned_until`."""
        ...

    def tallies(self) -> Tallies:
        """See `ports.Store.tallies`."""
        ...

    def cursors(self, source: str) -> dict[str, str]:
        """See `ports.Store.cursors`."""
        ...


class SqliteState(RejudgeConnection):
    """Implements `StateReader` on a connection that reads only."""

    def find(self, query: Query) -> list[StoredVerdict]:
        """See `StateReader`."""
        return list(map(verdict_of, self._connection.rows(*statement(query))))

    def answers(self, query: AnswerQuery) -> list[tuple[ScoreRow, Traits | None]]:
        """See `StateReader`."""
        return list(map(answer_of, self._connection.rows(*answers_statement(query))))

    def window(self, after: int, since: float, limit: int) -> list[ScoreRow]:
        """See `StateReader`."""
        return list(map(score_row, self._connection.rows(_WINDOW, (after, since, limit))))

    def recall(self, name: str) -> SavedState | None:
        """See `StateReader`."""
        rows = self._connection.rows("SELECT body FROM states WHERE name = ?", (name,))
        return unpack(rows[0][0]) if rows else None

    def runs(self, kind: str, name: str, limit: int) -> list[StoredRun]:
        """See `StateReader`; none where the last one is damaged."""
        try:
            return list(map(run_of, self._connection.rows(RUNS, (kind, name, None, None, limit))))
        except StoreError:
            return []

    def labels(self, since: float) -> list[Label]:
        """See `StateReader`."""
        return list(map(label_of, self._connection.rows(LABELS, (since,))))

    def last_events(self, since: float) -> dict[str, float]:
        """See `StateReader`."""
        return dict(self._connection.rows("SELECT kind, MAX(at) FROM events WHERE at >= ? GROUP BY kind", (since,)))

    def pruned_until(self) -> float:
        """See `StateReader`."""
        rows = self._connection.rows(PRUNED_UNTIL)
        return float(rows[0][0]) if rows else -math.inf

    def tallies(self) -> Tallies:
        """See `StateReader`."""
        return tallies_of(self._connection.rows("SELECT name, labels, label_names, value FROM tallies"))

    def cursors(self, source: str) -> dict[str, str]:
        """See `StateReader`."""
        return dict(self._connection.rows("SELECT stream, cursor FROM cursors WHERE source = ?", (source,)))


def is_shared(store: KindConfig) -> bool:
    """Whether a store is a database that other processes may use at the same time."""
    return _is_postgres(store.options)


def _is_postgres(options: object) -> TypeGuard[postgres.Options]:
    return isinstance(options, postgres.Options)


@contextmanager
def shared_store(store: KindConfig) -> Iterator[Store]:
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


@contextmanager
def state_reader(config: Config) -> Iterator[StateReader]:
    """Open the state of a configuration. So do all functions below, which raise the same.

    Raises:
        ConfigError: The kind of store cannot be read, or a key of encrypted texts is missing or wrong.
        StoreError: There is no state yet, or it cannot be read.
    """
    if is_shared(config.store):
        with shared_store(config.store) as store:
            yield store
        return
    with _connected(config) as connection:
        yield SqliteState(connection)


@contextmanager
def _connected(config: Config) -> Iterator[ReadConnection]:
    connection = _connect(config)
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def day_reader(config: Config) -> Iterator[DayReader]:
    """Open what reads all verdicts day by day."""
    if not is_shared(config.store):
        with _connected(config) as connection:
            yield DayReader(connection, DAYS)
        return
    with shared_store(config.store) as opened:
        from ragwatch.stores.postgres import statements  # noqa: PLC0415 - needs the extra, which is checked by now
        from ragwatch.stores.postgres.store import PostgresStore  # noqa: PLC0415 - the same

        assert isinstance(opened, PostgresStore)  # noqa: S101 - for the type checker
        yield DayReader(opened, statements.DAYS)


def verdicts(config: Config, query: Query) -> Iterable[StoredVerdict]:
    """Verdicts that match a query, newest first."""
    with state_reader(config) as reader:
        return reader.find(query)


def walk_verdicts(config: Config, query: Query) -> Generator[StoredVerdict, None, None]:
    """Like `verdicts`, but one at a time, for more than fit into memory."""
    if not is_shared(config.store):
        with _connected(config) as connection:
            yield from map(verdict_of, connection.walk(*statement(query)))
        return
    with shared_store(config.store) as store:
        for entry in store.entries(query):
            place = Query(key=entry.verdict.key, judge=entry.verdict.judge, limit=1, texts=query.texts)
            yield from store.find(place)


def labels_by_key(config: Config) -> dict[str, list[Label]]:
    """Labels by people, by the key of the sample."""
    by_key: dict[str, list[Label]] = {}
    with state_reader(config) as reader:
        for label in reader.labels(0.0):
            by_key.setdefault(label.key, []).append(label)
    return by_key


def user_scores(config: Config, since: float) -> dict[str, float]:
    """The last score by users, by the key of the sample, of the answers since an instant."""
    if is_shared(config.store):
        with shared_store(config.store) as store:
            return {row.key: score for row, score in store.rated(since, _NEVER)}
    with _connected(config) as connection:
        return {str(key): float(score) for key, score in connection.rows(SCORES_SINCE, (since,))}


def last_index_event(config: Config) -> str | None:
    """Date (UTC, YYYY-MM-DD) of the last event of kind `index`; None where none is recorded."""
    with state_reader(config) as reader:
        at = reader.last_events(0.0).get("index")
    return None if at is None else f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}"


def stored_tallies(config: Config, tally: Tally) -> dict[tuple[str, ...], float]:
    """Values of a counter by its labels; empty if there is no state yet, or it cannot be read."""
    try:
        with state_reader(config) as reader:
            return {labels: value for (name, labels), value in reader.tallies().items() if name is tally}
    except (ConfigError, StoreError, sqlite3.Error):
        return {}


def has_started(config: Config, source: str) -> bool:
    """Whether a daemon has read this source before, so that `start` has no effect. False if the state is unreadable."""
    try:
        with state_reader(config) as reader:
            return bool(reader.cursors(source))
    except (ConfigError, StoreError, sqlite3.Error):
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
