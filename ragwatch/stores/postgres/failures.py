"""Errors of PostgreSQL as text for people, and what to do about them. No message contains the password."""

import time
from typing import Any, TypeVar

import psycopg
from psycopg import errors
from psycopg.abc import PQGen

GRACE_SECONDS = 1.0  # in which a server that works ends a statement by itself, and says so
Value = TypeVar("Value")


class TimedConnection(psycopg.Connection):
    """A connection that waits for a limited time: a server that is stopped ends no statement by itself."""

    patience: float | None = None
    """Seconds; None without a limit."""

    def wait(self, gen: PQGen[Value], *arguments: Any, **options: Any) -> Value:  # noqa: ANN401 - as the base class
        """Consume a generator. Raises `NoAnswerError`, and is closed, if the server does not answer in time."""
        if self.patience is None:
            return super().wait(gen, *arguments, **options)
        try:
            return super().wait(_until(gen, time.monotonic() + self.patience), *arguments, **options)
        except NoAnswerError:
            self.close()  # else whoever ends its transaction would wait again
            raise


def _until(gen: PQGen[Value], deadline: float) -> PQGen[Value]:
    """Pass on what a generator yields and gets, until a time after which it gets nothing."""
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() > deadline:
                raise NoAnswerError("the server does not answer")
            wanted = gen.send(ready)
    except StopIteration as end:
        value: Value = end.value
        return value


_ADVICE: tuple[tuple[type[psycopg.Error], str], ...] = (
    (errors.QueryCanceled, "the statement took longer than store.timeout_seconds; look at the load of the server"),
    (errors.LockNotAvailable, "another session holds a lock for too long; look at pg_stat_activity"),
    (errors.DeadlockDetected, "two sessions waited for each other; the step is repeated"),
    (errors.DiskFull, "free some space on the disk of the server"),
    (errors.OutOfMemory, "the server has too little memory"),
    (errors.ReadOnlySqlTransaction, "the server is a standby; give the address of the primary in store.url"),
    (errors.InsufficientPrivilege, "grant its user the rights to create and use the schema, store.database_schema"),
    (errors.InvalidCatalogName, "create the database, or give the name of an existing one in store.url"),
    (errors.UndefinedTable, "a table is missing; restore a copy of the database"),
    (errors.UndefinedColumn, "the tables were changed; restore a copy of the database"),
)
_WORDS: tuple[tuple[str, str], ...] = (
    ("password", "check user and password in store.url"),
    ("authentication", "check user and password in store.url, and pg_hba.conf of the server"),
    ("pg_hba.conf", "allow this host in pg_hba.conf of the server"),
    ("does not exist", "create it, or give an existing one in store.url"),
    ("too many clients", "lower store.connections, or raise max_connections of the server"),
    ("remaining connection slots", "lower store.connections, or raise max_connections of the server"),
    ("translate host name", "check the host in store.url"),
    ("certificate", "check sslmode and sslrootcert in store.url"),
    ("SSL", "check sslmode in store.url"),
    ("session is read-only", "the server is a standby; give the address of the primary in store.url"),
)
_UNREACHABLE = "start PostgreSQL, or check host and port in store.url"
MAX_CHARS = 300


class NoAnswerError(psycopg.OperationalError):
    """A server has a connection and does not answer: it is stopped, or the network is."""


def reason(error: BaseException) -> str:
    r"""Return the message to show, on one line.

    >>> reason(psycopg.OperationalError("connection failed:  refused\n\tIs it running?"))
    'connection failed: refused Is it running?'
    """
    text = " ".join(str(error).split())
    return text if len(text) <= MAX_CHARS else f"{text[: MAX_CHARS - 1]}…"


def advice(error: BaseException) -> str:
    """Return what to do about an error.

    >>> advice(errors.DiskFull("could not extend file"))
    'free some space on the disk of the server'
    >>> advice(psycopg.OperationalError("FATAL:  password authentication failed for user"))
    'check user and password in store.url'
    >>> advice(psycopg.DataError("value out of range"))
    'restore a copy of the database'
    """
    for kind, hint in _ADVICE:
        if isinstance(error, kind):
            return hint
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        text = str(error)
        return next((hint for word, hint in _WORDS if word in text), _UNREACHABLE)
    return "restore a copy of the database"


def connection_is_lost(error: BaseException) -> bool:
    """Whether an error ends the connection, so that nobody knows whether a running COMMIT took effect."""
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and not isinstance(
        error, errors.QueryCanceled | errors.LockNotAvailable | errors.DeadlockDetected | errors.DiskFull
    )


def was_ended_while_idle(error: BaseException) -> bool:
    """Whether another connection may work at once. One that got no answer in time would double the time."""
    return connection_is_lost(error) and not isinstance(error, NoAnswerError)
