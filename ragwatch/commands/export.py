"""`ragwatch export`: writes stored verdicts, or failing answers, to files for other programs."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path

import click
from click.core import ParameterSource

from ragwatch.commands.export_failing import export_failing, known_routes
from ragwatch.commands.options.offline import ExportArguments
from ragwatch.commands.parquet_files import ParquetDataset, Written
from ragwatch.commands.parquet_rows import RowRules
from ragwatch.commands.state_reader import day_reader
from ragwatch.config import Config, load
from ragwatch.core.redaction.redactor import Redactor
from ragwatch.core.units import duration_seconds
from ragwatch.errors import ConfigError
from ragwatch.stores.kept_texts import Texts
from ragwatch.stores.limits import DAY
from ragwatch.telemetry import configure_logging

NOTHING_STORED = 3


def export(given: ExportArguments) -> int:
    """Write the verdicts, or the failing answers, in a store. Returns 0, or 3 if there are none."""
    configure_logging("error")
    _check_kinds(given.parquet, given.kind, failing=given.failing, out=given.out)
    config = load(given.path)
    known_routes(config, given.routes)
    if given.kind is not None:
        return export_failing(config, given.kind, given)
    if given.parquet is None:
        raise ConfigError("--parquet: is missing; give the directory to write to, or --failing with --as")
    return _export_parquet(
        config, given.parquet, _rules(config, given.texts, given.metadata), given.routes, given.since
    )


def _check_kinds(parquet: Path | None, kind: str | None, *, failing: bool, out: Path | None) -> None:
    """Refuse options that do not say, or say twice, what to write.

    Raises:
        ConfigError: They do.
    """
    if failing != (kind is not None):
        missing, given = ("--as", "--failing") if failing else ("--failing", "--as")
        raise ConfigError(f"{missing}: is missing; {given} needs it")
    if parquet is not None and (failing or out is not None):
        raise ConfigError("--parquet: writes all verdicts to its directory; leave --failing, --as and --out out")
    if parquet is not None and (useless := _given("judge", "quantity", "limit")):
        raise ConfigError(f"--{useless[0]}: is for --failing, and --parquet writes all verdicts; leave it out")


def _given(*names: str) -> list[str]:
    """Return which options of these stand on the command line, whatever their defaults are."""
    context = click.get_current_context()
    return [name for name in names if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]


def _export_parquet(config: Config, parquet: Path, rules: RowRules, routes: Sequence[str], since: str | None) -> int:
    start = -math.inf if since is None else _day_before(since)
    dataset = ParquetDataset(parquet, rules)
    total = Written()
    with day_reader(config) as reader, dataset.locked():
        until = reader.newest_seq()  # what is settled meanwhile is left to the next run
        for day in reader.days(start):
            written = dataset.add_day(reader, day, until, frozenset(routes))
            total.rows += written.rows
            total.files += written.files
            total.unchanged += written.unchanged
        unreadable = reader.unreadable
    if unreadable:
        click.echo(f"{unreadable} damaged rows cannot be read and are left out", err=True)
    if not total.files and not total.unchanged:
        click.echo("no verdict is stored yet, or none of these routes and days; nothing was written", err=True)
        return NOTHING_STORED
    click.echo(f"{total.rows} verdicts added, {total.files} files written, {total.unchanged} unchanged")
    return 0


def _day_before(since: str) -> float:
    """Return the beginning of the day of an instant: files are of whole days."""
    try:
        seconds = float(str(duration_seconds(since)))
    except ValueError as error:
        raise ConfigError(f"--since {since}: {error}") from error
    return math.floor((time.time() - seconds) / DAY) * DAY


def _rules(config: Config, texts: str, metadata: Sequence[str]) -> RowRules:
    """Return what rows contain.

    Raises:
        ConfigError: Texts are to be exported that the store does not keep.
    """
    redact = None
    if texts != "none":
        if config.texts == Texts.NONE:
            raise ConfigError("--texts redacted: store.texts is none, so that no texts are kept; give --texts none")
        redact = (config.settings.redaction.redactor() or Redactor()).redact
    return RowRules(redact, config.texts, tuple(dict.fromkeys(metadata)))
