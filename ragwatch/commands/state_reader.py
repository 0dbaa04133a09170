"""Reads verdicts, runs and cursors from the state without its lock, so that the daemon may be running."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import orjson

from ragwatch.commands.shared_state import is_shared, shared_days, shared_store, walk
from ragwatch.commands.stored_scores import ScoreConnection, ScoreReader
from ragwatch.config import Config
from ragwatch.core.causes.traits import Traits
from ragwatch.core.labels.label import Label, from_record
from ragwatch.core.tally import Tally
from ragwatch.errors import ConfigError, StoreError
from ragwatch.ports import AnswerQuery, Query, RejudgeReader, ScoreRow, StoredVerdict
from ragwatch.stores.days import DayReader
from ragwatch.stores.decoding import verdict_of
from ragwatch.stores.encryption import check_keys
from ragwatch.stores.rows import unpack
from ragwatch.stores.sqlite.feedback import SCORES_SINCE
from ragwatch.stores.sqlite.notes import LABELS, RUNS
from ragwatch.stores.sqlite.reader import DAYS, ReadConnection
from ragwatch.stores.sqlite.rejudging import RejudgeConnection
from ragwatch.stores.sqlite.retention import PRUNED_UNTIL
from ragwatch.stores.sqlite.schema import VERSION
from ragwatch.stores.sqlite.search import answers_statement, statement
from ragwatch.stores.sqlite.store import Options
from ragwatch.stores.traits import answer_of

MAX_VERDICTS = 20_000  # read by one command
_NEVER = 1e12  # seconds since the epoch


def verdicts(config: Config, query: Query) -> Iterator[StoredVerdict]:
    """Verdicts that match a query, newest first.

    Raises:
        ConfigError: The kind of store cannot be read.
        StoreError: There is no state yet, or it cannot be read.
    """
    if is_shared(config.store):
        with shared_store(config.store) as store:
            yield from store.find(query)
        return
    connection = _connect(config)
    try:
        yield from map(verdict_of, connection.rows(*statement(query)))
    finally:
        connection.close()


def walk_verdicts(config: Config, query: Query) -> Generator[StoredVerdict, None, None]:
    """Like `verdicts`, but one at a time, for more than fit into memory.

    Raises:
        ConfigError: The kind of store cannot be read.
        StoreError: There is no state yet, or it cannot be read.
    """
    if is_shared(config.store):
        with shared_store(config.store) as store:
            yield from walk(store, query)
        return
    connection = _connect(config)
    try:
        yield from map(verdict_of, connection.walk(*statement(query)))
    finally:
        connection.close()


@contextmanager
def answer_pages(
    config: Config,
) -> Iterator[Callable[[AnswerQuery], list[tuple[ScoreRow, Traits | None]]]]:
    """Reads pages of judged answers: see `ports.Store.answers`.

    Raises:
        ConfigError: The kind of store cannot be read.
        StoreError: There is no state yet, or it cannot be read.
    """
    if is_shared(config.store):
        with shared_store(config.store) as store:
            yield store.answers
        return
    connection = _connect(config)
    try:
        yield lambda query: list(map(answer_of, connection.rows(*answers_statement(query))))
    finally:
        connection.close()


@contextmanager
def rejudge_reader(config: Config) -> Iterator[RejudgeReader]:
    """Open what finds answers that another judge may read.

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
        yield RejudgeConnection(connection)
    finally:
        connection.close()


@contextmanager
def score_reader(config: Config) -> Iterator[ScoreReader]:
    """Open what reads scores and saved states.

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
        yield ScoreConnection(connection)
    finally:
        connection.close()


@contextmanager
def day_reader(config: Config) -> Iterator[DayReader]:
    """Open what reads all verdicts day by day.

    Raises:
        ConfigError: The kind of store cannot be read.
        StoreError: There is no state yet, or it cannot be read.
    """
    if is_shared(config.store):
        with shared_days(config.store) as reader:
            yield reader
        return
    connection = _connect(config)
    try:
        yield DayReader(connection, DAYS)
    finally:
        connection.close()


def pruned_until(config: Config) -> float:
    """See `ports.Store.pruned_until`.

    Raises:
        ConfigError: The kind of store cannot be read.
        StoreError: There is no state yet, or it cannot be read.
    """
    if is_shared(config.store):
        with shared_store(config.store) as store:
            return store.pruned_until()
    connection = _connect(config)
    try:
        rows = connection.rows(PRUNED_UNTIL)
    finally:
        connection.close()
    return float(rows[0][0]) if rows else -math.inf


def labels_by_key(config: Config) -> dict[str, list[Label]]:
    """Labels by people, by the key of the sample.

    Raises:
        ConfigError: The kind of store cannot be read.
        StoreError: There is no state yet, or it cannot be read.
    """
    by_key: dict[str, list[Label]] = {}
    for label in _labels(config):
        by_key.setdefault(label.key, []).append(label)
    return by_key


def _labels(config: Config) -> list[Label]:
    if is_shared(config.store):
        with shared_store(config.store) as store:
            return store.labels(0.0)
    connection = _connect(config)
    try:
        return [from_record(unpack(body)) for body, _ in connection.rows(LABELS, (0.0,))]
    finally:
        connection.close()


def user_scores(config: Config, since: float) -> dict[str, float]:
    """The last score by users, by the key of the sample, of the answers since an instant.

    Raises:
        ConfigError: The kind of store cannot be read.
        StoreError: There is no state yet, or it cannot be read.
    """
    if is_shared(config.store):
        with shared_store(config.store) as store:
            return {row.key: score for row, score in store.rated(since, _NEVER)}
    connection = _connect(config)
    try:
        return {str(key): float(score) for key, score in connection.rows(SCORES_SINCE, (since,))}
    finally:
        connection.close()


def last_index_event(config: Config) -> str | None:
    """Date (UTC, YYYY-MM-DD) of the last event of kind `index`; None where none is recorded.

    Raises:
        ConfigError: The kind of store cannot be read.
        StoreError: There is no state yet, or it cannot be read.
    """
    at: float | None
    if is_shared(config.store):
        with shared_store(config.store) as store:
            at = store.last_events(0.0).get("index")
    else:
        connection = _connect(config)
        try:
            ((at,),) = connection.rows("SELECT MAX(at) FROM events WHERE kind = 'index'")
        finally:
            connection.close()
    return None if at is None else f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}"


def last_run(config: Config, kind: str, name: str) -> Mapping[str, object] | None:
    """Body of the last stored run of a kind (`canary`, `anchor`) and name; None if there is none, or it is damaged.

    Raises:
        ConfigError: The kind of store cannot be read.
        StoreError: There is no state yet, or it cannot be read.
    """
    if is_shared(config.store):
        with shared_store(config.store) as store:
            runs = store.runs(kind, name, 1)
        return runs[0].body if runs else None
    connection = _connect(config)
    try:
        rows = connection.rows(RUNS, (kind, name, None, None, 1))
    finally:
        connection.close()
    try:
        return unpack(rows[0][-1]) if rows else None
    except StoreError:
        return None


def stored_tallies(config: Config, tally: Tally) -> dict[tuple[str, ...], float]:
    """Values of a counter by its labels; empty if there is no state yet, or it cannot be read."""
    try:
        if is_shared(config.store):
            with shared_store(config.store) as store:
                return {labels: value for (name, labels), value in store.tallies().items() if name is tally}
        connection = _connect(config)
        try:
            rows = connection.rows("SELECT labels, value FROM tallies WHERE name = ?", (tally,))
        finally:
            connection.close()
    except (ConfigError, StoreError, sqlite3.Error):
        return {}
    return {tuple(orjson.loads(labels)): value for labels, value in rows}


def has_started(config: Config, source: str) -> bool:
    """Whether a daemon has read this source before, so that `start` has no effect. False if the state is unreadable."""
    try:
        if is_shared(config.store):
            with shared_store(config.store) as store:
                return bool(store.cursors(source))
        connection = _connect(config)
        try:
            return bool(connection.rows("SELECT 1 FROM cursors WHERE source = ? LIMIT 1", (source,)))
        finally:
            connection.close()
    except (ConfigError, StoreError, sqlite3.Error):
        return False


def check_state_keys(config: Config) -> None:
    """Check that the keys of all encrypted texts are configured.

    Raises:
        ConfigError: One is missing or wrong, or the kind of store cannot be read.
        StoreError: The state cannot be read.
    """
    if is_shared(config.store):
        with shared_store(config.store):
            return
    _connect(config).close()


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
