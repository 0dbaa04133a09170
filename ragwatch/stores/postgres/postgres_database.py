"""A PostgreSQL database as commands use it. `postgres.database` imports this module, which needs psycopg."""

from collections.abc import Collection
from dataclasses import dataclass

from ragwatch.stores.lock import StateLock
from ragwatch.stores.postgres import views
from ragwatch.stores.postgres.connections import PostgresEngine
from ragwatch.stores.postgres.migrations import describe_database
from ragwatch.stores.postgres.options import Options
from ragwatch.stores.postgres.postgres_store import PostgresStore


@dataclass(frozen=True, slots=True)
class Database:
    """A database, which each method connects to.

    A method raises a ConfigError if an encryption key is missing, and a StoreError if the server cannot be reached or
    the database cannot be used.
    """

    options: Options

    def connected(self, state: StateLock | None = None, name: str | None = None) -> PostgresStore:
        """Open the database beside running workers, without a state directory unless its lock is given.

        Without a `name` this process exports no counters.
        """
        return PostgresStore(self.options, state=state, name=name)

    def without_keys(self) -> PostgresEngine:
        """Open the database, which `connected` has made ready, without keys: texts are as they are stored."""
        return PostgresEngine(self.options)

    def describe(self) -> str:
        """Return server and schema as text for people. Changes nothing."""
        return describe_database(self.options)

    def make_views(self, readers: Collection[str]) -> tuple[str, tuple[str, ...]]:
        """Create the views. Returns the name of their schema, and the roles that may read them."""
        return views.views_schema(self.options.database_schema), views.make_views(self.options, readers)

    def views_text(self) -> str:
        """Return the SQL statements that create the views; this connects to nothing."""
        return views.views_script(self.options.database_schema)
