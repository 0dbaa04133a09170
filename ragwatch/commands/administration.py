"""Small commands of administration: `store copy`, `store views`, `audit verify`, `config schema`, `completion`."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from ragwatch.audit import verify
from ragwatch.commands import cli
from ragwatch.commands.options.administration import (
    AuditVerifyArguments,
    CompletionArguments,
    ConfigSchemaArguments,
    StoreCopyArguments,
    StoreViewsArguments,
)
from ragwatch.commands.terminal import printable
from ragwatch.config import load
from ragwatch.config.schema import json_schema
from ragwatch.daemon.state_secret import stored_secret
from ragwatch.errors import ConfigError, StoreError
from ragwatch.stores import postgres
from ragwatch.stores.lock import StateLock
from ragwatch.telemetry import configure_logging

BROKEN, NOTHING = 1, 3


def copy(given: StoreCopyArguments) -> int:
    """Copy a SQLite state into the store of a configuration. Returns 0."""
    options = _postgres(given.path)
    if not given.state.is_dir():
        raise StoreError(f"state: {given.state} does not exist; give the state directory of a SQLite store")
    with closing(StateLock(given.state)), closing(postgres.connected(options)) as store:
        from ragwatch.stores.copying import copy_state  # noqa: PLC0415 - needs the extra, which is checked by now
        from ragwatch.stores.postgres.store import PostgresStore  # noqa: PLC0415 - the same

        assert isinstance(store, PostgresStore)  # noqa: S101 - for the type checker
        secret = stored_secret(given.state)
        counts = copy_state(given.state, store)
        if secret is not None:
            store.shared_secret(secret)
    for table, count in counts.items():
        click.echo(f"{count} rows of {table}")
    return 0


def views(given: StoreViewsArguments) -> int:
    """Create the views of the store of a configuration. Returns 0."""
    options = _postgres(given.path)
    if given.only_print:
        click.echo(postgres.views_text(options))
        return 0
    with closing(postgres.connected(options)):  # the tables exist from here on
        schema, every = postgres.make_views(options, given.readers)
    click.echo(f"views of schema {schema} are made; read by {', '.join(every) or 'their owner only: see --reader'}")
    return 0


def _postgres(path: Path) -> postgres.Options:
    configure_logging("error")
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
        click.echo("no lines", err=True)
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
