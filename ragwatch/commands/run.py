"""`ragwatch run`: the daemon; with `--once`, a trial: everything that is there now, and then the end."""

from __future__ import annotations

import asyncio
import signal
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from ragwatch.config import Config, KindConfig, load
from ragwatch.daemon import Daemon
from ragwatch.daemon.once import OneShotRun, SourceProgress
from ragwatch.errors import ConfigError
from ragwatch.telemetry import configure_logging

FINE, BAD, TOO_LITTLE = 0, 1, 3


def run(path: Path, *, once: bool, state: Path | None) -> int:
    """Watch the configured sources and serve /metrics until SIGTERM; with `once`, read what is there and end."""
    if state is not None and not once:
        raise click.UsageError("--state is for --once; the daemon's state directory is `state` in the configuration")
    config = load(path)
    configure_logging(config.settings.log.level, human=config.settings.log.format == "text")
    if not once:
        asyncio.run(_serve(config, path))
        return FINE
    with _kept_in(state, config) as directory:
        settings = config.settings.model_copy(update={"state": directory})
        text, read = asyncio.run(_once(from_the_beginning(replace(config, settings=settings))))
    click.echo(text, nl=False)
    return _verdict(read)


async def _serve(config: Config, path: Path) -> None:
    def tell(line: str) -> None:
        click.echo(line, err=True)

    daemon = Daemon(config, path=path)
    daemon.listen_to_signals()
    await daemon.run(lambda address: tell(f"ragwatch serves {address}/metrics"), tell)


async def _once(config: Config) -> tuple[str, tuple[SourceProgress, ...]]:
    columns = (TextColumn("reading and judging"), BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    console = Console(stderr=True)
    once = OneShotRun(config)
    with Progress(*columns, console=console, disable=not sys.stderr.isatty(), transient=True) as progress:
        task = progress.add_task("", total=None)
        text = await once.run(lambda text: progress.update(task, description=text))
    return text, once.read


@contextmanager
def _kept_in(state: Path | None, config: Config) -> Iterator[Path]:
    """The state directory of a trial: the one that was asked for, or one that is gone afterwards."""
    if state is not None:
        if state.resolve() == config.settings.state.resolve():
            click.echo(
                "ragwatch: --state is the `state` of the configuration: what this run reads is kept there, "
                "and the daemon will go on behind it",
                err=True,
            )
        yield state
        return
    try:
        scratch = tempfile.TemporaryDirectory(prefix="ragwatch-once-")
    except OSError as error:
        raise ConfigError(f"no temporary directory for the trial's state: {error}; name one with --state") from error
    with scratch as directory, _ended_by_sigterm():
        yield Path(directory)


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM raise, so that what must be tidied up is; by default it ends the process on the spot."""

    def end(number: int, _: object) -> NoReturn:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _verdict(read: Iterable[SourceProgress]) -> int:
    """Say on stderr why there are no figures. Returns the exit code."""
    code, seen = FINE, 0.0
    for source in read:
        seen += source.seen
        for problem in source.problems:
            code = BAD
            click.echo(f"ragwatch: source {source.source}: {problem}", err=True)
        if source.is_unreadable:
            code = BAD
            reasons = ", ".join(f"{count:,.0f} {reason}" for reason, count in sorted(source.rejected.items()))
            click.echo(
                f"ragwatch: source {source.source}: none of {source.seen:,.0f} records could be read: {reasons}",
                err=True,
            )
            if (first := source.example) is not None:
                click.echo(f"  first: {first.file}:{first.line}: {first.detail}", err=True)
                click.echo(f"  `ragwatch map {first.file}` proposes a mapping", err=True)
    if code == FINE and not seen:
        click.echo("ragwatch: nothing to read: no file matches the sources, or all are empty", err=True)
        return TOO_LITTLE
    return code


def from_the_beginning(config: Config) -> Config:
    """The same configuration, with sources that start at the beginning: `--once` is asked to read what is there."""

    def begin(source: KindConfig) -> KindConfig:
        if "start" not in type(source.options).model_fields:
            return source
        return replace(source, options=source.options.model_copy(update={"start": "beginning"}))

    return replace(config, sources=tuple(begin(each) for each in config.sources))
