"""Intake: reads records as samples, draws some of them, and admits a batch and its cursor in one transaction."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice, repeat

from ragwatch.errors import FormatError, ReceivedMeanwhileError
from ragwatch.formats.canonical import AHEAD, MAX_AHEAD_SECONDS, LostField, name_of
from ragwatch.formats.feedback import is_feedback
from ragwatch.formats.guessing.suspicion import MISREAD, Doubts
from ragwatch.formats.log_reader import LogReader
from ragwatch.formats.record import READER_ERRORS, Line
from ragwatch.formats.selection import Expand
from ragwatch.model.sample import Draw, RejectReason, Sample, SkipReason
from ragwatch.pipeline.feedback import FeedbackRules
from ragwatch.pipeline.placing import MARK_ADVICE, NamedVersions, names_canary, placing
from ragwatch.pipeline.vocabularies import Vocabularies
from ragwatch.ports import (
    Admission,
    Assignment,
    Batch,
    BatchReport,
    Feedback,
    LoopContext,
    Rejection,
    Source,
    VersionValue,
)
from ragwatch.ports.capabilities import RecognisesResent
from ragwatch.redaction.redactor import Redactor
from ragwatch.statistics.canary.definition import CanaryMarks
from ragwatch.statistics.feedback import FeedbackOutcome
from ragwatch.statistics.sampling import SamplingHash, SamplingPlan, key_of, shedding_factor
from ragwatch.statistics.signals import RepeatedAnswers, SignalCounter
from ragwatch.statistics.snapshot import Lag
from ragwatch.statistics.tally import Tallies, Tally, lines_read

CANARY = "canary"
"""Metadata key of answers to our own canaries: the mark that probes send as the header `X-Ragwatch-Canary`."""
LOOKED_UP_AT_ONCE = 100  # ids of records that are looked up in the store with one query
SETTLE_SECONDS = 60.0
"""Time without a failure after which a file counts as readable: on a failing disk, a file can often be opened."""
NumberedSample = tuple[Sample, int, Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class IntakeRules:
    """Settings of intake."""

    plan: SamplingPlan  # inclusion probabilities
    # conditional probability with which each judge reads a draw, by judge name; the first is the default
    judges: Mapping[str, float]
    redactor: Redactor | None  # replaces PII and secrets in draws; None when redaction is off
    max_pending: int  # pending draws of the default judge from which on nothing more is read (backpressure)
    # pending draws of the default judge above which fewer are drawn (`shedding_factor`); None for never
    shed_above: int | None = None
    share: Callable[[str], float] = lambda _: 1.0  # factor on a judge's probability at present: see `SamplingControl`
    vocabularies: Vocabularies | None = None  # learn the words of questions; None where these are not monitored
    # decides which samples are drawn
    sampling: SamplingHash = SamplingHash()  # noqa: RUF009 - it holds nothing that changes
    marks: CanaryMarks | None = None  # checks the marks of canaries; None trusts whatever a record says
    # how feedback of users is read
    feedback: FeedbackRules = FeedbackRules()  # noqa: RUF009 - frozen
    versions: NamedVersions | None = None  # reads the versions that records name; None for none


@dataclass(slots=True)
class _BatchResult:
    """The content of an Admission, and the report to the source, while a batch is read."""

    tallies: Tallies
    signals: SignalCounter
    report: BatchReport
    draws: list[tuple[Draw, tuple[Assignment, ...]]] = field(default_factory=list)
    tallies_of_draws: dict[str, Tallies] = field(default_factory=dict)
    received: list[str] = field(default_factory=list)
    feedback: list[Feedback] = field(default_factory=list)
    versions: list[VersionValue] = field(default_factory=list)


class IntakeLoop:
    """The loop that reads one source.

    Attributes:
        lag: How far the source is behind, as of the last step; None before the first.
        skipped: How many existing records are skipped at the very first start, until something was read; else empty.
        first_rejected: The first record that this process has rejected.
        polled: Set once the source was read for the first time.
        factor: Factor on the inclusion probabilities at present, below 1 while draws pile up.
    """

    def __init__(self, source: Source, reader: LogReader, rules: IntakeRules, context: LoopContext) -> None:
        self._store, self._telemetry, self._clock = context.store, context.telemetry, context.clock
        self.source = source
        self.rules = rules
        self._reader = reader
        self._unreadable: dict[str, tuple[str, float]] = {}  # by file: reason, time of the last failure
        self.lag: Lag | None = None
        self.skipped = ""
        self.first_rejected: Rejection | None = None
        self._repeated = RepeatedAnswers()
        self._doubts = Doubts()
        self.polled = asyncio.Event()
        self.factor = 1.0

    async def step(self) -> bool:
        """Admit one batch. False when there is nothing to read, or the queue is full."""
        try:
            return await asyncio.to_thread(self._step)
        finally:
            self.polled.set()

    def _step(self) -> bool:
        try:
            return self._admit()
        finally:  # a step that fails leaves more unread, so that the lag of before it is out of date
            first, self.lag = self.lag is None, self.source.lag()
            self._report_unreadable(self.lag.unreadable, self._clock())
            if self.lag.closed:
                self._telemetry.files_closed(self.source.name, self.lag.closed)
            if first and self.lag.skipped and not lines_read(self._store.tallies(), self.source.name):
                self.skipped = self.lag.skipped
                self._telemetry.skipped(self.source.name, self.skipped)

    def _report_unreadable(self, failing: Mapping[str, str], now: float) -> None:
        """Log which files (by name: why) fail, fail for another reason, or are readable again, once for each change."""
        new = {name: why for name, why in failing.items() if self._unreadable.get(name, ("", 0.0))[0] != why}
        self._unreadable.update((name, (why, now)) for name, why in failing.items())
        readable = [
            name
            for name, (_, last) in self._unreadable.items()
            if name not in failing and abs(now - last) >= SETTLE_SECONDS
        ]
        for name in readable:
            del self._unreadable[name]
        if new:
            self._telemetry.unreadable(self.source.name, new, len(self._unreadable))
        if readable:
            self._telemetry.readable_again(self.source.name, readable, len(self._unreadable))

    def _admit(self) -> bool:
        # Of the default judge: an outage of another one must not stop the sources.
        pending = self._store.pending().get(next(iter(self.rules.judges)), 0)
        self.factor = shedding_factor(pending, self.rules.shed_above)
        if pending >= self.rules.max_pending:
            return False
        batch = self.source.read()
        if batch is None:
            return False
        admission, questions = self._admission(batch)
        try:
            self._store.admit(admission)
        except ReceivedMeanwhileError:  # what another worker has received now counts as resent
            admission, questions = self._admission(batch)
            self._store.admit(admission)
        self.source.commit(batch)
        for reason in batch.resets:
            self._telemetry.reset(self.source.name, batch.file, reason)
        if self.rules.versions is not None:
            self.rules.versions.note(admission.versions)
        if self.rules.vocabularies is not None and questions:
            self.rules.vocabularies.learn(questions)
        return True

    def _admission(self, batch: Batch) -> tuple[Admission, dict[str, list[str]]]:
        """What to write, and the questions to learn from once it is written."""
        vocabularies = self.rules.vocabularies
        meters = None if vocabularies is None else vocabularies.meters
        signals = SignalCounter(meters, self._repeated, self._clock())
        result = _BatchResult(Counter(batch.tallies), signals, batch.report or BatchReport())
        name, tallies, report = self.source.name, result.tallies, result.report
        report.rejections.clear()  # of an attempt that could not be stored
        report.resent.clear()
        for rejection in batch.rejections:
            self._reject(rejection, result)
        for reason, times in batch.resets.items():
            tallies[Tally.RESETS, (name, reason)] += times
        self._read_lines(batch, result)
        if seen := len(batch.lines) + len(batch.rejections) - len(report.resent):
            tallies[Tally.SEEN, (name,)] += seen
        result.signals.add_to(tallies)
        admission = Admission(
            source=name,
            stream=batch.stream,
            cursor=batch.cursor,
            draws=result.draws,
            tallies=tallies,
            at=self._clock(),
            of_draws=result.tallies_of_draws,
            hold=batch.hold,
            release=batch.release,
            received=result.received,
            feedback=result.feedback,
            versions=result.versions,
        )
        return admission, result.signals.to_learn_from()

    def _read_lines(self, batch: Batch, result: _BatchResult) -> None:
        """Read every line of a batch. This is the hot path: most lines are not drawn."""
        name, now, versions = self.source.name, self._clock(), self.rules.versions
        place = placing(self.rules.plan, self.factor)
        samples = self._samples(batch, result)
        if isinstance(self.source, RecognisesResent) and self.source.recognises_resent:
            samples = self._without_resent(samples, result)
        for sample, _, record in samples:
            if CANARY in sample.metadata and self._is_canary(sample, result.tallies):
                continue
            route, probability = place(sample)
            result.signals.add(route, sample)
            if versions is not None:
                versions.read(sample, now, result.versions)
            key = key_of(name, sample.id)
            if self.rules.sampling.draws(key, probability):
                at = now if sample.at is None else min(sample.at, now)
                if sample.at is not None and sample.at > now + MAX_AHEAD_SECONDS:
                    self._count_lost(result.tallies, AHEAD)
                self._draw(result, Draw(key, sample, name, route, probability, at=at), record)

    def _samples(self, batch: Batch, result: _BatchResult) -> Iterator[NumberedSample]:
        """Yield the samples of a batch, each with its number and record. Other lines are rejected or skipped.

        Lines with feedback on an answer are read on the way.
        """
        skipped: Counter[SkipReason] = Counter()
        name, stream, parse, read = self.source.name, batch.stream, self._reader.parse, self._reader.read
        for index, line, number, part in self._lines(batch, result):
            try:
                parsed = parse(line)
                if isinstance(parsed, SkipReason):
                    skipped[parsed] += 1
                    continue
                record, repaired = parsed
                if is_feedback(record):
                    self._read_feedback(record, result)
                    result.tallies[Tally.SEEN, (name,)] -= 1  # it is no request
                    continue
                sample = read(record, "")
            except FormatError as error:
                rescued = self._without_wrong_fields(line, error, result.tallies)
                if rescued is None:
                    self._reject(_rejection(error, batch.file, number), result)
                    continue
                sample, record, repaired = rescued
            except READER_ERRORS as error:
                self._reject(_rejection(_unread(error), batch.file, number), result)
                continue
            if repaired:
                result.tallies[Tally.REPAIRED, (name,)] += 1
            if not sample.id:
                sample = sample._replace(id=f"{stream}:{batch.offsets[index]}{f'.{part}' if part else ''}")
            yield sample, number, record
        for reason, lines in skipped.items():
            result.tallies[Tally.SKIPPED, (name, reason)] += lines
            result.tallies[Tally.SEEN, (name,)] -= lines

    def _without_wrong_fields(
        self, line: Line, error: FormatError, tallies: Tallies
    ) -> tuple[Sample, dict[str, object], bool] | None:
        """Read a record without the optional fields that are wrong, and count them; None if a required one is wrong."""
        parsed = None if name_of(error.field) is None else self._reader.parse(line)
        if parsed is None or isinstance(parsed, SkipReason):
            return None
        try:
            sample, lost = self._reader.read_without_wrong_fields(parsed[0], "")
        except (FormatError, *READER_ERRORS):
            return None
        for one in lost:
            self._count_lost(tallies, one)
        return sample, *parsed

    def _count_lost(self, tallies: Tallies, one: LostField) -> None:
        tallies[Tally.FIELDS_LOST, (self.source.name, one.name, one.reason)] += 1
        self._telemetry.rejected(self.source.name, one.reason, "field left out", field=one.name, why=one.detail)

    def _lines(self, batch: Batch, result: _BatchResult) -> Iterable[tuple[int, Line, int, int]]:
        """Index, record, number and place in its line of the records in a batch."""
        if self._reader.expand is None:
            return zip(range(len(batch.lines)), batch.lines, batch.numbers, repeat(0))
        return self._expanded(self._reader.expand, batch, result)

    def _expanded(self, expand: Expand, batch: Batch, result: _BatchResult) -> Iterator[tuple[int, Line, int, int]]:
        """The same for lines that hold several records; those without any are skipped."""
        seen, skipped = (Tally.SEEN, (self.source.name,)), (Tally.SKIPPED, (self.source.name, SkipReason.NO_RECORDS))
        for index, (line, number) in enumerate(zip(batch.lines, batch.numbers, strict=True)):
            try:
                records = expand(line)
            except FormatError as error:
                self._reject(_rejection(error, batch.file, number), result)
                continue
            result.tallies[seen] += len(records) - 1
            result.tallies[skipped] += not records
            yield from ((index, record, number, part) for part, record in enumerate(records))

    def _without_resent(self, samples: Iterator[NumberedSample], result: _BatchResult) -> Iterator[NumberedSample]:
        """Yield the samples whose id was not received before, in this batch or an earlier one; count the others."""
        admitted: set[str] = set()
        while some := list(islice(samples, LOOKED_UP_AT_ONCE)):  # few at a time, so that most objects live shortly
            known = self._store.received(self.source.name, {sample.id for sample, _, _ in some})
            for sample, number, record in some:
                if sample.id in known or sample.id in admitted:
                    result.report.resent.append(number)
                    continue
                admitted.add(sample.id)
                result.received.append(sample.id)
                yield sample, number, record
        if resent := len(result.report.resent):
            result.tallies[Tally.RESENT, (self.source.name,)] += resent

    def _is_canary(self, sample: Sample, tallies: Tallies) -> bool:
        """Whether this is an answer to one of our canaries. Invalid marks are counted: they hide no answer."""
        mark, name = sample.metadata[CANARY], self.source.name
        if not names_canary(mark):
            return False
        if self.rules.marks is None or self.rules.marks.is_valid(mark, sample.at):
            tallies[Tally.OF_CANARIES, (name,)] += 1
            return True
        tallies[Tally.INVALID_MARKS, (name,)] += 1
        self._telemetry.odd_records(name, "invalid canary mark", MARK_ADVICE)
        return False

    def _read_feedback(self, record: Mapping[str, object], result: _BatchResult) -> None:
        """Read a record of feedback on an answer. Raises `FormatError` if it is not valid."""
        name, rules, now = self.source.name, self.rules, self._clock()
        one = rules.feedback.of_record(record, name, now, result.tallies)
        keys = tuple(key for key in one.keys if rules.sampling.draws(key, rules.plan.highest))
        if keys:
            result.feedback.append(replace(one, keys=keys))
        else:
            result.tallies[Tally.FEEDBACK, (name, FeedbackOutcome.NOT_DRAWN)] += 1

    def _draw(self, result: _BatchResult, draw: Draw, record: Mapping[str, object]) -> None:
        assignments = self._assign(draw)
        if not assignments:  # no judge reads it, so it is no draw: drawn = judged + unjudged + pending must hold
            return
        for reason, advice in self._doubts.about(draw.sample, self._clock()).items():
            result.tallies[Tally.SUSPECT, (self.source.name, reason)] += 1
            self._telemetry.odd_records(self.source.name, MISREAD, f"{reason}: {advice}")
        if (one := self.rules.feedback.of_draw(record, draw, result.tallies)) is not None:
            result.feedback.append(one)
        if self.rules.redactor is not None:
            clean, secrets = self.rules.redactor.redact_sample(draw.sample)
            draw = replace(draw, sample=clean)
            if secrets:  # of two records with the same id, the first one is stored
                result.tallies_of_draws.setdefault(
                    draw.key, Counter({(Tally.REDACTED, (str(secret),)): times for secret, times in secrets.items()})
                )
        result.draws.append((draw, assignments))

    def _assign(self, draw: Draw) -> tuple[Assignment, ...]:
        """The judges that read this draw. The hash includes the judge's name, so that they choose independently."""
        return tuple(
            Assignment(judge, draw.probability * share)
            for judge, probability in self.rules.judges.items()
            if (share := probability * self.rules.share(judge)) >= 1.0
            or self.rules.sampling.draws(key_of(judge, draw.key), share)
        )

    def _reject(self, rejection: Rejection, result: _BatchResult) -> None:
        result.report.rejections.append(rejection)
        result.tallies[Tally.REJECTED, (self.source.name, rejection.reason)] += 1
        self.first_rejected = self.first_rejected or rejection
        self._telemetry.rejected(
            self.source.name,
            rejection.reason,
            file=rejection.file,
            line=rejection.line,
            field=rejection.field,
            why=rejection.detail,
        )


def _unread(error: Exception) -> FormatError:
    """The rejection of a record whose reader failed. It names the type of the error, whose message may quote texts."""
    if isinstance(error, RecursionError):
        return FormatError(RejectReason.TOO_DEEP, "", "nested too deeply")
    return FormatError(RejectReason.WRONG_TYPE, "", f"a value of this record cannot be read: {type(error).__name__}")


def _rejection(error: FormatError, file: str, line: int) -> Rejection:
    return Rejection(RejectReason(error.reason), file, line, error.field, str(error))
