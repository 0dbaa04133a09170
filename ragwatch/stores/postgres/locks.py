"""Advisory locks of PostgreSQL, held until the end of a transaction. `stores.engine` names those of both engines."""

from __future__ import annotations

import psycopg

RETENTION = 3
"""Held by the worker that deletes."""
MIGRATION = 4
STATES = 5
"""Held while a saved state is changed that any worker may change."""
PARTITIONS = 6
"""Held while partitions are made."""

LOCK = "SELECT pg_advisory_xact_lock(%s, hashtext(current_schema() || %s))"
TRY = "SELECT pg_try_advisory_xact_lock(%s, hashtext(current_schema() || ''))"
_LOCK_NAMED = "SELECT pg_advisory_xact_lock(%s, hashtext(%s))"


def locked(connection: psycopg.Connection, number: int, name: str) -> None:
    """Wait for the lock of a database schema that may not exist yet."""
    connection.execute(_LOCK_NAMED, (number, name))
