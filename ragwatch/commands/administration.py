"""Small commands of administration: `store`, `audit`, `config` and `completion`."""

import json
import secrets
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from ragwatch.audit import verify
from ragwatch.commands import cli
from ragwatch.config import load
from ragwatch.config.schema import json_schema
from ragwatch.daemon.process import stored_secret, write_secret
from ragwatch.errors import ConfigError, StoreError
from ragwatch.stores import postgres
from ragwatch.stores.copying import copy_state
from ragwatch.stores.lock import StateLock
from ragwatch.stores.sqlite.sqlite_engine import ReadConnection, SqliteEngine
from ragwatch.terminal.options.administration import (
    AuditVerifyArguments,
    CompletionArguments,
    ConfigSchemaArguments,
    StoreCopyArguments,
    StoreViewsArguments,
)
from ragwatch.terminal.output import printable, say

BROKEN, NOTHING = 1, 3


def copy(given: StoreCopyArguments) -> int:
    """Copy a SQLite state into the store of a configuration, or that store into a new state. Returns 0."""
    back = given.source.is_file()
    path, state = (given.source, given.target) if back else (given.target, given.source)
    options = _postgres(path)
    counts = _to_state(options, state) if back else _from_state(state, options)
    for table, count in counts.items():
        click.echo(f"{count} rows of {table}")
    return 0


def _to_state(options: postgres.Options, state: Path) -> dict[str, int]:
    with (
        closing(postgres.database(options).connected()) as store,
        closing(postgres.database(options).without_keys()) as source,
        closing(SqliteEngine(state)) as target,
    ):
        counts = copy_state(source, target)
        write_secret(state, store.shared_secret(stored_secret(state) or secrets.token_bytes(32)))
    return counts


def _from_state(state: Path, options: postgres.Options) -> dict[str, int]:
    with _read(state) as source, closing(postgres.database(options).connected()) as store:
        with closing(postgres.database(options).without_keys()) as target:
            counts = copy_state(source, target)
        if (secret := stored_secret(state)) is not None:
            store.shared_secret(secret)
    return counts


@contextmanager
def _read(state: Path) -> Iterator[ReadConnection]:
    """Open the database of a state directory, and lock it."""
    if not state.is_dir():
        raise StoreError(f"state: {state} does not exist; give the state directory of a SQLite store")
    database = state / "ragwatch.db"
    with closing(StateLock(state)):
        if not database.is_file():
            raise StoreError(f"state: {state} contains no ragwatch.db; give the state directory of a SQLite store")
        with closing(ReadConnection(database, tolerant=True)) as connection:
            yield connection


def views(given: StoreViewsArguments) -> int:
    """Create the views of the store of a configuration. Returns 0."""
    options = _postgres(given.path)
    if given.only_print:
        click.echo(postgres.database(options).views_text())
        return 0
    with closing(postgres.database(options).connected()):  # the tables exist from here on
        schema, every = postgres.database(options).make_views(given.readers)
    click.echo(f"views of schema {schema} are made; read by {', '.join(every) or 'their owner only: see --reader'}")
    return 0


def _postgres(path: Path) -> postgres.Options:
    config = load(path)
    options = config.store.options
    if not isinstance(options, postgres.Options):
        raise ConfigError(f"store.kind: is {config.store.kind}; name a configuration whose store is postgres")
    return options


def verify_audit(given: AuditVerifyArguments) -> int:
    """Check the chain. Returns 1 if a line was changed, deleted, inserted or moved, 3 if there is no line."""
    result = verify(given.files)
    if result.error is not None:
        click.echo(printable(f"broken: {result.error}"))
        return BROKEN
    if not result.lines:
        say("no lines")
        return NOTHING
    earlier = f"; {result.first - 1} earlier ones are in other files" if result.first > 1 else ""
    click.echo(f"intact: {result.lines} lines, from {result.first} to {result.first + result.lines - 1}{earlier}")
    return 0


def schema(_: ConfigSchemaArguments) -> int:
    """Print the JSON schema of the configuration file. Returns 0."""
    click.echo(json.dumps(json_schema(), indent=2, ensure_ascii=False))
    return 0


def completion(given: CompletionArguments) -> int:
    """Print the completion script of a shell. Returns 0."""
    kind = get_completion_class(given.shell)
    if kind is None:
        raise AssertionError(f"click has no completion for {given.shell}")
    click.echo(kind(cli, {}, "ragwatch", "_RAGWATCH_COMPLETE").source())
    return 0
