"""Connections to PostgreSQL: a small pool, reads, and transactions whose outcome is known even if the server is lost.

A pool of our own, because one that connects in the background reports a wrong password as a timeout.
"""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
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
    r"""Replace what PostgreSQL cannot store in a text: NUL, and lone surrogates of truncated logs.

    >>> storable("Tea\x00 \ud83dis green.")
    'Tea� ?is green.'
    """
    text = str(text)
    if "\x00" in text or not text.isascii():
        return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")
    return text


@dataclass(frozen=True, slots=True)
class Target:
    """Where to connect: URL or key words of libpq with the password, schema, most connections, limit of a statement."""

    conninfo: str
    schema: str
    connections: int = 4
    timeout_seconds: float = 60.0


def connect(target: Target) -> TimedConnection:
    """Open a connection in autocommit mode.

    Raises:
        StoreError: The address cannot be read.
        psycopg.Error: The server cannot be reached, or refuses.
    """
    milliseconds = round(target.timeout_seconds * 1000)
    settings = {
        "search_path": target.schema,
        "statement_timeout": milliseconds,
        "lock_timeout": LOCK_SECONDS * 1000,
        "idle_in_transaction_session_timeout": IDLE_SECONDS * 1000,
        "TimeZone": "UTC",
    }
    try:
        conninfo = make_conninfo(
            target.conninfo,
            options=" ".join(f"-c {name}={value}" for name, value in settings.items()),
            application_name="ragwatch",
            connect_timeout=min(CONNECT_SECONDS, math.ceil(target.timeout_seconds)),
            target_session_attrs="read-write",
            keepalives_idle=IDLE_SECONDS,
            tcp_user_timeout=IDLE_SECONDS * 1000,
        )
    except psycopg.ProgrammingError:
        raise StoreError(NO_ADDRESS) from None  # the message would contain the address, and with it the password
    connection = TimedConnection.connect(conninfo, autocommit=True)
    connection.patience = target.timeout_seconds + GRACE_SECONDS
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
    """Runs statements on as many connections as are needed at a time, up to a limit.

    Attributes:
        slot: Number under which this worker counts: one that is shared, unless it has a name.
        term: Returns the number of the term within which transactions may write; None for no limit.
        parts: Tells in which partition a row belongs.
    """

    def __init__(self, target: Target, *, cipher: TextCipher | None = None) -> None:
        self._target, self._cipher = target, cipher
        self._free = threading.Semaphore(target.connections)
        self._idle: list[TimedConnection] = []
        self._closed = threading.Event()
        self.slot = random.randrange(SLOTS)  # noqa: S311 - not a secret
        self.term: Callable[[], int | None] | None = None
        self.parts = Parts(self.days)
        self.damage = DamagedRows()

    @contextmanager
    def _borrowed(self) -> Iterator[TimedConnection]:
        """Lend a connection. It is closed if the block ends in a transaction, or with an error of it. Waits for one."""
        if self._closed.is_set():
            raise StoreError("store: is closed")
        if not self._free.acquire(timeout=self._target.timeout_seconds):
            raise StoreError("store: all connections are in use; raise store.connections")
        connection: TimedConnection | None = None
        try:
            connection = self._idle.pop() if self._idle else connect(self._target)
            yield connection
        except BaseException:
            self._give_back(connection)
            raise
        else:
            self._give_back(connection)
        finally:
            self._free.release()

    def _give_back(self, connection: TimedConnection | None) -> None:
        if connection is None:
            return
        idle = psycopg.pq.TransactionStatus.IDLE
        if self._closed.is_set() or connection.closed or connection.info.transaction_status != idle:
            connection.close()
        else:
            self._idle.append(connection)

    def _reconnecting(self, run: Callable[[TimedConnection], Value]) -> Value:
        """Run a block that may be repeated; once more if the connection was lost while it was idle."""
        try:
            with self._borrowed() as connection:
                return run(connection)
        except psycopg.Error as error:
            if not was_ended_while_idle(error) or not self._drop_idle():
                raise
        with self._borrowed() as connection:
            return run(connection)

    def _drop_idle(self) -> bool:
        """Close the idle connections, which a restart of the server ends too. False if the store is closed."""
        while self._idle:
            with suppress(IndexError, psycopg.Error):
                self._idle.pop().close()
        return not self._closed.is_set()

    @property
    def pages(self) -> Self:
        """See `Engine.pages`: every statement has a connection of its own."""
        return self

    def rows(self, sql: str, parameters: Parameters = (), *, planned_once: bool = True) -> Rows:
        """See `Reader.rows`."""

        def run(connection: TimedConnection) -> Rows:
            with connection.cursor(binary=True) as cursor:
                prepare = None if planned_once else False
                rows = cursor.execute(in_postgres(sql), parameters, prepare=prepare).fetchall()
                return opened(rows, self._cipher)

        with store_errors("cannot read"):
            return self._reconnecting(run)

    def walk(self, sql: str, parameters: Parameters = ()) -> Generator[Row, None, None]:
        """See `Reader.walk`."""
        with (
            store_errors("cannot read"),
            self._borrowed() as connection,
            connection.transaction(),
            connection.cursor(name="walk", binary=True) as cursor,
        ):
            cursor.execute(in_postgres(sql), parameters)
            while page := cursor.fetchmany(WALK_ROWS):
                yield from opened(page, self._cipher)

    @contextmanager
    def transaction(self, reserve: float = 0.0) -> Iterator[PostgresWriter]:
        """Run one transaction. If the connection is lost while it commits, find out whether it took effect.

        Raises:
            StoreError: Nothing was written, or, which the message then says, the server does not tell whether it was.
        """
        if reserve > 0.0:  # rows are inserted that have partitions
            self.parts.refresh()
        with store_errors("cannot write"), self._borrowed() as lent:
            connection = self._begun(lent)
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
                if connection is not lent:
                    self._give_back(connection)

    def _begun(self, lent: TimedConnection) -> TimedConnection:
        """Begin a transaction, on a new connection if this one was lost while it was idle."""
        try:
            lent.execute("BEGIN")
        except psycopg.Error as error:
            lent.close()
            if not was_ended_while_idle(error) or not self._drop_idle():
                raise
            connection = connect(self._target)
            connection.execute("BEGIN")
            return connection
        return lent

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
        """Whether a transaction was committed whose connection was lost meanwhile.

        Raises:
            StoreError: The server does not come back in time.
        """
        deadline = time.monotonic() + UNKNOWN_SECONDS
        while time.monotonic() < deadline:
            with suppress(psycopg.OperationalError):
                status = self._status(number)
                if status != "in progress":
                    return status == "committed"
            time.sleep(RETRY_SECONDS)
        raise StoreError(
            "store: the connection was lost during a COMMIT, and the server does not say whether it took effect; start "
            "it: the step is repeated, and some of its records may count twice"
        )

    def _status(self, number: str) -> str | None:
        """Status of a transaction; None if the server has never heard of it."""
        with connect(self._target) as connection:
            try:
                row = connection.execute("SELECT pg_xact_status(%s::xid8)", (number,)).fetchone()
            except psycopg.errors.InvalidParameterValue:
                return None
        return None if row is None else row[0]

    def days(self) -> list[int]:
        """Return the days that have partitions."""
        return [day for (day,) in self.rows(DAYS)]

    def rewrite(self, tables: Sequence[str]) -> bool:
        """Write tables again, so that no deleted text remains in their files. Returns False if one is in use."""
        with store_errors("cannot rewrite a table"), self._borrowed() as connection:
            try:
                connection.execute("SET statement_timeout = 0")
                connection.patience = None
                for table in tables:
                    connection.execute(f"VACUUM (FULL) {table}".encode())
            except psycopg.errors.LockNotAvailable:
                return False
            finally:
                connection.patience = self._target.timeout_seconds + GRACE_SECONDS
                with suppress(psycopg.Error):
                    connection.execute("RESET statement_timeout")
        return True

    def close(self) -> None:
        """Close all connections, those in use once they are given back."""
        self._closed.set()
        while self._idle:
            with suppress(IndexError, psycopg.Error):
                self._idle.pop().close()
