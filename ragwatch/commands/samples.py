"""Samples: rows of JSONL files, and the judge that reads them, for commands that work without a daemon."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import click
from rich.console import Console
from rich.progress import Progress

from ragwatch.commands.input_files import InputFiles
from ragwatch.commands.record_files import records
from ragwatch.commands.rejects import Rejects
from ragwatch.commands.terminal import naming, plain
from ragwatch.config import Config, JudgeConfig, judge_of
from ragwatch.config.text import resolve_secrets, value_of
from ragwatch.core.sample import Draw, Sample
from ragwatch.core.sampling import key_of
from ragwatch.core.verdict import Unjudged, UnjudgedReason, Verdict
from ragwatch.errors import ConfigError, FormatError
from ragwatch.formats.shape import Record
from ragwatch.judges import KINDS
from ragwatch.pipeline.budget_account import InMemoryBudget
from ragwatch.pipeline.reading import Deferred, DrawReader
from ragwatch.ports import Judge, JudgeContext
from ragwatch.telemetry import Telemetry

Thing = TypeVar("Thing")
TIMEOUT_SECONDS = 120.0
AT_ONCE = 16
PATIENCE = 3  # times that a reading is tried again while a judge is out of order
LONGEST_WAIT = 30.0
_QUESTIONS = frozenset({"query", "user_query", "user_input", "prompt", "input", "messages", "q"})
"""Where a row may keep its question under another name: it is then no row without one."""


class SampleFiles:
    """Samples of JSONL files; rows that cannot be read are counted, and told on stderr once for each kind of error.

    Args:
        intended: How the files are to be read.
    """

    def __init__(self, intended: InputFiles | None = None) -> None:
        self.intended = intended or InputFiles()
        self._texts: dict[Path, Any] = {}
        self.rejected: Counter[str] = Counter()

    def samples(self, name: str, stream: BinaryIO) -> Iterator[Sample]:
        """The samples of one stream, in its order."""
        folder, rejects = Path(name).parent, Rejects()
        parse, read, redactor = self.intended.parser(name), self.intended.reader(name).read, self.intended.redactor
        for number, line in _named(records(stream), name):
            try:
                if isinstance(line, FormatError):
                    raise line
                sample = read(self._filled(parse(line)[0], folder), f"{name}:{number}")
            except FormatError as error:
                self.rejected[error.reason] += 1
                rejects.add(number, error)
                continue
            yield sample if redactor is None else redactor.redact_sample(sample)[0]
        for told in rejects.lines(name):
            click.echo(plain(told), err=True)

    def draw(self, sample: Sample) -> Draw:
        """A sample as it is judged: each is drawn for certain."""
        at = time.time() if sample.at is None else sample.at
        return Draw(key_of("judge", sample.id), sample, "judge", self.intended.route(sample.route), 1.0, at)

    def _filled(self, record: Record, folder: Path) -> Record:
        """A row of a labelled set, which may have no question, and keep its contexts in a file beside it."""
        refers = "context_refs" in record and not record.get("contexts")
        if not refers and "contexts" not in record:
            return record
        if "question" not in record and "answer" in record and _QUESTIONS.isdisjoint(record):
            record = {**record, "question": None}
        return {**record, "contexts": self._looked_up(record, folder)} if refers else record

    def _looked_up(self, record: Record, folder: Path) -> list[Any]:
        """The contexts that a row names."""
        references, docs = record["context_refs"], record.get("docs")
        if not isinstance(docs, str):
            if not references:
                return []
            raise FormatError("missing_field", "docs", "is missing; which file holds what `context_refs` names?")
        path = folder / docs
        if path not in self._texts:
            try:
                self._texts[path] = json.loads(path.read_text(encoding="utf-8"))
            except (OSError, ValueError) as error:
                raise FormatError("missing_field", "docs", f"{path.name} cannot be read: {error}") from error
        texts = self._texts[path]
        named = isinstance(references, list) and all(isinstance(each, str) for each in references)
        if not isinstance(texts, dict) or not named:
            raise FormatError("wrong_type", "context_refs", f"must be names in the mapping that {path.name} holds")
        absent = [each for each in references if each not in texts]
        if absent:
            raise FormatError("missing_field", "context_refs", f"{absent[0]!r} is not in {path.name}")
        return [texts[each] for each in references]


def _named(found: Iterator[Thing], name: str) -> Iterator[Thing]:
    with naming(name):
        yield from found


def judge_of_kind(kind: str, settings: Sequence[str] = ()) -> Judge:
    """A judge of a kind, with options as they would stand in a configuration file.

    Args:
        kind: One of `judges.KINDS`.
        settings: `KEY=VALUE` each.

    Raises:
        ConfigError: A setting is wrong, or the judge cannot be built with them.
    """
    item: dict[str, Any] = {"name": kind, "kind": kind}
    for each in settings:
        key, equals, value = each.partition("=")
        if not equals:
            raise ConfigError(f"--set {each}: is not KEY=VALUE, such as support=0.5")
        item[key] = value_of(value)
    return built(judge_of(resolve_secrets(item, Path.cwd())))


def judge_named(config: Config | None, name: str | None, settings: Sequence[str] = ()) -> Judge:
    """The judge that a command is to use.

    Args:
        config: Its judges go first.
        name: One of them, or a kind; None for the first of them, or `lexical`.
        settings: Options of a kind, `KEY=VALUE` each.

    Raises:
        ConfigError: There is none of this name, or a configured one is to have other options.
    """
    configured = {} if config is None else {each.place.name: each for each in config.judges}
    if name is None:
        name = next(iter(configured), "lexical")
    if name in configured:
        if settings:
            raise ConfigError(
                f"--set: {name} is a judge of the configuration; change its options there, or name a kind"
            )
        return built(configured[name])
    if name not in KINDS:
        known = ", ".join(dict.fromkeys([*configured, *sorted(KINDS)]))
        raise ConfigError(f"--judge {name}: is neither a configured judge nor a kind; use one of: {known}")
    return judge_of_kind(name, settings)


def built(each: JudgeConfig) -> Judge:
    """A configured judge, outside of the daemon: nobody keeps its accounts.

    Raises:
        ConfigError: It cannot be built as configured.
    """
    return KINDS[each.kind].build(
        each.options, name=each.place.name, context=JudgeContext(Telemetry(), InMemoryBudget(), time.time)
    )


async def read_all(
    rows: SampleFiles, streams: Sequence[BinaryIO], made: Judge, tell: Callable[[Verdict], None] | None = None
) -> list[Verdict]:
    """Judge every sample of the streams, and release the judge. `tell` hears of each verdict, in order."""
    reader = DrawReader(made, timeout_seconds=TIMEOUT_SECONDS, telemetry=Telemetry())
    verdicts: list[Verdict] = []
    console = Console(stderr=True)
    try:
        # What is told goes to stdout, which the bar would catch, fold, and move to stderr.
        bar = Progress(console=console, disable=not _watched(console, tell), transient=True, redirect_stdout=False)
        with bar as progress:
            for stream in streams:
                samples = list(rows.samples(getattr(stream, "name", "stdin"), stream))
                for first in progress.track(range(0, len(samples), AT_ONCE), description="judging"):
                    few = await asyncio.gather(
                        *(_settled(reader, rows.draw(each)) for each in samples[first : first + AT_ONCE])
                    )
                    if tell:
                        for verdict in few:
                            tell(verdict)
                    verdicts += few
    finally:
        await made.close()
    return verdicts


def _watched(console: Console, tell: object) -> bool:
    """Whether somebody looks at a bar: verdicts that are told on the same terminal are progress enough."""
    return console.is_terminal and not (tell and sys.stdout.isatty())


async def _settled(reader: DrawReader, draw: Draw) -> Verdict:
    """The verdict on a draw. There is no queue to go back to, so an outage is waited out for a little."""
    outcome = await reader.read(draw)
    for _ in range(PATIENCE):
        if not isinstance(outcome, Deferred):
            return outcome
        await asyncio.sleep(min(LONGEST_WAIT, max(1.0, reader.judge.ready_in())))
        outcome = await reader.read(draw)
    if not isinstance(outcome, Deferred):
        return outcome
    known = outcome.reason in set(UnjudgedReason)
    return Unjudged(draw, reader.no_reading, UnjudgedReason(outcome.reason) if known else UnjudgedReason.UNAVAILABLE)
