"""Advisory locks of PostgreSQL, each held until the end of a transaction.

A transaction takes locks in this order: rows, `SEQUENCES`, then counters.
"""

from __future__ import annotations

from typing import Any, Protocol

import psycopg

SEQUENCES = 1
"""Held while sequence numbers of verdicts and feedback are assigned, until they are committed.

Otherwise a reader could see number 10 before 9 is committed, go on after 10, and never see 9.
"""
BUDGET = 2
"""Held while a judge's budget is checked and reserved, so that workers together stay within it."""
RETENTION = 3
"""Held by the worker that deletes."""
MIGRATION = 4
PARTITIONS = 6
"""Held while partitions are made."""
STATES = 5
"""Held while a saved state is changed that any worker may change."""

_LOCK = "SELECT pg_advisory_xact_lock(%s, hashtext(current_schema() || %s))"
_TRY = "SELECT pg_try_advisory_xact_lock(%s, hashtext(current_schema() || %s))"
_LOCK_NAMED = "SELECT pg_advisory_xact_lock(%s, hashtext(%s))"


class Executes(Protocol):
    """What runs statements."""

    def execute(self, sql: Any, parameters: Any, /) -> Any:  # noqa: ANN401 - a cursor, or a writer
        """Run a statement."""
        ...


def lock(writer: Executes, number: int, name: str = "") -> None:
    """Wait for a lock of this database schema."""
    writer.execute(_LOCK, (number, name))


def try_lock(writer: Executes, number: int) -> bool:
    """Take a lock of this database schema. Returns False if another transaction has it."""
    row = writer.execute(_TRY, (number, "")).fetchone()
    return row is not None and bool(row[0])


def locked(connection: psycopg.Connection, number: int, name: str) -> None:
    """Wait for the lock of a database schema that may not exist yet."""
    connection.execute(_LOCK_NAMED, (number, name))
