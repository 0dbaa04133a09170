"""`ragwatch canary suggest`: proposes canaries from judged traffic, for a person to review."""

from __future__ import annotations

import click

from ragwatch.commands.options.offline import SuggestArguments
from ragwatch.commands.state_reader import MAX_VERDICTS, labels_by_key, last_index_event, verdicts
from ragwatch.config import load
from ragwatch.core.suggest import propose, suite_text, summary_lines
from ragwatch.errors import ConfigError
from ragwatch.ports import Query
from ragwatch.telemetry import configure_logging

NOT_ENOUGH_DATA = 3


def suggest_command(given: SuggestArguments) -> int:
    """Propose canaries from judged traffic, with the contexts that people or the judge found right."""
    configure_logging("error")
    config = load(given.path)
    config.require_texts("canary suggest")
    queries = [canary.query for suite in config.canaries for canary in suite.canaries]
    judge = config.judges[0].place.name  # one verdict per answer, by the judge that reads all of them
    judged = verdicts(config, Query(judge=judge, outcome="judged", limit=MAX_VERDICTS))
    proposal = propose(
        ((stored.verdict, stored.sample) for stored in judged),
        known=queries,
        limit=given.limit,
        labels=labels_by_key(config),
        indexed=f"{given.indexed:%Y-%m-%d}" if given.indexed is not None else last_index_event(config),
    )
    if not proposal.suggestions:
        click.echo("nothing to propose yet: no question has an answer that its contexts fully support", err=True)
        return NOT_ENOUGH_DATA
    if given.out is None:
        click.echo(suite_text(proposal), nl=False)
        return 0
    try:
        with given.out.open("x", encoding="utf-8") as file:
            file.write(suite_text(proposal))
    except FileExistsError as error:
        raise ConfigError(f"--out {given.out}: already exists and is not overwritten") from error
    except OSError as error:
        raise ConfigError(f"--out {given.out}: cannot be written: {error.strerror}") from error
    click.echo(
        f"wrote {len(proposal.suggestions)} suggestions to {given.out}; review each before it becomes a canary",
        err=True,
    )
    for line in summary_lines(proposal):
        click.echo(line, err=True)
    return 0
