"""`ragwatch run`: the daemon; with `--once`, everything that is there now, and then the end."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from ragwatch.config import Config, KindConfig, load
from ragwatch.daemon import Daemon
from ragwatch.daemon.once import Once
from ragwatch.telemetry import configure_logging


@click.command()
@click.option("--config", "path", type=click.Path(path_type=Path), required=True, help="Configuration file (YAML).")
@click.option("--once", is_flag=True, help="Read what is there, judge it, print /metrics text and end.")
def run(path: Path, *, once: bool) -> None:
    """Watch the configured sources and serve /metrics until SIGTERM.

    SIGTERM drains and exits 0, a second one ends at once; SIGHUP reloads the configuration.
    """
    config = load(path)
    configure_logging(config.settings.log.level, human=config.settings.log.format == "text")
    if once:
        click.echo(asyncio.run(_once(from_the_beginning(config))), nl=False)
    else:
        asyncio.run(_serve(config, path))


async def _serve(config: Config, path: Path) -> None:
    daemon = Daemon(config, path=path)
    daemon.listen_to_signals()
    await daemon.run(lambda address: click.echo(f"ragwatch serves {address}/metrics", err=True))


async def _once(config: Config) -> str:
    columns = (TextColumn("reading and judging"), BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not sys.stderr.isatty(), transient=True) as progress:
        task = progress.add_task("", total=None)
        return await Once(config).run(lambda text: progress.update(task, description=text))


def from_the_beginning(config: Config) -> Config:
    """The same configuration, with sources that start at the beginning: `--once` is asked to read what is there."""

    def begin(source: KindConfig) -> KindConfig:
        if "start" not in type(source.options).model_fields:
            return source
        return replace(source, options=source.options.model_copy(update={"start": "beginning"}))

    return replace(config, sources=tuple(begin(each) for each in config.sources))
