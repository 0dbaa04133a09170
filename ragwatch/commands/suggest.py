"""`ragwatch canary suggest`: proposes canaries from judged traffic, for a person to review."""

from __future__ import annotations

from pathlib import Path

import click

from ragwatch.commands.state_reader import MAX_VERDICTS, verdicts
from ragwatch.config import load
from ragwatch.core.suggest import suggest, suite_text
from ragwatch.errors import ConfigError
from ragwatch.ports import Query
from ragwatch.telemetry import configure_logging

NOT_ENOUGH_DATA = 3


def suggest_command(*, path: Path, limit: int, out: Path | None) -> int:
    """Propose canaries from judged traffic: frequent questions, with the contexts that supported good answers."""
    configure_logging("error")
    config = load(path)
    queries = [canary.query for suite in config.canaries for canary in suite.canaries]
    judge = config.judges[0].place.name  # one verdict per answer, by the judge that reads all of them
    judged = verdicts(config, Query(judge=judge, outcome="judged", limit=MAX_VERDICTS))
    canaries = suggest(((stored.verdict, stored.sample) for stored in judged), known=queries, limit=limit)
    if not canaries:
        click.echo("nothing to propose yet: no question has an answer that its contexts fully support", err=True)
        return NOT_ENOUGH_DATA
    if out is None:
        click.echo(suite_text(canaries), nl=False)
        return 0
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(suite_text(canaries))
    except FileExistsError as error:
        raise ConfigError(f"--out {out}: already exists and is not overwritten") from error
    except OSError as error:
        raise ConfigError(f"--out {out}: cannot be written: {error.strerror}") from error
    click.echo(f"wrote {len(canaries)} suggestions to {out}; review each before it becomes a canary", err=True)
    return 0
