"""`ragwatch check`: validates a configuration, then tries everything it names."""

from __future__ import annotations

import asyncio
import errno
import socket
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.table import Column, Table

from ragwatch import formats, judges, sources
from ragwatch.commands.log_warnings import ONE_A_LINE, of_rejects, of_samples, owner_of, unended
from ragwatch.commands.stored import has_started
from ragwatch.commands.terminal import shown
from ragwatch.config import Config, JudgeConfig, KindConfig, load
from ragwatch.config.canaries import SuiteConfig
from ragwatch.config.model import Settings
from ragwatch.core.sample import Context, Sample
from ragwatch.core.scores import faithfulness
from ragwatch.daemon.suites import suite_of
from ragwatch.errors import FormatError, RagwatchError
from ragwatch.formats.record import parse as parse_line
from ragwatch.formats.record import parse_behind_text
from ragwatch.pipeline.budget_account import InMemoryBudget
from ragwatch.ports import Batch, JudgeContext, Source
from ragwatch.telemetry import Telemetry, configure_logging

RECORDS = 100
FINE, DOUBTFUL, BAD = "ok", "warning", "failed"
_COLOURS = {FINE: "green", DOUBTFUL: "yellow", BAD: "red"}
_TRIAL = Sample(
    id="check",
    question="What colour is the door?",
    contexts=(Context("The door of the old mill is painted green."),),
    answer="The door of the old mill is green.",
)


@dataclass(frozen=True, slots=True)
class Finding:
    """What trying one thing showed."""

    subject: str
    state: str
    told: str


def check(path: Path) -> int:
    """Validate a configuration and try it: files, content, judges, endpoints of canaries, address."""
    configure_logging("error")
    findings = list(try_all(load(path)))
    table = Table("what", "state", Column("found", overflow="fold"))
    for each in findings:
        table.add_row(shown(each.subject), f"[{_COLOURS[each.state]}]{each.state}[/]", shown(each.told))
    Console(soft_wrap=True).print(table)
    return int(any(each.state == BAD for each in findings))


def try_all(config: Config) -> Iterator[Finding]:
    """Try every part of a configuration."""
    yield Finding("configuration", FINE, "every key is known and valid")
    yield _tried("state", lambda: _state(config.settings.state))
    owner = owner_of(config.settings.state)
    yield _tried("web.listen", lambda: _address(config.settings.web.listen, owner))
    for index, source in enumerate(config.sources):
        subject = f"sources[{index}]"
        yield _tried(subject, lambda source=source, subject=subject: _source(source, subject, config.settings))  # type: ignore[misc]  # bound now
        if (skipped := _skipped(source, config)) is not None:
            yield Finding(f"{subject}.start", DOUBTFUL, skipped)
    for index, judge in enumerate(config.judges):
        subject = f"judges[{index}]"
        yield _tried(subject, lambda judge=judge, subject=subject: asyncio.run(_judge(judge, subject)))  # type: ignore[misc]  # the same
    for index, suite in enumerate(config.canaries):
        subject = f"canaries[{index}]"
        yield _tried(subject, lambda suite=suite, subject=subject: asyncio.run(_suite(suite, subject)))  # type: ignore[misc]  # the same


def _tried(subject: str, attempt: Callable[[], Finding]) -> Finding:
    try:
        return attempt()
    except (RagwatchError, OSError) as error:
        return Finding(subject, BAD, str(error))


def _state(directory: Path) -> Finding:
    owner = owner_of(directory)
    if owner is not None:
        return Finding("state", DOUBTFUL, f"{directory} is in use by a running ragwatch (process {owner})")
    place = directory if directory.exists() else next(each for each in directory.parents if each.exists())
    with tempfile.TemporaryFile(dir=place):
        return Finding("state", FINE, f"{place} can be written")


def _address(listen: str, owner: str | None) -> Finding:
    host, _, port = listen.rpartition(":")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host.strip("[]"), int(port)))
        except OSError as error:
            if owner is None or error.errno != errno.EADDRINUSE:
                raise
            return Finding(
                "web.listen", DOUBTFUL, f"{listen} is in use, as it is while ragwatch runs (process {owner})"
            )
    return Finding("web.listen", FINE, f"{listen} is free")


def _source(each: KindConfig, subject: str, settings: Settings) -> Finding:
    options = each.options
    if "start" in type(options).model_fields:
        options = options.model_copy(update={"start": "beginning"})
    source: Source = sources.KINDS[each.kind].build(options)
    try:
        source.resume({})
        batch = source.read()
        while batch is not None and not batch.lines:
            source.commit(batch)
            batch = source.read()
        lag = source.lag()
    finally:
        source.close()
    if lag.problems:
        return Finding(subject, BAD, "; ".join(lag.problems))
    if batch is None:
        why = unended(getattr(options, "patterns", ())) or "no file matches, or all are empty"
        return Finding(subject, DOUBTFUL, f"nothing to read yet: {why}")
    return _content(options, batch, subject, settings)


def _skipped(each: KindConfig, config: Config) -> str | None:
    """How many records the very first start will not read; None where it will read all, or is over."""
    if getattr(each.options, "start", None) != "end":
        return None
    source: Source = sources.KINDS[each.kind].build(each.options)
    try:
        if has_started(config, source.name):
            return None
        source.resume({})
        source.read()
        skipped = source.lag().skipped
    except (RagwatchError, OSError):  # told of the source itself
        return None
    finally:
        source.close()
    return f"source {source.name}: {skipped}" if skipped else None


def _content(options: object, batch: Batch, subject: str, settings: Settings | None = None) -> Finding:
    settings = settings or Settings()
    parse = parse_behind_text if getattr(options, "skip_prefix", False) else parse_line
    shape = formats.build(getattr(options, "format", "auto"), getattr(options, "mapping", None) or None)
    read: list[Sample] = []
    wrong: list[str] = []
    for line, number in zip(batch.lines[:RECORDS], batch.numbers, strict=False):
        try:
            read.append(shape.read(parse(line)[0], str(number)))
        except FormatError as error:
            wrong.append(f"{batch.file}:{number}: {error.reason}: {error}")
    told = f"{len(read)} of {len(read) + len(wrong)} records of {batch.file} are samples"
    if wrong:
        limit = settings.alerts.rejects
        more = of_rejects(len(wrong), len(read) + len(wrong), limit) if read else _cures(batch.lines[0].lstrip())
        told = "; ".join((told, f"first fault: {wrong[0]}", *more, *of_samples(read, settings.routes)))
        return Finding(subject, DOUBTFUL if read else BAD, told)
    if not any(each.contexts for each in read):
        return Finding(subject, BAD, f"{told}, but none holds the text of a context; log what the retriever returned")
    doubts = list(of_samples(read, settings.routes))
    return Finding(subject, DOUBTFUL if doubts else FINE, "; ".join((told, *doubts)))


def _cures(line: bytes) -> Iterator[str]:
    """What to do about lines of which none can be read; this is the first."""
    if line.startswith(b"["):
        yield f"the file is a JSON array; {ONE_A_LINE}"
    elif not line.startswith(b"{") and b"{" in line:
        yield "text stands before the JSON; set skip_prefix: true in this source"


async def _suite(each: SuiteConfig, subject: str) -> Finding:
    """Ask the first question of a suite. What comes back is not judged here: that is `ragwatch canary`'s."""
    suite = suite_of(each)
    try:
        found = await replace(suite, canaries=suite.canaries[:1]).ask(time.time)
    finally:
        await suite.probe.close()
    (first,) = found.reports
    if first.failure is not None:
        return Finding(subject, BAD, f"{each.place.suite}: {first.failure}: {first.retrieved.detail}")
    return Finding(subject, FINE, f"{each.place.suite}: {len(first.retrieved.hits)} passages came back")


async def _judge(each: JudgeConfig, subject: str) -> Finding:
    context = JudgeContext(Telemetry(), InMemoryBudget(), time.time)
    made = judges.KINDS[each.kind].build(each.options, name=each.place.name, context=context)
    probe: Callable[[], Awaitable[str]] | None = getattr(made, "probe", None)
    try:
        told = "" if probe is None else f"; {await probe()}"
        evidence, _ = await made.read(_TRIAL)
    finally:
        await made.close()
    if faithfulness(evidence) != 1.0:
        return Finding(subject, BAD, f"{made.version} does not support a claim that its context states{told}")
    fallback: str | None = getattr(made, "fallback", None)
    if fallback is not None:
        return Finding(subject, DOUBTFUL, f"{made.version} reads, words alone: {fallback}")
    return Finding(subject, FINE, f"{made.version} reads{told}")
