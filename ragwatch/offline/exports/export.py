"""`ragwatch export`: writes stored verdicts, or failing answers, to files for other programs."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path

import click
from click.core import ParameterSource

from ragwatch.config import Config, load
from ragwatch.errors import ConfigError
from ragwatch.model.quantities import Quantity, quantity_of
from ragwatch.offline.exports.failing_answers import FailingQuery, read_failing, regression_set
from ragwatch.offline.exports.parquet_files import ParquetDataset, Written
from ragwatch.offline.exports.parquet_rows import RowRules
from ragwatch.offline.state_reader import state_reader
from ragwatch.redaction.redactor import Redactor
from ragwatch.stores.days import DayReader
from ragwatch.stores.engine import DAY
from ragwatch.stores.kept_texts import Texts
from ragwatch.telemetry import configure_logging
from ragwatch.terminal.given import judge_name, require_route, seconds_of, write_new
from ragwatch.terminal.options.offline import ExportArguments

NOTHING_STORED = 3


def export(given: ExportArguments) -> int:
    """Write the verdicts, or the failing answers, in a store. Returns 0, or 3 if there are none."""
    configure_logging("error")
    _check_kinds(given.parquet, given.kind, failing=given.failing, out=given.out)
    config = load(given.path)
    for route in given.routes:
        require_route(config, route)
    if given.kind is not None:
        return export_failing(config, given.kind, given)
    if given.parquet is None:
        raise ConfigError("--parquet: is missing; give the directory to write to, or --failing with --as")
    return _export_parquet(
        config, given.parquet, _rules(config, given.texts, given.metadata), given.routes, given.since
    )


def _check_kinds(parquet: Path | None, kind: str | None, *, failing: bool, out: Path | None) -> None:
    """Refuse options that do not say, or say twice, what to write."""
    if failing != (kind is not None):
        missing, given = ("--as", "--failing") if failing else ("--failing", "--as")
        raise ConfigError(f"{missing}: is missing; {given} needs it")
    if parquet is not None and (failing or out is not None):
        raise ConfigError("--parquet: writes all verdicts to its directory; leave --failing, --as and --out out")
    for name in ("judge", "quantity", "limit") if parquet is not None else ():
        if click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise ConfigError(f"--{name}: is for --failing, and --parquet writes all verdicts; leave it out")


def _export_parquet(config: Config, parquet: Path, rules: RowRules, routes: Sequence[str], since: str | None) -> int:
    start = -math.inf if since is None else math.floor(_start(since) / DAY) * DAY  # files are of whole days
    dataset = ParquetDataset(parquet, rules)
    total = Written()
    with state_reader(config) as store, dataset.locked():
        reader = DayReader(store.engine)
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


def _rules(config: Config, texts: str, metadata: Sequence[str]) -> RowRules:
    """Return what rows contain; `ConfigError` if texts are to be exported that the store does not keep."""
    redact = None
    if texts != "none":
        if config.texts == Texts.NONE:
            raise ConfigError("--texts redacted: store.texts is none, so that no texts are kept; give --texts none")
        redact = (config.settings.redaction.redactor() or Redactor()).redact
    return RowRules(redact, config.texts, tuple(dict.fromkeys(metadata)))


def export_failing(config: Config, kind: str, given: ExportArguments) -> int:
    """Write the failing answers in the store of a configuration. Returns 0, or 3 if there are none."""
    query = _query(config, given)
    if given.out is not None and given.out.exists():
        raise ConfigError(f"--out {given.out}: already exists and is not overwritten")
    selected = read_failing(config, query)
    regression = regression_set(kind, selected.answers)
    for reason, count in {**selected.left_out, **regression.left_out}.items():
        if count:
            click.echo(f"left out: {count} answers {reason}", err=True)
    if selected.limited:
        click.echo("there are more questions: these are the newest; see --limit", err=True)
    if not regression.rows:
        click.echo("no failing answer is stored of which this can be made; nothing was written", err=True)
        return NOTHING_STORED
    if given.out is None:
        click.echo(regression.text.encode("utf-8", "replace"), nl=False)  # a log may contain lone surrogates
    else:
        write_new(given.out, regression.text, 0o600)
        click.echo(f"wrote {regression.rows} questions to {given.out}", err=True)
    return 0


def _query(config: Config, given: ExportArguments) -> FailingQuery:
    if config.texts == Texts.NONE:
        raise ConfigError("store.texts: is none, so that no texts are kept; set it to failing, and wait for answers")
    judge = judge_name(config, given.judge)
    names = (*map(str, Quantity), *(criterion.name for criterion in config.settings.criteria))
    if given.quantity not in (None, *names):
        raise ConfigError(f"--quantity {given.quantity}: is not a quantity; use one of: {', '.join(names)}")
    return FailingQuery(
        judge=judge,
        quantity=None if given.quantity is None else quantity_of(given.quantity),
        routes=frozenset(given.routes),
        since=None if given.since is None else _start(given.since),
        limit=given.limit,
    )


def _start(since: str) -> float:
    return time.time() - seconds_of(f"--since {since}", since)
