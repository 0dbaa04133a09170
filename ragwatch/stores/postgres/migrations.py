"""Makes a database ready: creates and migrates its schema, one transaction for each version, and checks the keys.

`schema_version` also holds the oldest version that can work beside the newest one, so that workers of two versions can
run side by side during an upgrade.
"""

from collections.abc import Sequence

import psycopg

from ragwatch.errors import StoreError
from ragwatch.stores.dialect import in_postgres
from ragwatch.stores.encryption import KEY_STATE, Rows, TextCipher, check_keys, new_key_ids
from ragwatch.stores.engine import REMEMBER
from ragwatch.stores.migrations import scripts_of
from ragwatch.stores.postgres.connections import connect, store_errors
from ragwatch.stores.postgres.options import Options
from ragwatch.stores.postgres.postgres_writer import MIGRATION, locked
from ragwatch.stores.postgres.views import create_views, drop_views

SCRIPTS = scripts_of("postgres")
VERSION = len(SCRIPTS)
COMPATIBLE = 1  # the oldest version of ragwatch's schema whose workers can use a database of version `VERSION`
OLDEST_SERVER = 130000
DDL_LOCK_SECONDS = 1  # a migration that cannot lock a table within this time is given up, and workers go on


def prepare(connection: psycopg.Connection, name: str, scripts: Sequence[str] = SCRIPTS) -> None:
    """Check the server, create the schema `name` if it is missing, and migrate it, on a connection in autocommit mode.

    If it cannot be written, its version is unchanged.
    """
    check_server(connection)
    stored, version = stored_version(connection, name), len(scripts)
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
            if current == 0:
                connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{name}"'.encode())
                connection.execute(
                    "CREATE TABLE schema_version (version integer NOT NULL, compatible integer NOT NULL)"
                )
                connection.execute("INSERT INTO schema_version VALUES (0, 0)")
            connection.execute(scripts[current].encode())
            connection.execute("UPDATE schema_version SET version = %s, compatible = %s", (current + 1, COMPATIBLE))
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


def prepare_database(options: Options, cipher: TextCipher | None) -> None:
    """Make the database ready for this worker. Raises as `Database.connected`."""
    with store_errors("cannot open the database"), connect(options) as connection:
        prepare(connection, options.database_schema)
        ids = new_key_ids(_rows_of(connection), cipher)
        if ids is not None:  # as plain JSON: it is read without a key
            connection.execute(in_postgres(REMEMBER), {"name": KEY_STATE, "body": ids})


def describe_database(options: Options) -> str:
    """Connect, and return server and schema as text for people. Changes nothing. Raises as `Database.connected`."""
    cipher = options.cipher()
    with store_errors("cannot open the database"), connect(options) as connection:
        check_server(connection)
        info = connection.info
        version = f"PostgreSQL {info.server_version // 10000}.{info.server_version % 10000}"
        place = f"{version} at {info.host}, database {info.dbname}, schema {options.database_schema}"
        stored = stored_version(connection, options.database_schema)
        if stored is None:
            return f"{place}: is created at the first start"
        check_compatible(stored, VERSION)
        check_keys(_rows_of(connection), cipher)
        return f"{place}: version {stored[0]}"


def _rows_of(connection: psycopg.Connection) -> Rows:
    return lambda sql, values: connection.execute(in_postgres(sql), values, binary=True).fetchall()
