"""`ragwatch canary suggest`: proposes canaries out of judged traffic, for a person to accept."""

from __future__ import annotations

from pathlib import Path

import click

from ragwatch.commands.stored import LATEST, verdicts
from ragwatch.config import load
from ragwatch.core.suggest import suggest, suite_text
from ragwatch.errors import ConfigError
from ragwatch.ports import Query
from ragwatch.telemetry import configure_logging

NOTHING = 3


def suggest_command(*, path: Path, limit: int, out: Path | None) -> int:
    """Propose canaries out of judged traffic: frequent questions, with the contexts that supported good answers."""
    configure_logging("error")
    config = load(path)
    known = [canary.query for suite in config.canaries for canary in suite.canaries]
    judge = config.judges[0].place.name  # one word on each answer, by the judge that reads them all
    found = verdicts(config, Query(judge=judge, outcome="judged", limit=LATEST))
    made = suggest(((each.verdict, each.sample) for each in found), known=known, limit=limit)
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
