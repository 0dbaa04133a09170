"""`ragwatch suggest`: proposes canaries out of judged traffic, for a person to accept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from ragwatch.config import Config, load
from ragwatch.core.suggest import suggest, suite_text
from ragwatch.errors import ConfigError, StoreError
from ragwatch.ports import Found, Query
from ragwatch.stores.reader import Reader
from ragwatch.stores.search import found_of, statement
from ragwatch.telemetry import configure_logging

NOTHING = 3
LATEST = 20_000  # verdicts that are looked at


@click.command("suggest")
@click.option("--config", "path", type=click.Path(path_type=Path), required=True, help="Configuration file (YAML).")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="Most that are proposed.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write the suite there; else stdout.")
def suggest_command(*, path: Path, limit: int, out: Path | None) -> int:
    """Propose canaries out of judged traffic: frequent questions, with the contexts that supported good answers.

    The daemon may run meanwhile; nothing is written but the suite. An existing file is left alone. Questions that are
    canaries already are left out.

    Exit code 3 when there is nothing to propose yet.
    """
    configure_logging("error")
    config = load(path)
    known = [canary.query for suite in config.canaries for canary in suite.canaries]
    made = suggest(((each.verdict, each.sample) for each in _verdicts(config)), known=known, limit=limit)
    if not made:
        click.echo("nothing to propose yet: no question has an answer that its contexts fully support", err=True)
        return NOTHING
    if out is None:
        click.echo(suite_text(made), nl=False)
        return 0
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(suite_text(made))
    except FileExistsError as error:
        raise ConfigError(f"--out {out}: is there already; a person may have worked on it") from error
    except OSError as error:
        raise ConfigError(f"--out {out}: cannot be written: {error.strerror}") from error
    click.echo(f"wrote {len(made)} suggestions to {out}; look at each before it becomes a canary", err=True)
    return 0


def _verdicts(config: Config) -> Iterator[Found]:
    """The latest verdicts, through a connection that only reads: the daemon holds the lock of its state directory."""
    if config.store.kind != "sqlite":
        raise ConfigError(f"store.kind: suggestions are read from sqlite only, not from {config.store.kind}")
    database = config.settings.state / "ragwatch.db"
    if not database.is_file():
        raise StoreError(f"state: {database} is not there; let ragwatch run, and judge some traffic first")
    reader = Reader(database)
    try:
        yield from map(found_of, reader.rows(*statement(Query(outcome="judged", limit=LATEST))))
    finally:
        reader.close()
