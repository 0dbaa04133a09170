"""`ragwatch judge`: reads samples from files, judges them without a daemon, and prints one verdict per line."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import click
from rich.console import Console
from rich.progress import Progress, TaskID
from rich.table import Column, Table

from ragwatch.config import Config, JudgeConfig, judge_of, load
from ragwatch.config.text import resolve_secrets
from ragwatch.errors import ConfigError, FormatError
from ragwatch.formats.feedback import is_feedback
from ragwatch.formats.record import Parsed, Record, parse
from ragwatch.formats.selection import expanded
from ragwatch.judges import KINDS
from ragwatch.model.estimate import Addends
from ragwatch.model.quantities import Criterion, Quantity, ReferenceQuantity
from ragwatch.model.sample import Draw, Sample, SkipReason
from ragwatch.offline.input_files import InputFiles, LineParser, Rejects, records
from ragwatch.offline.relevance import RelevanceCases
from ragwatch.pipeline.reading import Deferred, DrawReader
from ragwatch.pipeline.sampling_control import InMemoryBudget
from ragwatch.ports import Judge, JudgeContext
from ragwatch.statistics.estimators import hajek
from ragwatch.statistics.relevance import CaseKind, RankedCase, ranking_metrics
from ragwatch.statistics.sampling import key_of
from ragwatch.statistics.set_scores import score_of
from ragwatch.statistics.verdict import Judged, Unjudged, UnjudgedReason, Verdict
from ragwatch.statistics.verdict_line import verdict_line
from ragwatch.telemetry import Telemetry
from ragwatch.terminal.event_loop import run_async
from ragwatch.terminal.given import settings_of
from ragwatch.terminal.options.offline import JudgeArguments
from ragwatch.terminal.output import counted, file_name_in_errors, say


def judge(given: JudgeArguments) -> int:
    """Judge the samples in FILES (JSONL; `-` or none is standard input), one verdict per line (JSON) on stdout."""
    config = None if given.path is None else load(given.path)
    relevance = RelevanceCases()
    sample_files = SampleFiles(InputFiles(config, given.format_name, given.source), relevance)
    reader = judge_named(config, given.name, given.settings)
    samples = sample_files.of_streams(given.files or (sys.stdin.buffer,))

    def show(verdict: Verdict) -> None:
        case = relevance.by_id.get(verdict.draw.sample.id)
        click.echo(json.dumps({**verdict_line(verdict), **({} if case is None else _ranking(case))}))

    verdicts = run_async(read_all(sample_files, samples, reader, show))
    for case in relevance.cases:
        if case.kind is CaseKind.RETRIEVAL:
            click.echo(json.dumps(_case_line(case, reader)))
    _summarise(verdicts, sample_files, relevance.cases)
    return 1 if sample_files.rejected else 0 if verdicts or relevance.cases else NOT_ENOUGH_DATA


def _ranking(case: RankedCase) -> dict[str, dict[str, float | None]]:
    ranking = case.ranking
    scores = {str(metric): None if ranking is None else metric.of(ranking) for metric in ranking_metrics()}
    return {"ranking": {name: None if score is None else round(score, 6) for name, score in scores.items()}}


def _case_line(case: RankedCase, judge: Judge) -> dict[str, object]:
    """The line of a row without an answer, of which no judge read anything."""
    return {
        "id": case.question.id,
        "outcome": "ranked",
        "reason": None if case.unknown is None else str(case.unknown),
        "scores": dict.fromkeys(map(str, Quantity)),
        **_ranking(case),
        "judge": {"kind": judge.kind, "version": judge.version},
    }


def _summarise(verdicts: Sequence[Verdict], files: SampleFiles, cases: Sequence[RankedCase]) -> None:
    alone = sum(case.kind is CaseKind.RETRIEVAL for case in cases)
    table = Table(
        Column("quantity", no_wrap=True), "mean", "95 % interval", "rows", title=f"{len(verdicts) + alone} samples"
    )
    judged = [verdict for verdict in verdicts if isinstance(verdict, Judged)]
    by_reference = tuple(ReferenceQuantity) if any(verdict.draw.sample.reference for verdict in judged) else ()
    criteria = dict.fromkeys(name for verdict in judged for name in verdict.scores if name.is_criterion)
    by_metric: dict[str, list[float | None]] = {
        quantity: [score_of(verdict, quantity) for verdict in judged]
        for quantity in (*Quantity, *criteria, *by_reference)
        if verdicts
    }
    rankings = [case.ranking for case in cases if case.ranking is not None]
    by_metric |= {metric: [metric.of(ranking) for ranking in rankings] for metric in ranking_metrics() if cases}
    for quantity, scores in by_metric.items():
        estimate = hajek.estimate(Addends.of((score, 1.0) for score in scores if score is not None))
        if estimate is None:
            table.add_row(quantity, "unknown", "", "0")
        else:
            interval = f"{estimate.low:.3f} .. {estimate.high:.3f}"
            table.add_row(quantity, f"{estimate.value:.3f}", interval, str(estimate.n))
    console = Console(stderr=True)
    if verdicts or cases:
        console.print(table)
    elif files.rejected or files.skipped:
        advice = "`ragwatch init --print FILE` proposes how to read them"
        console.print(f"none of the records is a sample; {advice}", soft_wrap=True)
    else:
        console.print("there is no record to judge")
    by_title: dict[str, Counter[str]] = {
        "stage": Counter(verdict.counted_as or "unknown" for verdict in judged),
        "top context ignored by fault": Counter(str(verdict.fault) for verdict in judged if verdict.fault is not None),
        "route": Counter(verdict.draw.route for verdict in verdicts if verdict.draw.route),
        "unjudged": Counter(str(verdict.reason) for verdict in verdicts if not isinstance(verdict, Judged)),
        "rejected": files.rejected,
        "fields left out": files.lost,
        "lines skipped": files.skipped,
        "parts": Counter({"without the others of their request": files.waiting} if files.waiting else {}),
    }
    for title, counts in by_title.items():
        if counts:
            console.print(f"{title}: {counted(dict(counts.most_common()))}")


NOT_ENOUGH_DATA = 3
TIMEOUT_SECONDS = 120.0
MAX_RETRIES = 3  # of a sample while the judge is unavailable
MAX_WAIT_SECONDS = 30.0
_QUESTIONS = frozenset({"query", "user_query", "user_input", "prompt", "input", "messages", "q"})
"""Other names for the field of the question: a row with one of them does have a question."""


class SampleFiles:
    """Reads samples from files. Counts rejected rows, and reports each kind of error once on stderr.

    Without a collector of test cases with relevance judgements, only samples with an answer are read.
    """

    def __init__(self, inputs: InputFiles | None = None, relevance: RelevanceCases | None = None) -> None:
        self._inputs = inputs or InputFiles()
        self._relevance = relevance
        self._texts: dict[Path, object] = {}
        self.rejected: Counter[str] = Counter()  # rows by reason
        self.skipped: Counter[str] = Counter()  # lines that the source skips, by reason
        self.lost: Counter[str] = Counter()  # optional fields that could not be read, by name

    def of_streams(self, streams: Iterable[BinaryIO]) -> Iterator[Iterator[Sample]]:
        """The samples of each stream."""
        return (self.samples(getattr(stream, "name", "stdin"), stream) for stream in streams)

    def samples(self, name: str, stream: BinaryIO) -> Iterator[Sample]:
        """The samples of one stream that a judge has to read, in order."""
        folder, rejects = Path(name).parent, Rejects()
        reader, redact = self._inputs.reader(name), self._inputs.redact
        complete = None if self._relevance is None else self._relevance.complete  # such a row needs no answer
        for number, parsed in _parsed(name, stream, self._inputs.parser(name)):
            try:
                if isinstance(parsed, FormatError):
                    raise parsed
                if isinstance(parsed, SkipReason):
                    self.skipped[parsed] += 1
                    continue
                if is_feedback(parsed[0]):  # no answer, but what a user says of one
                    continue
                record = self._complete(parsed[0], folder)
                sample, lost = reader.read_without_wrong_fields(record, f"{name}:{number}", complete)
                self.lost.update(one.name for one in lost)
            except FormatError as error:
                self.rejected[error.reason] += 1
                rejects.add(number, error)
                continue
            if self._relevance is not None:
                answered = self._relevance.add(sample, self._inputs.route(sample.route), redact)
                if answered is None:
                    continue
                sample = answered
            yield redact(sample)
        for message in rejects.lines(name):
            say(message)

    @property
    def waiting(self) -> int:
        """Parts of requests, of a source of kind join, without the others."""
        return self._inputs.waiting

    def draw(self, sample: Sample) -> Draw:
        """Make a draw of a sample, with inclusion probability 1."""
        at = time.time() if sample.at is None else sample.at
        return Draw(
            key=key_of("judge", sample.id),
            sample=sample,
            source="judge",
            route=self._inputs.route(sample.route),
            probability=1.0,
            at=at,
        )

    def _complete(self, record: Record, folder: Path) -> Record:
        """Complete a row of a labelled set, which may have no question, and its contexts in another file."""
        has_references = "context_refs" in record and not record.get("contexts")
        if not has_references and "contexts" not in record:
            return record
        if "question" not in record and "answer" in record and _QUESTIONS.isdisjoint(record):
            record = {**record, "question": None}
        return {**record, "contexts": self._contexts(record, folder)} if has_references else record

    def _contexts(self, record: Record, folder: Path) -> list[object]:
        references, docs = record["context_refs"], record.get("docs")
        if not isinstance(docs, str):
            if not references:
                return []
            raise FormatError("missing_field", "docs", "is missing; which file has the contexts in `context_refs`?")
        path = folder / docs
        if path not in self._texts:
            try:
                self._texts[path] = json.loads(path.read_text(encoding="utf-8"))
            except (OSError, ValueError) as error:
                raise FormatError("missing_field", "docs", f"{path.name} cannot be read: {error}") from error
        texts = self._texts[path]
        names = references if isinstance(references, list) else [None]
        if not isinstance(texts, dict) or not all(isinstance(name, str) for name in names):
            raise FormatError("wrong_type", "context_refs", f"must be a list of keys in {path.name}, a JSON object")
        absent = [name for name in names if name not in texts]
        if absent:
            raise FormatError("missing_field", "context_refs", f"{absent[0]!r} is not in {path.name}")
        return [texts[name] for name in names]


def _parsed(name: str, stream: BinaryIO, parser: LineParser) -> Iterator[tuple[int, Parsed | FormatError]]:
    """Line number and record of what is in a file, or why there is none."""
    number = 0
    lines = records(stream, whole=parser.expand is not None, encoding=parser.encoding)
    with file_name_in_errors(name):
        for number, line in expanded(lines, parser.expand):
            try:
                parsed = line if isinstance(line, (SkipReason, FormatError)) else parser.parse(line)
            except FormatError as error:
                yield number, error
            else:
                if parsed is not None:
                    yield number, parsed
    yield from ((number, parse(record)) for record in parser.rest())


def left_out(files: SampleFiles, verdicts: Iterable[Verdict]) -> list[str]:
    """Say how many rows are no samples, and how many samples were not judged; nothing where all were."""
    unjudged = sum(not isinstance(verdict, Judged) for verdict in verdicts)
    counts = {"rows are rejected": files.rejected.total(), "samples could not be judged": unjudged}
    return [f"{count} {what} and are left out" for what, count in counts.items() if count]


def judge_named(config: Config | None, name: str | None, settings: Sequence[str] = ()) -> Judge:
    """Build the judge that a command line names.

    The name is a configured judge or else a kind, with settings as `KEY=VALUE`; None is the first configured one, else
    `lexical`. `ConfigError` if there is no such judge, or settings are given for a configured one.
    """
    configured = {} if config is None else {judge.place.name: judge for judge in config.judges}
    if name is None:
        name = next(iter(configured), "lexical")
    if name in configured:
        if settings:
            raise ConfigError(
                f"--set: {name} is a judge of the configuration; change its options there, or name a kind"
            )
        return build_judge(configured[name], () if config is None else config.settings.criterion_rules)
    if name not in KINDS:
        names = ", ".join(dict.fromkeys([*configured, *sorted(KINDS)]))
        raise ConfigError(f"--judge {name}: is neither a configured judge nor a kind; use one of: {names}")
    item = {"name": name, "kind": name, **settings_of(settings, "support=0.5")}
    return build_judge(judge_of(resolve_secrets(item, Path.cwd())))


def build_judge(config: JudgeConfig, criteria: tuple[Criterion, ...] = ()) -> Judge:
    """Build a configured judge for use without a daemon, with a budget in memory.

    It reads the criteria whatever its quantities are.
    """
    quantities = frozenset((*Quantity, *(criterion.quantity for criterion in criteria)))
    context = JudgeContext(Telemetry(), InMemoryBudget(), time.time, quantities, criteria)
    return KINDS[config.kind].build(config.options, name=config.place.name, context=context)


async def read_all(
    files: SampleFiles,
    groups: Iterable[Iterable[Sample]],
    judge: Judge,
    on_verdict: Callable[[Verdict], None] | None = None,
) -> list[Verdict]:
    """Judge samples, group by group, and close the judge. `on_verdict` takes each verdict, in order.

    `ConfigError` if the provider of the judge rejects its configuration.
    """
    prepared = judge.concurrency // 4  # a quarter more answers than the judge makes calls at a time
    reader = DrawReader(judge, timeout_seconds=TIMEOUT_SECONDS, telemetry=Telemetry(), prepared=prepared)
    verdicts: list[Verdict] = []
    console = Console(stderr=True)
    try:
        # `on_verdict` prints to stdout, which the progress bar would wrap and redirect to stderr.
        shows = console.is_terminal and not (on_verdict and sys.stdout.isatty())
        with Progress(console=console, disable=not shows, transient=True, redirect_stdout=False) as progress:
            for group in groups:
                samples = list(group)
                task = progress.add_task("judging", total=len(samples))

                def take(verdict: Verdict, task: TaskID = task) -> None:
                    if on_verdict:
                        on_verdict(verdict)
                    verdicts.append(verdict)
                    progress.advance(task)

                await _read_each(reader, map(files.draw, samples), take)
    finally:
        await judge.close()
    return verdicts


async def _read_each(reader: DrawReader, draws: Iterator[Draw], take: Callable[[Verdict], None]) -> None:
    """Read some draws at a time, and pass on the verdicts in the order of the draws.

    The next reading starts whenever one ends, so that a slow one does not hold up the others.
    """
    numbered = enumerate(draws)
    finished: dict[int, Verdict] = {}
    taken = 0

    async def read_on() -> None:
        nonlocal taken
        for number, draw in numbered:
            finished[number] = await _judge(reader, draw)
            while taken in finished:
                take(finished.pop(taken))
                taken += 1

    workers = [asyncio.create_task(read_on()) for _ in range(reader.concurrency)]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


async def _judge(reader: DrawReader, draw: Draw) -> Verdict:
    """Judge a draw. There is no queue, so a deferred draw is retried a few times while the judge is unavailable."""
    reason = ""
    for retries_left in range(MAX_RETRIES, -1, -1):
        outcome = await reader.read(draw)
        if not isinstance(outcome, Deferred):
            return outcome
        if outcome.reason == UnjudgedReason.MISCONFIGURED:  # no sample can be read, so none is used up
            raise ConfigError(outcome.message)
        reason = outcome.reason
        if retries_left:
            await asyncio.sleep(min(MAX_WAIT_SECONDS, max(1.0, reader.judge.ready_in())))
    known = UnjudgedReason(reason) if reason in set(UnjudgedReason) else UnjudgedReason.UNAVAILABLE
    return Unjudged(draw, reader.no_reading, known)
