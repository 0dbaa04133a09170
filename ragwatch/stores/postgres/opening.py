"""Opens the database: checks the server, migrates the schema, and checks that all keys of encrypted texts are given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

from ragwatch.stores.encryption import KEY_STATE, TextCipher, new_key_ids
from ragwatch.stores.postgres.connections import Target, connect, store_errors
from ragwatch.stores.postgres.schema import prepare

_WRITE_KEY_IDS = "INSERT INTO states (name, body) VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET body = excluded.body"


def prepare_database(target: Target, cipher: TextCipher | None) -> None:
    """Make the database ready for this worker.

    Raises:
        ConfigError: Texts are encrypted with a key that is not given.
        StoreError: The server cannot be reached, or the database cannot be used.
    """
    with store_errors("cannot open the database"), connect(target) as connection:
        prepare(connection, target.schema)
        _register_keys(connection, cipher)


def _register_keys(connection: psycopg.Connection, cipher: TextCipher | None) -> None:
    def rows(sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        return connection.execute(sql.replace("?", "%s").encode(), parameters, binary=True).fetchall()

    ids = new_key_ids(rows, cipher)
    if ids is not None:  # as plain JSON: it is read without a key
        connection.execute(_WRITE_KEY_IDS, (KEY_STATE, ids.encode("ascii")))
