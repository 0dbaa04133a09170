"""`ragwatch store views`: creates read-only views of a PostgreSQL store."""

from __future__ import annotations

from contextlib import closing

import click

from ragwatch.commands.options.administration import StoreViewsArguments
from ragwatch.config import load
from ragwatch.errors import ConfigError
from ragwatch.stores import postgres
from ragwatch.telemetry import configure_logging


def views(given: StoreViewsArguments) -> int:
    """Create the views of the store of a configuration. Returns 0."""
    configure_logging("error")
    config = load(given.path)
    options = config.store.options
    if not isinstance(options, postgres.Options):
        raise ConfigError(f"store.kind: is {config.store.kind}; name a configuration whose store is postgres")
    if given.only_print:
        click.echo(postgres.views_text(options))
        return 0
    with closing(postgres.connected(options)):  # the tables exist from here on
        schema, every = postgres.make_views(options, given.readers)
    click.echo(f"views of schema {schema} are made; read by {', '.join(every) or 'their owner only: see --reader'}")
    return 0
