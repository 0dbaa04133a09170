"""Makes a database ready: creates and migrates its schema, one transaction for each version, and checks the keys.

`schema_version` also holds the oldest version that can work beside the newest one, so that workers of two versions can
run side by side during an upgrade.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable

import psycopg

from ragwatch.errors import StoreError
from ragwatch.stores.encryption import KEY_STATE, Rows, TextCipher, check_keys, new_key_ids
from ragwatch.stores.postgres.connections import Target, connect, store_errors
from ragwatch.stores.postgres.postgres_writer import MIGRATION, locked
from ragwatch.stores.postgres.views import create_views, drop_views

VERSION = 12
COMPATIBLE = 1  # the oldest version of ragwatch's schema whose workers can use a database of version `VERSION`
OLDEST_SERVER = 130000
_WRITE_KEY_IDS = "INSERT INTO states (name, body) VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET body = excluded.body"
DDL_LOCK_SECONDS = 1  # a migration that cannot lock a table within this time is given up, and workers go on


def prepare(
    connection: psycopg.Connection, name: str, *, scripts: Traversable | None = None, version: int = VERSION
) -> None:
    """Check the server, create the schema `name` if it is missing, and migrate it, on a connection in autocommit mode.

    Raises:
        StoreError: The server is too old, or the database was written by a newer ragwatch that this one cannot join.
        psycopg.Error: It cannot be written; its version is unchanged.
    """
    check_server(connection)
    stored = stored_version(connection, name)
    if stored is not None and stored[0] >= version:
        return check_compatible(stored, version)
    for _ in range(version):
        with connection.transaction():
            locked(connection, MIGRATION, name)
            connection.execute(f"SET LOCAL lock_timeout = '{DDL_LOCK_SECONDS}s'")
            current, compatible = stored_version(connection, name) or (0, 0)
            if current >= version:  # another worker was first
                return check_compatible((current, compatible), version)
            readers = drop_views(connection, name)  # they would keep tables from being changed
            _migrate(connection, name, current + 1, scripts or files("ragwatch.stores.postgres"))
            if readers is not None:
                create_views(connection, name, readers)
    return None


def stored_version(connection: psycopg.Connection, name: str) -> tuple[int, int] | None:
    """Return the version of a schema, and the oldest that can work with it; None if there is no schema."""
    # Not by to_regclass: inside a transaction that waited for the lock it may still remember that there was no schema.
    exists = connection.execute(
        "SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname = %s AND c.relname = 'schema_version')",
        (name,),
    ).fetchone()
    if exists is None or not exists[0]:
        return None
    row = connection.execute("SELECT version, compatible FROM schema_version").fetchone()
    return None if row is None else (int(row[0]), int(row[1]))


def _migrate(connection: psycopg.Connection, name: str, version: int, scripts: Traversable) -> None:
    if version == 1:
        connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{name}"'.encode())
        connection.execute("CREATE TABLE schema_version (version integer NOT NULL, compatible integer NOT NULL)")
        connection.execute("INSERT INTO schema_version VALUES (0, 0)")
    connection.execute(scripts.joinpath(f"postgres_{version}.sql").read_text(encoding="utf-8").encode())
    connection.execute("UPDATE schema_version SET version = %s, compatible = %s", (version, COMPATIBLE))


def check_server(connection: psycopg.Connection) -> None:
    """Raise a `StoreError` about a server that is too old, or a database that is not encoded in UTF8."""
    server = connection.info.server_version
    if server < OLDEST_SERVER:
        raise StoreError(
            f"store.url: the server is PostgreSQL {server // 10000}, and the store needs {OLDEST_SERVER // 10000} or "
            "newer; upgrade the server, or give another one"
        )
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise StoreError(
            f"store.url: the database is encoded in {encoding}, and texts need UTF8; create one with "
            "`createdb --encoding=UTF8 --template=template0`"
        )


def check_compatible(stored: tuple[int, int], version: int) -> None:
    """Raise a `StoreError` about a schema of a newer ragwatch that this one cannot join."""
    if stored[1] > version:
        raise StoreError(
            f"store: written by a newer ragwatch (schema {stored[0]}, this one knows {version}); run that version, or "
            "set store.database_schema to another name"
        )


def prepare_database(target: Target, cipher: TextCipher | None) -> None:
    """Make the database ready for this worker. Raises as `postgres.connected`."""
    with store_errors("cannot open the database"), connect(target) as connection:
        prepare(connection, target.schema)
        ids = new_key_ids(_reader(connection), cipher)
        if ids is not None:  # as plain JSON: it is read without a key
            connection.execute(_WRITE_KEY_IDS, (KEY_STATE, ids.encode("ascii")))


def describe_database(target: Target, cipher: TextCipher | None) -> str:
    """Connect, and return server and schema as text for people. Changes nothing. Raises as `postgres.connected`."""
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


def _reader(connection: psycopg.Connection) -> Rows:
    """Return what runs a statement with the placeholders of SQLite."""

    def rows(sql: str, parameters: Sequence[object]) -> list[tuple[object, ...]]:
        return connection.execute(sql.replace("?", "%s").encode(), parameters, binary=True).fetchall()

    return rows
