"""`ragwatch export --failing`: writes failing answers as a regression set."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import click

from ragwatch.commands.failing_answers import FailingAnswers, FailingQuery, read_failing
from ragwatch.commands.options.offline import ExportArguments
from ragwatch.commands.regression_set import RegressionSet, regression_set
from ragwatch.config import Config
from ragwatch.core.sample import OTHER
from ragwatch.core.units import duration_seconds
from ragwatch.errors import ConfigError
from ragwatch.model.quantities import Quantity, quantity_of
from ragwatch.stores.kept_texts import Texts

NOTHING_FAILS = 3


def export_failing(config: Config, kind: str, given: ExportArguments) -> int:
    """Write the failing answers in the store of a configuration. Returns 0, or 3 if there are none."""
    query = _query(config, given)
    if given.out is not None and given.out.exists():
        raise ConfigError(f"--out {given.out}: already exists and is not overwritten")
    selected = read_failing(config, query)
    regression = regression_set(kind, selected.answers)
    for line in _left_out(selected, regression):
        click.echo(line, err=True)
    if not regression.rows:
        click.echo("no failing answer is stored of which this can be made; nothing was written", err=True)
        return NOTHING_FAILS
    if given.out is None:
        click.echo(regression.text.encode("utf-8", "replace"), nl=False)  # a log may contain lone surrogates
    else:
        _write(given.out, regression.text)
        click.echo(f"wrote {regression.rows} questions to {given.out}", err=True)
    return 0


def _query(config: Config, given: ExportArguments) -> FailingQuery:
    if config.texts == Texts.NONE:
        raise ConfigError("store.texts: is none, so that no texts are kept; set it to failing, and wait for answers")
    judges = [judge.place.name for judge in config.judges]
    if given.judge not in (None, *judges):
        raise ConfigError(f"--judge {given.judge}: is not configured; use one of: {', '.join(judges)}")
    names = (*map(str, Quantity), *(criterion.name for criterion in config.settings.criteria))
    if given.quantity not in (None, *names):
        raise ConfigError(f"--quantity {given.quantity}: is not a quantity; use one of: {', '.join(names)}")
    return FailingQuery(
        judge=given.judge or judges[0],
        quantity=None if given.quantity is None else quantity_of(given.quantity),
        routes=frozenset(given.routes),
        since=None if given.since is None else _start(given.since),
        limit=given.limit,
    )


def known_routes(config: Config, routes: Sequence[str]) -> None:
    """Refuse routes that are not configured.

    Raises:
        ConfigError: One is not.
    """
    known = (*config.settings.routes, OTHER)
    for route in routes:
        if route not in known:
            raise ConfigError(f"--route {route}: is not configured; use one of: {', '.join(known)}")


def _start(since: str) -> float:
    try:
        return time.time() - float(str(duration_seconds(since)))
    except ValueError as error:
        raise ConfigError(f"--since {since}: {error}") from error


def _left_out(selected: FailingAnswers, regression: RegressionSet) -> list[str]:
    counts = {
        "without stored texts": selected.without_text,
        "labelled by people as right": selected.right,
        "to a question that is there already": selected.repeated,
        **regression.left_out,
    }
    lines = [f"left out: {count} answers {reason}" for reason, count in counts.items() if count]
    return [*lines, "there are more questions: these are the newest; see --limit"] if selected.limited else lines


def _write(out: Path, text: str) -> None:
    try:
        file = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(file, "wb") as opened:
            opened.write(text.encode("utf-8", "replace"))
    except FileExistsError as error:
        raise ConfigError(f"--out {out}: already exists and is not overwritten") from error
    except OSError as error:
        raise ConfigError(f"--out {out}: cannot be written: {error.strerror}") from error
