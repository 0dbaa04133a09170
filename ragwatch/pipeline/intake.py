"""Intake: records become samples, some are drawn, and all of it is admitted in one transaction with the cursor."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ragwatch.core.redaction.redactor import Redactor
from ragwatch.core.sample import OTHER, Draw, RejectReason, Sample
from ragwatch.core.sampling import SamplingPlan, chosen, key_of, shedding_factor
from ragwatch.core.signals import SignalCounter
from ragwatch.core.snapshot import Lag
from ragwatch.core.tally import Tallies, Tally
from ragwatch.errors import FormatError
from ragwatch.formats.record import Parse, parse
from ragwatch.pipeline.unreadable import UnreadableFiles
from ragwatch.pipeline.vocabularies import Vocabularies
from ragwatch.ports import Admission, Assignment, Batch, Rejection, Source, Store
from ragwatch.telemetry import Telemetry

CANARY = "canary"
"""Metadata key of answers that our own canaries asked for; probes send it as the header `X-Ragwatch-Canary`."""
_NOBODY = frozenset({"", "-", "0", "false", "no", "none", "null"})
Read = Callable[[Mapping[str, Any], str], Sample]


@dataclass(frozen=True, slots=True)
class IntakeRules:
    """What intake does to samples; swapped as a whole when the configuration is reloaded.

    Attributes:
        plan: Who is drawn, with which probability.
        judges: Conditional probability with which each judge reads a draw, by judge name; the first is the default.
        redactor: Takes personal data and secrets out of draws; None when redaction is off.
        max_pending: Unsettled draws of the default judge above which nothing more is read.
        shed_above: The same above which fewer are drawn (see `shedding_factor`); None for never.
        share: What a judge's probability is multiplied with at present: see `shares`.
        vocabularies: Where the words of questions are learnt; None where nobody watches them.
    """

    plan: SamplingPlan
    judges: Mapping[str, float]
    redactor: Redactor | None
    max_pending: int
    shed_above: int | None = None
    share: Callable[[str], float] = lambda _: 1.0
    vocabularies: Vocabularies | None = None


@dataclass(slots=True)
class _BatchResult:
    """What one batch turned into, so far."""

    tallies: Tallies
    signals: SignalCounter
    draws: list[tuple[Draw, tuple[Assignment, ...]]]
    of_draws: dict[str, Tallies]


def placing(plan: SamplingPlan, factor: float = 1.0) -> Callable[[Sample], tuple[str, float]]:
    """A function from sample to route (as a label value) and inclusion probability times `factor`."""
    known = {route: (route, factor * plan.probability_of(route)) for route in plan.known_routes}
    elsewhere = (OTHER, factor * plan.probability_of(OTHER))
    if plan.stratum is None:
        return lambda sample: known.get(sample.route, elsewhere)

    def by_stratum(sample: Sample) -> tuple[str, float]:
        route = plan.label(sample.route)
        return route, factor * plan.probability_of(route, sample.metadata.get(str(plan.stratum)))

    return by_stratum


def names_canary(value: object) -> bool:
    """Whether what stands under `CANARY` says that we asked.

    A service that logs the header of every request logs null, "" or "-" for those of its users, and one that is rolled
    out by canary releases may log false there. All of its traffic would be left out.

    >>> [names_canary(each) for each in ("refunds", True, None, "", "-", "None", False)]
    [True, True, False, False, False, False, False]
    """
    return value.strip().lower() not in _NOBODY if isinstance(value, str) else bool(value)


class IntakeLoop:
    """The loop of one source.

    Args:
        source: Where records come from.
        read: The format: turns a record and the id it has by position into a Sample.
        clock: Seconds since the epoch; used where a log does not say when.
        parse: Turns a line into a record.

    Attributes:
        lag: How far the source is behind, as of the last step; None before the first.
        skipped: How much of what was there at the very first start is not read, while nothing else was; else empty.
        first_rejected: The first record of this process that was not read as a sample.
        looked: Set once the source was looked at for the first time.
        factor: What the inclusion probabilities are multiplied with at present, because draws pile up.
    """

    def __init__(
        self,
        source: Source,
        read: Read,
        rules: IntakeRules,
        *,
        store: Store,
        telemetry: Telemetry,
        clock: Callable[[], float],
        parse: Parse = parse,
    ) -> None:
        self.source = source
        self.rules = rules
        self._read = read
        self._parse = parse
        self._store = store
        self._telemetry = telemetry
        self._clock = clock
        self._unreadable = UnreadableFiles(source.name, telemetry)
        self.lag: Lag | None = None
        self.skipped = ""
        self.first_rejected: Rejection | None = None
        self.looked = asyncio.Event()
        self.factor = 1.0

    async def step(self) -> bool:
        """Admit one batch. False when there was nothing to read, or the queue is full."""
        try:
            return await asyncio.to_thread(self._step)
        finally:
            self.looked.set()

    def _step(self) -> bool:
        try:
            return self._admit()
        finally:  # a step that fails leaves more unread, and what was unread before it is no longer true
            first, self.lag = self.lag is None, self.source.lag()
            self._unreadable.look(self.lag.unreadable, self._clock())
            if self.lag.closed:
                self._telemetry.files_closed(self.source.name, self.lag.closed)
            if first and self.lag.skipped:
                self._tell_skipped(self.lag.skipped)

    def _tell_skipped(self, how_much: str) -> None:
        """Say at the start that existing records are passed over, until something of the source was read."""
        if not self._store.tallies().get((Tally.SEEN, (self.source.name,))):
            self.skipped = how_much
            self._telemetry.skipped(self.source.name, how_much)

    def _admit(self) -> bool:
        waiting = self._waiting()
        self.factor = shedding_factor(waiting, self.rules.shed_above)
        if waiting >= self.rules.max_pending:
            return False
        batch = self.source.read()
        if batch is None:
            return False
        admission, questions = self._admission(batch)
        self._store.admit(admission)
        self.source.commit(batch)
        for reason in batch.resets:
            self._telemetry.reset(self.source.name, batch.file, reason)
        if self.rules.vocabularies is not None and questions:
            self.rules.vocabularies.learn(questions)
        return True

    def _waiting(self) -> int:
        """Unsettled draws of the default judge: an outage of another one must not stop the sources."""
        return self._store.pending().get(next(iter(self.rules.judges)), 0)

    def _admission(self, batch: Batch) -> tuple[Admission, dict[str, list[str]]]:
        """What is to be written, and questions to learn from once it is."""
        vocabularies = self.rules.vocabularies
        found = _BatchResult(Counter(), SignalCounter(None if vocabularies is None else vocabularies.meters), [], {})
        name, tallies = self.source.name, found.tallies
        if batch.lines or batch.rejections:
            tallies[Tally.SEEN, (name,)] += len(batch.lines) + len(batch.rejections)
        for rejection in batch.rejections:
            self._reject(tallies, rejection)
        for reason, times in batch.resets.items():
            tallies[Tally.RESETS, (name, reason)] += times
        self._take_lines(batch, found)
        found.signals.add_to(tallies)
        admission = Admission(name, batch.stream, batch.cursor, found.draws, tallies, self._clock(), found.of_draws)
        return admission, found.signals.to_learn_from()

    def _take_lines(self, batch: Batch, found: _BatchResult) -> None:
        """The hot path: every line of a busy log passes here, and most are not drawn."""
        name, stream, read, now = self.source.name, batch.stream, self._read, self._clock()
        parse = self._parse
        place = placing(self.rules.plan, self.factor)
        for line, offset, number in zip(batch.lines, batch.offsets, batch.numbers, strict=True):
            try:
                record, repaired = parse(line)
                sample = read(record, f"{stream}:{offset}")
            except FormatError as error:
                rejection = Rejection(RejectReason(error.reason), batch.file, number, error.field, str(error))
                self._reject(found.tallies, rejection)
                continue
            if repaired:
                found.tallies[Tally.REPAIRED, (name,)] += 1
            if CANARY in sample.metadata and names_canary(sample.metadata[CANARY]):
                found.tallies[Tally.OF_CANARIES, (name,)] += 1
                continue
            route, probability = place(sample)
            found.signals.add(route, sample)
            key = key_of(name, sample.id)
            if chosen(key, probability):
                at = now if sample.at is None else min(sample.at, now)
                self._draw(found, Draw(key, sample, name, route, probability, at))

    def _draw(self, found: _BatchResult, draw: Draw) -> None:
        assignments = self._assign(draw)
        if not assignments:  # no judge reads it: not a draw, or drawn would exceed judged + unjudged + pending
            return
        if self.rules.redactor is not None:
            clean, secrets = self.rules.redactor.redact_sample(draw.sample)
            draw = replace(draw, sample=clean)
            if secrets:  # of an id that comes twice, the first one is stored
                found.of_draws.setdefault(
                    draw.key, Counter({(Tally.REDACTED, (str(secret),)): times for secret, times in secrets.items()})
                )
        found.draws.append((draw, assignments))

    def _assign(self, draw: Draw) -> tuple[Assignment, ...]:
        """The judges that read this draw; the hash with the judge's name makes their choices independent."""
        return tuple(
            Assignment(judge, draw.probability * share)
            for judge, wanted in self.rules.judges.items()
            if (share := wanted * self.rules.share(judge)) >= 1.0 or chosen(key_of(judge, draw.key), share)
        )

    def _reject(self, tallies: Tallies, rejection: Rejection) -> None:
        tallies[Tally.REJECTED, (self.source.name, rejection.reason)] += 1
        self.first_rejected = self.first_rejected or rejection
        self._telemetry.rejected(
            self.source.name,
            rejection.reason,
            file=rejection.file,
            line=rejection.line,
            field=rejection.field,
            why=rejection.detail,
        )
