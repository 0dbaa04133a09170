"""Source kind `join`: merges the parts of a request that are logged in separate records, by their id.

Parts may be in one file, in several, or come from several sources. They wait in memory, and in the store for the next
start. A part that waits longer than `within` is orphaned; time counts only while every source is read to its end, so
that a backlog in one of them orphans nothing. Outcomes are counted for each part (`ragwatch_source_parts_total`):

    joined      it is in a joined record
    orphaned    the others did not arrive in time, and it cannot be read without them
    late        it arrived after its request was joined or given up
    piece       the same, and it is like a part that was joined; or several parts hold different texts where the joined
                record has its answer: most likely the answer is logged in pieces (`concat`)
    repeated    it arrived again, with the same content
    dropped     too many parts were waiting (`max_waiting`, `max_bytes`), or the record cannot be encoded
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, BeforeValidator, Field, ValidationError, model_validator

from ragwatch.errors import ConfigError, FormatError, SourceError
from ragwatch.formats.expressions import compile_expression, extractor, predicate
from ragwatch.formats.feedback import is_feedback
from ragwatch.formats.log_reader import LogReader, RecordRules
from ragwatch.formats.record import Line, Record
from ragwatch.formats.selection import expanded, parse_one
from ragwatch.model.sample import RejectReason, Sample, SkipReason
from ragwatch.model.units import duration_seconds
from ragwatch.ports import Batch, Kind, Part, Rejection, Source
from ragwatch.ports.capabilities import HasLogFiles, HasName, ReceivesRequests, record_rules
from ragwatch.ports.sources import Handler
from ragwatch.sources import push, tail
from ragwatch.sources.join.joiner import Changes, Joiner, JoinLimits, Read, Stream, Whole, holds
from ragwatch.sources.join.merge import Pieces, json_of
from ragwatch.sources.record_options import RecordOptions, Size
from ragwatch.statistics.snapshot import Lag
from ragwatch.statistics.tally import Tally, TallyKey

INNER_KINDS: Mapping[str, Kind[Source]] = MappingProxyType({"tail": tail, "push": push})
PUSH = "push"
MAX_WITHIN = 12 * 3600.0  # the store deletes parts that have waited for a day

_UNUSED = ("format", "mapping", "split", "start", "timezone", "resolve")


class Options(RecordOptions):
    """Options of a source of kind `join`. Format, mapping, where and split are about the joined records."""

    of: tuple[dict[str, object], ...] = Field(
        min_length=1, description="Sources of the parts, in the order in which their fields take precedence: last wins."
    )
    by: str = Field(min_length=1, description="JMESPath that gives the id that the parts of one request share.")
    within: Annotated[float, BeforeValidator(duration_seconds)] = Field(
        300.0, gt=0, le=MAX_WITHIN, description="How long a part waits for the others."
    )
    parts: int | None = Field(None, ge=2, le=100, description="Number of parts of each request.")
    complete: str | None = Field(
        None, min_length=1, description="JMESPath condition on the joined record; true when no part is missing."
    )
    concat: dict[str, str] = Field(
        {},
        description="For answers that are logged in pieces: field of the joined record, and JMESPath of its pieces in "
        "the parts, which are joined in order. `complete` is then about the last part; without it `within` seconds of "
        "silence end an answer.",
    )
    order: str | None = Field(
        None, min_length=1, description="JMESPath of the position of a piece; by default its time, then its arrival."
    )
    start: Literal["beginning", "end"] = Field(
        "end", description="Where to start in files that exist at the very first start, for all sources in `of`."
    )
    max_waiting: int = Field(20_000, gt=0, description="Requests that wait at once; beyond it the oldest is dropped.")
    max_bytes: Size = Field(
        64 << 20, gt=0, description="Size of the parts that wait at once; beyond it the oldest request is dropped."
    )

    @model_validator(mode="after")
    def _inner_sources_are_valid(self) -> Options:
        try:
            compile_expression("by", self.by)
            if self.complete is not None:
                predicate("complete", self.complete)
            for name, expression in self.concat.items():
                compile_expression(f"concat.{name}", expression)
            if self.order is not None:
                compile_expression("order", self.order)
            self.inner()
        except ConfigError as error:
            raise ValueError(str(error)) from error
        if self.order is not None and not self.concat:
            raise ValueError("`order` is about the pieces that `concat` joins; set that too, or remove `order`")
        if self.records is not None:
            raise ValueError("set `records` on a source in `of`: it finds the parts in its lines")
        if self.complete is not None and self.parts is not None:
            raise ValueError("set `complete` or `parts`, not both")
        return self

    @property
    def rules(self) -> RecordRules:
        """How the joined records are read. Their `id` is the id of the request."""
        rules = super().rules
        if not rules.mapping or "id" in rules.mapping:
            return rules
        return replace(rules, mapping={**rules.mapping, "id": "id"})

    @property
    def patterns(self) -> tuple[str, ...]:
        """Paths and globs of all files."""
        inner = [options for _, options in self.inner().values()]
        return tuple(pattern for options in inner if isinstance(options, HasLogFiles) for pattern in options.patterns)

    def inner(self) -> dict[str, tuple[Kind[Source], BaseModel]]:
        """Kind and options of each source in `of`, by name. Raises ConfigError: one is invalid; it names the place."""
        sources: dict[str, tuple[Kind[Source], BaseModel]] = {}
        for index, item in enumerate(self.of):
            kind, options = _inner(item, f"of[{index}]")
            name = options.name if isinstance(options, HasName) else ""
            if name in sources or "/" in name:
                raise ConfigError(f"of[{index}].name: {name!r} is taken or contains a slash; choose another one")
            if "start" in type(options).model_fields:
                options = options.model_copy(update={"start": self.start})
            sources[name] = kind, options
        if [item.get("kind") for item in self.of].count(PUSH) > 1:
            raise ConfigError("of: has several sources of kind push, whose requests could not be told apart; use one")
        return sources


def _inner(item: Mapping[str, object], where: str) -> tuple[Kind[Source], BaseModel]:
    kind = str(item.get("kind"))
    if kind not in INNER_KINDS:
        raise ConfigError(f"{where}.kind: {kind!r} cannot be joined; use one of: {', '.join(sorted(INNER_KINDS))}")
    for key in _UNUSED:
        if key in item:
            raise ConfigError(f"{where}.{key}: is not used here; set it on the join, beside `of`")
    module = INNER_KINDS[kind]
    try:
        return module, module.Options.model_validate({key: value for key, value in item.items() if key != "kind"})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, (where, *first["loc"])))
        raise ConfigError(f"{place}: {first['msg'].removeprefix('Value error, ')}") from error


class _InnerSource(NamedTuple):
    """A source of parts, and how the records in its lines are found and decoded."""

    source: Source
    reader: LogReader


class _Pending(NamedTuple):
    """A batch that is not committed yet, and the batch of the source that it was made from, if it was."""

    batch: Batch
    name: str = ""
    inner: Batch | None = None


class JoinSource:
    """Joins the records of other sources. See `ports.Source`.

    Args:
        clock: Monotonic seconds: how long parts wait.
        dates: Seconds since the epoch, with which parts are stored.

    Attributes:
        handlers: Those of the source in `of` that clients send parts to, if there is one.
        recognises_resent: A request whose parts all arrive again is no second sample.
        wake: Set when such a part has arrived.
    """

    recognises_resent = True

    def __init__(
        self,
        options: Options,
        clock: Callable[[], float] = time.monotonic,
        dates: Callable[[], float] = time.time,
    ) -> None:
        self.name = options.name
        self._clock = clock
        self._dates = dates
        self._inner = {
            name: _InnerSource(kind.build(inner), LogReader(replace(record_rules(inner), format="auto")))
            for name, (kind, inner) in options.inner().items()
        }
        self._joiner = joiner(options)
        received = [inner.source for inner in self._inner.values() if isinstance(inner.source, ReceivesRequests)]
        self.handlers: Mapping[str, Handler] = received[0].handlers if received else {}
        self.wake = received[0].wake if received else asyncio.Event()
        self._pending: _Pending | None = None
        self._finished = False
        self._expired = 0

    def resume(self, cursors: Mapping[str, str]) -> None:
        """Continue after cursors, whose streams begin with their source. Raises SourceError: one is not valid."""
        for name, inner in self._inner.items():
            start = f"{name}/"
            own = {stream.removeprefix(start): at for stream, at in cursors.items() if stream.startswith(start)}
            inner.source.resume(own)

    def restore(self, parts: Iterable[Part]) -> None:
        """Take back the parts that wait."""
        self._joiner.restore(parts, self._clock())

    def finish(self) -> None:
        """Nothing more is written: what is left when every source is read to its end does not wait any longer."""
        self._finished = True

    def read(self) -> Batch | None:
        """Read the next records of one source, that of which fewest parts wait first. None when nothing is new.

        Raises:
            SourceError: A source cannot be read, and no other has anything new.
        """
        if self._pending is None:
            self._pending = self._next()
        return None if self._pending is None else self._pending.batch

    def commit(self, batch: Batch) -> None:
        """The batch is stored: continue after it. Raises ValueError: it is not the batch that was read last."""
        pending = self._pending
        if pending is None or pending.batch is not batch:
            raise ValueError("only the batch that was read last can be committed")
        self._pending = None
        if pending.inner is not None:
            self._inner[pending.name].source.commit(pending.inner)

    def lag(self) -> Lag:
        """The lags of all sources together."""
        lags = [inner.source.lag() for inner in self._inner.values()]
        ages = [lag.seconds for lag in lags if lag.seconds is not None]
        return Lag(
            sum(lag.size or 0 for lag in lags),  # join takes no source whose size is unknown
            max(ages) if len(ages) == len(lags) else None,
            {name: why for lag in lags for name, why in lag.unreadable.items()},
            closed=sum(lag.closed for lag in lags),
            problems=tuple(problem for lag in lags for problem in lag.problems),
            skipped="; ".join(filter(None, (lag.skipped for lag in lags))),
        )

    def close(self) -> None:
        """Close all sources."""
        for inner in self._inner.values():
            inner.source.close()

    def _next(self) -> _Pending | None:
        error: SourceError | None = None
        for name in sorted(self._inner, key=lambda name: self._joiner.waiting[name]):
            try:
                batch = self._inner[name].source.read()
            except SourceError as failure:
                error = failure
                continue
            if batch is not None:
                return _Pending(self._joined(name, batch), name, batch)
        if error is not None:
            raise error
        lines = self._joiner.expire(math.inf if self._finished else self._clock())
        changes = self._joiner.changes()
        if not changes.outcomes and not changes.release:
            return None
        self._expired += len(lines)
        offsets = range(self._expired - len(lines), self._expired)
        batch = Batch(stream="", file=self.name, lines=lines, offsets=offsets, numbers=(0,) * len(lines), cursor="")
        return _Pending(self._with_changes(batch, Counter(), changes))

    def _joined(self, name: str, batch: Batch) -> Batch:
        """The joined records that a batch of parts completes."""
        now, at, reader = self._clock(), self._dates(), self._inner[name].reader
        joined: list[tuple[Line, int, int]] = []
        rejections = list(batch.rejections)
        tallies: Counter[TallyKey] = Counter()
        for index, line in expanded(enumerate(batch.lines), reader.expand):
            offset, number = batch.offsets[index], batch.numbers[index]
            try:
                parsed = parse_one(line, reader.parse)
                if isinstance(parsed, SkipReason):
                    tallies[Tally.SKIPPED, (self.name, parsed)] += 1
                    continue
                record, repaired = parsed
                tallies[Tally.REPAIRED, (self.name,)] += repaired
                whole = json_of(record) if is_feedback(record) else self._joiner.add(name, record, now, at)
            except FormatError as error:
                rejections.append(Rejection(RejectReason(error.reason), batch.file, number, error.field, str(error)))
                continue
            if whole is not None:
                joined.append((whole, offset, number))
        lines, offsets, numbers = zip(*joined, strict=True) if joined else ((), (), ())
        if batch.report is not None:  # of a source that answers its clients
            batch.report.rejections[:] = rejections
        stream = f"{name}/{batch.stream}"
        outer = replace(
            batch, stream=stream, lines=lines, offsets=offsets, numbers=numbers, rejections=rejections, report=None
        )
        return self._with_changes(outer, +tallies, self._joiner.changes())

    def _with_changes(self, batch: Batch, tallies: Counter[TallyKey], changes: Changes) -> Batch:
        for outcome, parts in changes.outcomes.items():
            tallies[Tally.PARTS, (self.name, outcome)] += parts
        return replace(batch, hold=changes.hold, release=changes.release, tallies=tallies)


def joiner(options: Options, limits: JoinLimits | None = None) -> Joiner:
    """Build the joiner of a source, with other limits than its own if there are any."""
    reader, needs_question = LogReader(options.rules), "question" in options.mapping

    def read(record: Record) -> Sample | None:
        try:
            sample = reader.read(record, "?")
        except FormatError:
            return None
        return None if needs_question and sample.question is None else sample

    return Joiner(
        tuple(options.inner()),
        extractor("by", options.by),
        whole=_whole(options, read),
        read=read,
        limits=limits or JoinLimits(options.within, options.max_waiting, options.max_bytes),
        stream=_stream(options),
    )


def _whole(options: Options, read: Read) -> Whole:
    """How a complete request is recognised: by default, the joined record can be read as a sample."""
    if (parts := options.parts) is not None:
        return lambda received, _: len(received) >= parts
    if options.complete is None:
        return lambda _, record: not options.concat and read(record) is not None  # pieces: only silence ends them
    if options.concat:  # it is about the last part
        return lambda _, record: read(record) is not None
    complete = predicate("complete", options.complete)
    return lambda _, record: holds(complete, record)


def _stream(options: Options) -> Stream | None:
    """How answers in pieces are joined; None for whole ones."""
    if not options.concat:
        return None
    concat = {name: extractor(f"concat.{name}", expression) for name, expression in options.concat.items()}
    pieces = Pieces(concat, None if options.order is None else extractor("order", options.order))
    files = frozenset(name for name, (_, inner) in options.inner().items() if isinstance(inner, HasLogFiles))
    ends = None if options.complete is None else predicate("complete", options.complete)
    return Stream(pieces, ends, files)


def build(options: Options) -> JoinSource:
    """Make the source."""
    return JoinSource(options)
