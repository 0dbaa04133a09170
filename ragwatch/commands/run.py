"""`ragwatch run`: runs the daemon; with `--once`, reads and judges the existing records and exits."""

import signal
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from ragwatch.commands.check_records import pieces_fault
from ragwatch.config import Config, load
from ragwatch.config.validation import KindConfig
from ragwatch.daemon import Daemon
from ragwatch.daemon.once import OneShotRun, SourceProgress
from ragwatch.errors import ConfigError
from ragwatch.sources.record_options import reads_existing
from ragwatch.stores import postgres, sqlite
from ragwatch.telemetry import configure_logging
from ragwatch.terminal.event_loop import run_async
from ragwatch.terminal.options.administration import RunArguments
from ragwatch.terminal.output import say

OK, FAILURE, NOT_ENOUGH_DATA = 0, 1, 3
FEW_DRAWS = 30
"""Sampled answers below which an interval says little, and `run --once` says what to change."""


def run(given: RunArguments) -> int:
    """Watch the configured sources and serve /metrics until SIGTERM; with `once`, exit when all records are judged."""
    if given.state is not None and not given.once:
        raise click.UsageError("--state is for --once; the daemon's state directory is `state` in the configuration")
    config = load(given.path)
    configure_logging(config.settings.log.level, human=config.settings.log.format == "text")
    if not given.once:
        run_async(_serve(config, given.path))
        return OK
    with _state_directory(given.state, config) as directory:
        once_config = replace(  # it reads existing records, which may be whole documents, into a state of its own
            config,
            settings=config.settings.model_copy(update={"state": directory}),
            store=_private_store(config),
            sources=tuple(replace(source, options=reads_existing(source.options)) for source in config.sources),
        )
        text, once_run = run_async(_run_once(once_config))
    click.echo(text, nl=False)
    code = _report_problems(once_run.read)
    if code != OK:
        return code
    for judge, count in once_run.waiting.items():
        say(
            f"ragwatch: judge {judge}: {count:,} of {once_run.drawn:,.0f} sampled answers are not judged, because it "
            "does not answer; `ragwatch check` says why"
        )
    _report_few_draws(once_run)
    return FAILURE if once_run.waiting else OK


def _private_store(config: Config) -> KindConfig:
    """The store of a run with `--once`: a file in its state directory, also where workers share a database."""
    options = config.store.options
    if not isinstance(options, postgres.Options):
        return config.store
    return KindConfig("sqlite", sqlite.Options(texts=options.texts, encryption=options.encryption))


async def _serve(config: Config, path: Path) -> None:
    daemon = Daemon(config, path=path)
    daemon.listen_to_signals()
    await daemon.run(lambda address: say(f"ragwatch serves {address}/metrics"), say)


async def _run_once(config: Config) -> tuple[str, OneShotRun]:
    columns = (TextColumn("reading and judging"), BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    console = Console(stderr=True)
    once = OneShotRun(config)
    with Progress(*columns, console=console, disable=not sys.stderr.isatty(), transient=True) as progress:
        task = progress.add_task("", total=None)
        text = await once.run(lambda text: progress.update(task, description=text))
    return text, once


def _counts(label: str, counts: Mapping[str, float]) -> str:
    """Counts by reason as text after a label; empty without counts."""
    return label + ", ".join(f"{count:,.0f} {reason}" for reason, count in sorted(counts.items())) if counts else ""


@contextmanager
def _state_directory(state: Path | None, config: Config) -> Iterator[Path]:
    """The state directory of a run with `--once`: the one of `--state`, or a temporary one."""
    if state is not None:
        if state.resolve() == config.settings.state.resolve():
            say(
                "ragwatch: --state is the `state` of the configuration: the records that this run reads are stored "
                "there, and the daemon will continue after them"
            )
        yield state
        return
    with _exit_on_sigterm():
        try:
            temporary = tempfile.TemporaryDirectory(prefix="ragwatch-once-")
        except OSError as error:
            raise ConfigError(f"cannot create a temporary state directory: {error}; name one with --state") from error
        with temporary as directory:
            yield Path(directory)


@contextmanager
def _exit_on_sigterm() -> Iterator[None]:
    """Make SIGTERM raise SystemExit, so that the temporary directory is removed; by default it kills the process."""

    def leave(number: int, _: object) -> NoReturn:
        sys.exit(128 + number)

    handler = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, handler)


def _report_problems(sources: Iterable[SourceProgress]) -> int:
    """Report on stderr the sources that could not be read. Returns the exit code."""
    code, records = OK, 0.0
    for source in sources:
        records += source.seen
        for problem in source.problems:
            code = FAILURE
            say(f"ragwatch: source {source.source}: {problem}")
        if (fault := pieces_fault(source.parts)) is not None:
            code = FAILURE
            say(f"ragwatch: source {source.source}: {fault}")
        elif source.is_unreadable:
            code = FAILURE
            say(
                f"ragwatch: source {source.source}: none of {source.seen:,.0f} records could be read"
                f"{_counts(': ', source.rejected)}{_counts('; lines left out: ', source.left_out)}"
            )
            if (first := source.example) is not None:
                say(f"  first: {first.file}:{first.line}: {first.detail}")
                say(f"  `ragwatch init --print {first.file}` proposes a mapping")
        elif source.fields_lost:
            lost = _counts("", source.fields_lost)
            say(f"ragwatch: source {source.source}: fields that cannot be read, left out: {lost}")
        elif source.left_out:
            say(f"ragwatch: source {source.source}: lines left out{_counts(': ', source.left_out)}")
    if code == OK and not records:
        say("ragwatch: nothing to read: no file matches the sources, or all are empty; `ragwatch check` names them")
        return NOT_ENOUGH_DATA
    return code


def _report_few_draws(once_run: OneShotRun) -> None:
    """Say on stderr that more answers of the log could have been sampled, if few were."""
    answers = sum(source.seen - sum(source.rejected.values()) for source in once_run.read)
    if once_run.drawn < min(FEW_DRAWS, answers):
        say(
            f"ragwatch: {once_run.drawn:,.0f} of {answers:,.0f} answers were sampled, too few to estimate from; "
            "for a trial on a small log set `sampling.probability: 1.0` in the configuration"
        )
