"""Kind `postgres`: stores everything in a PostgreSQL database that any number of workers share. Needs psycopg."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from ragwatch.errors import ConfigError, StoreError
from ragwatch.ports import Store
from ragwatch.stores.encryption import EncryptionOptions, TextCipher
from ragwatch.stores.kept_texts import TEXT_SEARCH, Texts
from ragwatch.stores.lock import StateLock, worker_name

if TYPE_CHECKING:
    from ragwatch.stores.postgres.connections import PostgresEngine, Target
    from ragwatch.stores.postgres.postgres_store import PostgresStore

EXTRA = "postgres"


class Options(BaseModel):
    """Configuration of the PostgreSQL store. The texts are those of samples and verdicts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: SecretStr = Field(
        min_length=1, description="Address of the database: postgresql://USER:PASSWORD@HOST/DATABASE."
    )
    database_schema: str = Field(
        "ragwatch", pattern=r"^[a-z_][a-z0-9_]{0,62}$", description="Database schema of the tables; it is created."
    )
    connections: int = Field(4, ge=1, le=64, description="Maximum number of connections of this worker.")
    timeout_seconds: float = Field(60.0, gt=0.0, le=3600.0, description="Time limit of one statement.")
    texts: Texts = Field(Texts.ALL, description="Texts of which answers are kept after judging; scores always are.")
    text_search: bool = Field(default=True, description=TEXT_SEARCH)
    encryption: EncryptionOptions | None = Field(None, description="Keys that encrypt stored texts.")

    def cipher(self) -> TextCipher | None:
        """Read the keys, as `EncryptionOptions.cipher`; None without encryption."""
        return None if self.encryption is None else self.encryption.cipher()


@contextmanager
def _extra() -> Iterator[None]:
    """Say which extra is missing if an import fails."""
    try:
        yield
    except ImportError as error:
        raise ConfigError(
            f"store.kind: needs the extra `{EXTRA}`; run pip install 'ragwatch-exporter[{EXTRA}]'"
        ) from error


def build(options: Options, state: Path) -> Store:
    """Open the database, and lock the state directory, which holds the secret of sampling and the worker's name.

    Raises:
        ConfigError: The extra is not installed, or an encryption key is missing.
        StoreError: The server cannot be reached, the database cannot be used, or the state directory is locked.
    """
    lock = StateLock(state)
    try:
        store = connected(options, lock, worker_name(state))
    except BaseException:
        lock.close()
        raise
    try:
        store.refuse_half_copied()
    except StoreError:
        store.close()
        raise
    return store


@_extra()
def connected(options: Options, state: StateLock | None = None, name: str | None = None) -> PostgresStore:
    """Open the database beside running workers, without a state directory unless its lock is given.

    Without a `name` this process exports no counters.

    Raises:
        ConfigError: The extra is not installed, or an encryption key is missing.
        StoreError: The server cannot be reached, or the database cannot be used.
    """
    from ragwatch.stores.postgres import postgres_store  # noqa: PLC0415 - an extra

    cipher, search = options.cipher(), options.text_search
    return postgres_store.PostgresStore(
        _target(options), state=state, name=name, texts=options.texts, cipher=cipher, text_search=search
    )


@_extra()
def without_keys(options: Options) -> PostgresEngine:
    """Open the database, which `connected` has made ready, without keys: texts are as they are stored."""
    from ragwatch.stores.postgres import connections  # noqa: PLC0415 - an extra

    return connections.PostgresEngine(_target(options))


@_extra()
def describe(options: Options) -> str:
    """Connect, and return server and schema as text for people. Changes nothing. Raises as `connected`."""
    from ragwatch.stores.postgres.migrations import describe_database  # noqa: PLC0415 - an extra

    return describe_database(_target(options), options.cipher())


@_extra()
def make_views(options: Options, readers: Collection[str]) -> tuple[str, tuple[str, ...]]:
    """Create the views of the tables, which exist. Returns the name of their schema, and the roles that may read them.

    Raises:
        StoreError: The server cannot be reached, a role does not exist, or a view is in use.
    """
    from ragwatch.stores.postgres import views  # noqa: PLC0415 - an extra

    return views.views_schema(options.database_schema), views.make_views(_target(options), readers)


@_extra()
def views_text(options: Options) -> str:
    """Return the SQL statements that create the views."""
    from ragwatch.stores.postgres import views  # noqa: PLC0415 - an extra

    return f"{views.schema_statement(options.database_schema)}\n{views.views_script(options.database_schema)}"


def _target(options: Options) -> Target:
    from ragwatch.stores.postgres.connections import Target  # noqa: PLC0415 - an extra

    return Target(options.url.get_secret_value(), options.database_schema, options.connections, options.timeout_seconds)
