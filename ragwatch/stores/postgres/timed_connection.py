"""A connection that gives up a server that does not answer."""

from __future__ import annotations

import time
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen

from ragwatch.stores.postgres.failures import NoAnswerError

GRACE_SECONDS = 1.0  # in which a server that works ends a statement by itself, and says so
Value = TypeVar("Value")


class TimedConnection(psycopg.Connection):
    """A connection that waits for a limited time: a server that is stopped ends no statement by itself."""

    patience: float | None = None
    """Seconds; None without a limit."""

    def wait(self, gen: PQGen[Value], *arguments: Any, **options: Any) -> Value:  # noqa: ANN401 - as the base class
        """Consume a generator.

        Raises:
            NoAnswerError: The server has not answered in time; the connection is closed.
        """
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
