"""Connections to PostgreSQL: a small pool, reads, and transactions whose outcome is known even if the server is lost.

A pool of our own, because one that connects in the background reports a wrong password as a timeout.
"""

import math
import random
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Self, TypeVar

import psycopg
from psycopg.abc import Buffer
from psycopg.conninfo import make_conninfo
from psycopg.types.string import StrBinaryDumper, StrDumper

from ragwatch.errors import NotLeadingError, StoreError
from ragwatch.stores.dialect import in_postgres
from ragwatch.stores.encryption import TextCipher, opened
from ragwatch.stores.engine import DamagedRows, Parameters, Row, Rows
from ragwatch.stores.postgres.failures import (
    GRACE_SECONDS,
    TimedConnection,
    advice,
    connection_is_lost,
    reason,
    was_ended_while_idle,
)
from ragwatch.stores.postgres.options import Options
from ragwatch.stores.postgres.partitions import DAYS, Parts
from ragwatch.stores.postgres.postgres_writer import PostgresWriter

CONNECT_SECONDS = 10
LOCK_SECONDS = 10
IDLE_SECONDS = 30  # a worker that is stopped within a transaction loses its locks after this time
UNKNOWN_SECONDS = 30.0  # how long the outcome of a COMMIT is asked for after the connection was lost
RETRY_SECONDS = 0.2
WALK_ROWS = 100
SLOTS = 16
"""Numbers under which several workers count. Higher ones belong to one worker each."""
_IN_TERM = "SELECT 1 FROM leader WHERE term = :term AND until > clock_timestamp() FOR SHARE"
NO_ADDRESS = (
    "store: cannot open the database: store.url is not an address; write it as postgresql://USER:PASSWORD@HOST/DATABASE"
    " (characters such as @ and / in a password are percent-encoded)"
)

Value = TypeVar("Value")


class _StorableText(StrDumper):
    def dump(self, obj: str) -> Buffer | None:
        return super().dump(storable(obj))


class _StorableBinaryText(StrBinaryDumper):
    def dump(self, obj: str) -> Buffer | None:
        return super().dump(storable(obj))


def storable(text: str) -> str:
    """Replace what PostgreSQL cannot store in a text: NUL, and lone surrogates of truncated logs."""
    text = str(text)
    if "\x00" in text or not text.isascii():
        return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")
    return text


def connect(options: Options) -> TimedConnection:
    """Open a connection in autocommit mode. Raises a `StoreError` if `store.url` is no address."""
    milliseconds = round(options.timeout_seconds * 1000)
    settings = {
        "search_path": options.database_schema,
        "statement_timeout": milliseconds,
        "lock_timeout": LOCK_SECONDS * 1000,
        "idle_in_transaction_session_timeout": IDLE_SECONDS * 1000,
        "TimeZone": "UTC",
    }
    try:
        conninfo = make_conninfo(
            options.url.get_secret_value(),
            options=" ".join(f"-c {name}={value}" for name, value in settings.items()),
            application_name="ragwatch",
            connect_timeout=min(CONNECT_SECONDS, math.ceil(options.timeout_seconds)),
            target_session_attrs="read-write",
            keepalives_idle=IDLE_SECONDS,
            tcp_user_timeout=IDLE_SECONDS * 1000,
        )
    except psycopg.ProgrammingError:
        raise StoreError(NO_ADDRESS) from None  # the message would contain the address, and with it the password
    connection = TimedConnection.connect(conninfo, autocommit=True)
    connection.patience = options.timeout_seconds + GRACE_SECONDS
    connection.adapters.register_dumper(str, _StorableBinaryText)  # where a statement says %b
    connection.adapters.register_dumper(str, _StorableText)
    return connection


@contextmanager
def store_errors(action: str) -> Iterator[None]:
    """Raise errors of PostgreSQL as `StoreError`."""
    try:
        yield
    except psycopg.Error as error:
        raise StoreError(f"store: {action}: {reason(error)}; {advice(error)}") from error


@contextmanager
def unless_in_use() -> Iterator[None]:
    """Ignore that a table or row was locked by another session for too long: the caller tries again later."""
    try:
        yield
    except StoreError as error:
        if not isinstance(error.__cause__, psycopg.errors.LockNotAvailable | psycopg.errors.DeadlockDetected):
            raise


class PostgresEngine:
    """Runs statements on as many connections as are needed at a time, up to a limit."""

    def __init__(self, options: Options, *, cipher: TextCipher | None = None) -> None:
        self._options, self._cipher = options, cipher
        self._free = threading.Semaphore(options.connections)
        self._idle: list[TimedConnection] = []
        self._closed = threading.Event()
        self.slot = random.randrange(SLOTS)  # noqa: S311 - not a secret
        """Number under which this worker counts: one that is shared, unless it has a name."""
        self.term: Callable[[], int | None] | None = None
        """Returns the number of the term within which transactions may write; None for no limit."""
        self.parts = Parts(self.days)
        self.damage = DamagedRows()

    @contextmanager
    def _borrowed(self, begin: Callable[[TimedConnection], Value]) -> Iterator[tuple[TimedConnection, Value]]:
        """Wait for a connection, begin on it what may be repeated, and lend it with what `begin` returns.

        If it was lost while it was idle, that is begun once more on a new one. It is closed if the block ends in a
        transaction, or with an error of it.
        """
        if self._closed.is_set():
            raise StoreError("store: is closed")
        if not self._free.acquire(timeout=self._options.timeout_seconds):
            raise StoreError("store: all connections are in use; raise store.connections")
        connection: TimedConnection | None = None
        try:
            connection = self._idle.pop() if self._idle else connect(self._options)
            try:
                value = begin(connection)
            except psycopg.Error as error:
                if not was_ended_while_idle(error):
                    raise
                connection.close()
                self._close_idle()  # a restart of the server has ended these, too
                connection = connect(self._options)
                value = begin(connection)
            yield connection, value
        finally:
            if connection is not None:
                idle = psycopg.pq.TransactionStatus.IDLE
                if self._closed.is_set() or connection.closed or connection.info.transaction_status != idle:
                    connection.close()
                else:
                    self._idle.append(connection)
            self._free.release()

    def _close_idle(self) -> None:
        while self._idle:
            with suppress(IndexError, psycopg.Error):
                self._idle.pop().close()

    @property
    def pages(self) -> Self:
        """See `Engine.pages`: every statement has a connection of its own."""
        return self

    def rows(self, sql: str, parameters: Parameters = (), *, planned_once: bool = True) -> Rows:

        def run(connection: TimedConnection) -> Rows:
            with connection.cursor(binary=True) as cursor:
                prepare = None if planned_once else False
                return opened(cursor.execute(in_postgres(sql), parameters, prepare=prepare), self._cipher)

        with store_errors("cannot read"), self._borrowed(run) as (_, rows):
            return rows

    def walk(self, sql: str, parameters: Parameters = ()) -> Generator[Row, None, None]:
        with (
            store_errors("cannot read"),
            self._borrowed(lambda _: None) as (connection, _),
            connection.transaction(),
            connection.cursor(name="walk", binary=True) as cursor,
        ):
            cursor.execute(in_postgres(sql), parameters)
            while page := cursor.fetchmany(WALK_ROWS):
                yield from opened(page, self._cipher)

    @contextmanager
    def transaction(self, reserve: float = 0.0) -> Iterator[PostgresWriter]:
        """Run one transaction. If the connection is lost while it commits, find out whether it took effect.

        Raises a `StoreError` if nothing was written, or, as its message says, the server does not tell whether it was.
        """
        if reserve > 0.0:  # rows are inserted that have partitions
            self.parts.refresh()
        with store_errors("cannot write"), self._borrowed(lambda one: one.execute("BEGIN")) as (connection, _):
            try:
                with connection.cursor(binary=True) as cursor:
                    writer = PostgresWriter(cursor, self._cipher, self.slot, self.parts.of)
                    if self.term is not None:  # writes within a term only
                        term = self.term()
                        if term is None or not writer.rows(_IN_TERM, {"term": term}):
                            raise NotLeadingError("store: another worker leads; it does this step")
                    yield writer
                    self._commit(connection)
            finally:
                if not connection.closed and connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                    with suppress(psycopg.Error):
                        connection.execute("ROLLBACK")

    def _commit(self, connection: TimedConnection) -> None:
        row = connection.execute("SELECT pg_current_xact_id_if_assigned()::text").fetchone()
        number = None if row is None else row[0]
        try:
            connection.execute("COMMIT")
        except psycopg.Error as error:
            if number is None or not connection_is_lost(error):
                raise
            connection.close()
            if not self._took_effect(number):
                raise

    def _took_effect(self, number: str) -> bool:
        """Whether a transaction was committed whose connection was lost. Raises a `StoreError` if nobody can tell."""
        deadline = time.monotonic() + UNKNOWN_SECONDS
        while time.monotonic() < deadline:
            with suppress(psycopg.OperationalError), connect(self._options) as connection:
                try:
                    row = connection.execute("SELECT pg_xact_status(%s::xid8)", (number,)).fetchone()
                except psycopg.errors.InvalidParameterValue:  # the server has never heard of it
                    return False
                if row is None or row[0] != "in progress":
                    return row is not None and row[0] == "committed"
            time.sleep(RETRY_SECONDS)
        raise StoreError(
            "store: the connection was lost during a COMMIT, and the server does not say whether it took effect; start "
            "it: the step is repeated, and some of its records may count twice"
        )

    def days(self) -> list[int]:
        """Return the days that have partitions."""
        return [day for (day,) in self.rows(DAYS)]

    def rewrite(self, tables: Sequence[str]) -> bool:
        """Write tables again, so that no deleted text remains in their files. Returns False if one is in use."""
        with store_errors("cannot rewrite a table"), self._borrowed(lambda _: None) as (connection, _):
            try:
                connection.execute("SET statement_timeout = 0")
                connection.patience = None
                for table in tables:
                    connection.execute(f"VACUUM (FULL) {table}".encode())
            except psycopg.errors.LockNotAvailable:
                return False
            finally:
                connection.patience = self._options.timeout_seconds + GRACE_SECONDS
                with suppress(psycopg.Error):
                    connection.execute("RESET statement_timeout")
        return True

    def close(self) -> None:
        """Close all connections, those in use once they are given back."""
        self._closed.set()
        self._close_idle()
