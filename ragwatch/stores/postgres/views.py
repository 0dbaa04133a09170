"""Read-only views of the tables, in a schema of their own: `ragwatch_views` beside `ragwatch`.

They are made by `ragwatch store views`, and by migrations where they exist.
"""

import re
from collections.abc import Collection
from importlib.resources import files

import psycopg
from psycopg import sql

from ragwatch.errors import StoreError
from ragwatch.model.quantities import Quantity
from ragwatch.stores.postgres.connections import connect, store_errors
from ragwatch.stores.postgres.options import Options
from ragwatch.stores.postgres.postgres_writer import MIGRATION, locked

_VIEWS = (
    "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE n.nspname = %s AND c.relkind = 'v'"
)
_FUNCTIONS = (
    "SELECT p.oid::regprocedure::text FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace"
    " WHERE n.nspname = %s AND p.proname LIKE 'interval\\_%%'"
)
_READERS = (
    "SELECT DISTINCT pg_get_userbyid(acl.grantee) FROM pg_namespace n, aclexplode(n.nspacl) AS acl"
    " WHERE n.nspname = %s AND acl.privilege_type = 'USAGE' AND acl.grantee NOT IN (0, n.nspowner)"
)


def views_schema(schema: str) -> str:
    """Return the name of the schema of the views."""
    return f"{schema}_views"


def views_script(schema: str) -> str:
    """Return the SQL statements that create the views of a schema, in a schema of their own."""
    words = {
        "VIEWS": f'"{views_schema(schema)}"',
        "TABLES": f'"{schema}"',
        "COLUMNS": ", ".join(f"(scores ->> '{quantity}')::float8 AS {quantity}" for quantity in Quantity),
        "QUANTITIES": ", ".join(
            f"('{quantity}', (v.scores ->> '{quantity}')::float8, null::float8)" for quantity in Quantity
        ),
    }
    text = files("ragwatch.stores.postgres").joinpath("views.sql").read_text(encoding="utf-8")
    return re.sub(r"(?m)(?<!-)\b(VIEWS|TABLES|COLUMNS|QUANTITIES)\b(?! stand)", lambda match: words[match[1]], text)


def make_views(options: Options, readers: Collection[str] = ()) -> tuple[str, ...]:
    """Create the views of a database, or replace them by those of this version, and let further roles read them.

    Returns the roles that may read them. Raises a `StoreError` if the server cannot be reached, a role does not exist,
    or a view is in use.
    """
    with store_errors("cannot create the views"), connect(options) as connection, connection.transaction():
        schema = options.database_schema
        locked(connection, MIGRATION, schema)
        roles = {name for (name,) in connection.execute("SELECT rolname FROM pg_roles").fetchall()}
        missing = [name for name in readers if name not in roles]
        if missing:
            raise StoreError(
                f"--reader {missing[0]}: the server has no such role; create it with"
                f" `CREATE ROLE {missing[0]} LOGIN PASSWORD '...'`"
            )
        every = sorted({*readers, *(drop_views(connection, schema) or ())})
        create_views(connection, schema, every)
        return tuple(every)


def drop_views(connection: psycopg.Connection, schema: str) -> tuple[str, ...] | None:
    """Drop the views, and what others have built on them. Returns the roles that may read them; None if there are none.

    The caller runs a transaction in which it creates them again.
    """
    name = views_schema(schema)
    views = [row[0] for row in connection.execute(_VIEWS, (name,)).fetchall()]
    if not views:
        return None
    readers = tuple(row[0] for row in connection.execute(_READERS, (name,)).fetchall())
    for view in views:
        connection.execute(sql.SQL("DROP VIEW IF EXISTS {} CASCADE").format(sql.Identifier(name, view)))
    for (function,) in connection.execute(_FUNCTIONS, (name,)).fetchall():
        connection.execute(f"DROP FUNCTION IF EXISTS {function}".encode())
    return readers


def create_views(connection: psycopg.Connection, schema: str, readers: Collection[str]) -> None:
    """Create the views, within a transaction, and let roles read them."""
    name = sql.Identifier(views_schema(schema))
    connection.execute(views_script(schema).encode())
    for reader in readers:
        role = sql.Identifier(reader)
        connection.execute(sql.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(name, role))
        connection.execute(sql.SQL("GRANT SELECT ON ALL TABLES IN SCHEMA {} TO {}").format(name, role))
