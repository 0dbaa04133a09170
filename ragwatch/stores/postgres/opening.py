"""Opens the database: checks the server, migrates the schema, and checks that all keys of encrypted texts are given."""

from __future__ import annotations

from collections.abc import Sequence

import psycopg

from ragwatch.stores.encryption import KEY_STATE, Rows, TextCipher, check_keys, new_key_ids
from ragwatch.stores.postgres.connections import Target, connect, store_errors
from ragwatch.stores.postgres.schema import VERSION, check_compatible, check_server, prepare, stored_version

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


def describe_database(target: Target, cipher: TextCipher | None) -> str:
    """Connect, and return server and schema as text for people. Changes nothing.

    Raises:
        ConfigError: Texts are encrypted with a key that is not given.
        StoreError: The server cannot be reached, or the database cannot be used.
    """
    with store_errors("cannot open the database"), connect(target) as connection:
        check_server(connection)
        info = connection.info
        version = f"PostgreSQL {info.server_version // 10000}.{info.server_version % 10000}"
        place = f"{version} at {info.host}, database {info.dbname}, schema {target.schema}"
        stored = stored_version(connection, target.schema)
        if stored is None:
            return f"{place}: is created at the first start"
        check_compatible(stored, VERSION)
        check_keys(_reader(connection), cipher)
        return f"{place}: version {stored[0]}"


def _register_keys(connection: psycopg.Connection, cipher: TextCipher | None) -> None:
    ids = new_key_ids(_reader(connection), cipher)
    if ids is not None:  # as plain JSON: it is read without a key
        connection.execute(_WRITE_KEY_IDS, (KEY_STATE, ids.encode("ascii")))


def _reader(connection: psycopg.Connection) -> Rows:
    """Return what runs a statement with the placeholders of SQLite."""

    def rows(sql: str, parameters: Sequence[object]) -> list[tuple[object, ...]]:
        return connection.execute(sql.replace("?", "%s").encode(), parameters, binary=True).fetchall()

    return rows
