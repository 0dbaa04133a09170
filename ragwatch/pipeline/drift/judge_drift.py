"""Drift of the judge itself: anchors, and the bridge between two versions. Both read samples outside of the queue.

Anchors are fixed samples that a judge reads at intervals, and at once when its version has changed. Each verdict is
compared with that of the first reading of the same set. If as many verdicts changed in one direction as in the other,
the judge is only noisy; if more changed in one direction than chance explains (McNemar's test), the judge has drifted,
and with it every mean.

The bridge tells the step of every mean at a change of the judge from a change of the service: the mean difference of
each quantity between both versions on the same answers, with its interval.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import TypedDict

from ragwatch.errors import StoreError
from ragwatch.formats import canonical
from ragwatch.model.quantities import Quantity
from ragwatch.model.sample import OTHER, Draw, Sample
from ragwatch.pipeline.reading import Deferred, DrawReader
from ragwatch.ports import Judge, LoopContext, Query, RecordedEvent, StoredRun
from ragwatch.statistics.compare import offset
from ragwatch.statistics.labels.agreement import VerdictFlips, flips, share
from ragwatch.statistics.snapshot import Gauge, Gauges
from ragwatch.statistics.tally import Tallies
from ragwatch.statistics.verdict import Judged, Unjudged, Verdict
from ragwatch.telemetry import Telemetry

SOURCE = "rereading"


class SampleSetReading:
    """Reads sets of samples, each to its end, despite outages of the judge."""

    def __init__(self, judge: Judge, *, timeout_seconds: float, telemetry: Telemetry) -> None:
        self._reader = DrawReader(judge, timeout_seconds=timeout_seconds, telemetry=telemetry)
        self._read: dict[str, Verdict] = {}

    async def read(self, samples: Mapping[str, Sample], at: float) -> dict[str, Verdict] | None:
        """Read samples. Returns the verdict on each by key.

        None while the judge is not available or its budget is used up: call again with the same samples later. Samples
        that were read (and paid) are not read again.
        """
        self._read = {key: reading for key, reading in self._read.items() if key in samples}
        if self._reader.judge.ready_in() > 0.0:
            return None
        missing = [(key, sample) for key, sample in samples.items() if key not in self._read]
        draws = [Draw(key, sample, SOURCE, OTHER, 1.0, at=at) for key, sample in missing]
        for draw, outcome in zip(draws, await asyncio.gather(*map(self._reader.read, draws)), strict=True):
            if not isinstance(outcome, Deferred):
                self._read[draw.key] = outcome
        if len(self._read) < len(samples):
            return None
        done, self._read = self._read, {}
        return done


ANCHOR = "anchor"  # kind of stored runs
CLAIM_SECONDS = 3600.0  # of the right to read a set in a fleet: longer than reading takes
Scores = Mapping[str, Mapping[str, float | None]]  # by anchor, by quantity


@dataclass(frozen=True, slots=True)
class Anchor:
    """A fixed sample, and its label: whether the answer is good; None without a label."""

    sample: Sample
    good: bool | None = None

    @property
    def key(self) -> str:
        """A hash of everything that a judge reads."""
        sample = self.sample
        texts: list[object] = [sample.question, [context.text for context in sample.contexts], sample.answer]
        if sample.history:
            texts.append(sample.history)
        return blake2b(json.dumps(texts).encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class AnchorRules:
    """How anchors are read and compared."""

    every: float = 86400.0  # seconds between two readings
    quantity: Quantity = Quantity.FAITHFULNESS
    at_least: float = 1.0  # score from which on the verdict is yes; for quantities that should be low, no
    risk: float = 1.0 / 90.0  # probability of a false alarm at each reading: `every` / time between false alarms
    timeout_seconds: float = 60.0


def fingerprint(anchors: Sequence[Anchor]) -> str:
    """A hash of the set, independent of its order: readings of different sets are not compared.

    >>> first, second = (Anchor(Sample(name, "why?", (), name)) for name in "ab")
    >>> fingerprint([first, second]) == fingerprint([second, first]) != fingerprint([first])
    True
    """
    return blake2b("".join(sorted({anchor.key for anchor in anchors})).encode(), digest_size=16).hexdigest()


class SetReading(TypedDict):
    """One reading of the set, as it is saved."""

    at: float
    version: str
    scores: Scores


class AnchorLoop:
    """The loop that reads one set of anchors with one judge, which must stay open."""

    def __init__(
        self, rules: AnchorRules, anchors: Sequence[Anchor], context: LoopContext, *, judge: Judge, holder: str
    ) -> None:
        self._store, self._telemetry, self._clock = context.store, context.telemetry, context.clock
        self.rules = rules
        self.judge = judge
        self._anchors = {anchor.key: anchor for anchor in anchors}
        self._fingerprint = fingerprint(anchors)
        self._holder = holder
        self._lock = asyncio.Lock()
        self._rereading = SampleSetReading(judge, timeout_seconds=rules.timeout_seconds, telemetry=context.telemetry)
        self._first: SetReading | None = None
        self._last: SetReading | None = None
        self._flips: VerdictFlips | None = None

    @property
    def name(self) -> str:
        """The judge's name, under which readings are kept."""
        return self.judge.name

    def resume(self) -> None:
        """Continue with the readings of earlier processes, if they are of the same set."""
        self._first, self._last, self._flips = None, None, None
        state = self._store.recall(f"{ANCHOR} {self.name}")
        if state is not None and state["fingerprint"] == self._fingerprint:
            self._first, self._last = state["first"], state["last"]
            self._compare()

    def due(self) -> bool:
        """Whether to read the set now: for the first time, after the interval, or with another version."""
        last = self._last
        if last is None or last["version"] != self.judge.version:
            return True
        age = self._clock() - float(last["at"])
        return abs(age) >= self.rules.every  # in either direction: the clock may have been ahead

    def moved(self) -> bool:
        """Whether the judge has drifted, as of the last reading."""
        return self._flips is not None and self._flips.p <= self.rules.risk

    def gauges(self) -> Gauges:
        """Values of the last reading; empty before there are two readings."""
        if self._flips is None:
            return {}
        return {
            (Gauge.JUDGE_DRIFT_FLIPS, (self.name,)): self._flips.rate.value,
            (Gauge.JUDGE_DRIFT_ALARM, (self.name,)): float(self.moved()),
        }

    async def step(self) -> bool:
        """Read the set if it is due. False if it is not, the judge is not available, or another process reads it."""
        async with self._lock:
            if not self.due() or not await asyncio.to_thread(self._claim):
                return False
            at = self._clock()
            readings = await self._rereading.read({key: anchor.sample for key, anchor in self._anchors.items()}, at)
            if readings is None:
                return False
            await asyncio.to_thread(self._record, readings, at)
            return True

    async def renew(self) -> bool:
        """Compare with the last reading from now on. False before the first reading."""
        async with self._lock:
            if self._last is None:
                return False
            self._first = self._last
            self._compare()
            await asyncio.to_thread(self._save)
            return True

    def _claim(self) -> bool:
        name, now = f"{ANCHOR} {self.name}", self._clock()
        return self._store.claim(name, self._holder, now=now, seconds=CLAIM_SECONDS)

    def _record(self, readings: Mapping[str, Verdict], at: float) -> None:
        scores = scores_of(readings)
        self._last = {"at": at, "version": self.judge.version, "scores": scores}
        self._first = self._first or self._last
        self._compare()
        reasons = Counter(str(one.reason) for one in readings.values() if isinstance(one, Unjudged))
        read = len(readings) - reasons.total()
        body = {
            "fingerprint": self._fingerprint,
            "version": self.judge.version,
            "since": self._first["version"],
            "read": read,
            "unread": dict(reasons),
            "flips": None if self._flips is None else asdict(self._flips),
            "offsets": offsets(self._first["scores"], scores),
            "agreement": self._agreement(scores),
        }
        self._store.record_run(StoredRun(ANCHOR, self.name, at, self.moved(), body), Tallies())
        self._save()
        changed = 0 if self._flips is None else round(self._flips.rate.value * self._flips.rate.n)
        self._telemetry.anchors_read(self.name, read=read, changed=changed, moved=self.moved())

    def _save(self) -> None:
        state = {"fingerprint": self._fingerprint, "first": self._first, "last": self._last}
        self._store.remember(f"{ANCHOR} {self.name}", state)

    def _compare(self) -> None:
        if self._first is None or self._last is None or self._first["at"] == self._last["at"]:
            self._flips = None
            return
        pairs: Counter[tuple[bool, bool]] = Counter()
        for key in self._anchors:
            before, after = (self._verdict(reading["scores"], key) for reading in (self._first, self._last))
            if before is not None and after is not None:
                pairs[before, after] += 1
        self._flips = flips(pairs)

    def _verdict(self, scores: Scores, key: str) -> bool | None:
        value = scores[key].get(self.rules.quantity)
        return None if value is None else value >= self.rules.at_least

    def _agreement(self, scores: Scores) -> dict[str, float | int] | None:
        """Share of the labelled anchors on which the judge agrees with the label."""
        pairs = [(anchor.good, self._verdict(scores, key)) for key, anchor in self._anchors.items()]
        agreed = [good == verdict for good, verdict in pairs if good is not None and verdict is not None]
        agreement = share(sum(agreed), len(agreed))
        return None if agreement is None else asdict(agreement)


def scores_of(readings: Mapping[str, Verdict]) -> dict[str, dict[str, float | None]]:
    """Scores of readings as JSON values, by key and by quantity."""
    return {
        key: {str(quantity): score for quantity, score in one.scores.items()} if isinstance(one, Judged) else {}
        for key, one in readings.items()
    }


def offsets(before: Scores, after: Scores) -> dict[str, dict[str, float | int]]:
    """Mean difference of the scores of the same samples, by quantity. Quantities without a pair are left out."""
    records = {}
    for quantity in dict.fromkeys(name for scores in after.values() for name in scores):
        pairs = ((before[key].get(quantity), after[key].get(quantity)) for key in before if key in after)
        mean = offset((old, new) for old, new in pairs if old is not None and new is not None)
        if mean is not None:
            records[quantity] = asdict(mean)
    return records


BRIDGE = "bridge"
MAX_CHARS = 16 << 20  # of all texts together
_SEARCH_FACTOR = 5  # verdicts searched for each answer: the new version may have read some already


class VersionBridge:
    """The loop that measures the offset when the version of one judge has changed.

    At most so many answers are read again: the newest that the old version has read. 0 for none.
    """

    def __init__(self, judge: Judge, max_answers: int, context: LoopContext, *, timeout_seconds: float) -> None:
        self._store, self._telemetry, self._clock = context.store, context.telemetry, context.clock
        self.judge = judge
        self._max_answers = max_answers
        self._rereading = SampleSetReading(judge, timeout_seconds=timeout_seconds, telemetry=context.telemetry)
        self._old: str | None = None
        self._before: dict[str, Mapping[str, float | None]] = {}
        self._samples: dict[str, Sample] = {}

    def resume(self) -> None:
        """Detect whether the version has changed since the last process, and select the answers to read.

        A bridge that was not finished starts again.
        """
        self._old, self._before, self._samples = None, {}, {}
        state = self._store.recall(self._name)
        if state is None:
            with suppress(StoreError):  # the first version that can be stored is the one to start with
                self._save()
        elif state["version"] != self.judge.version:
            self._open(str(state["version"]))

    async def step(self) -> bool:
        """Continue an open bridge. True when this step has measured the offset."""
        if self._old is None:
            return False
        at = self._clock()
        readings = await self._rereading.read(self._samples, at)
        if readings is None:
            return False
        await asyncio.to_thread(self._close, self._old, offsets(self._before, scores_of(readings)), at)
        self._old, self._before, self._samples = None, {}, {}
        return True

    @property
    def _name(self) -> str:
        return f"{BRIDGE} {self.judge.name}"

    def _open(self, old: str) -> None:
        since = self._store.pruned_until()  # of earlier answers, retention has kept failures only
        query = Query(judge=self.judge.name, outcome="judged", since=since, limit=_SEARCH_FACTOR * self._max_answers)
        chars = 0
        for entry in self._store.entries(query):  # one by one: they may be large together
            if len(self._samples) >= self._max_answers or chars > MAX_CHARS:
                break
            if entry.sample is None or entry.verdict.judge_version != old:
                continue
            key = entry.verdict.key
            with suppress(StoreError):  # a damaged sample is left out
                record, whole = entry.sample.beginning(MAX_CHARS)
                if not whole:
                    continue
                self._samples[key] = canonical.read(record, key)
                self._before[key] = {str(quantity): score for quantity, score in entry.verdict.scores.items()}
                chars += self._samples[key].chars
        self._old = old

    def _close(self, old: str, measured: Mapping[str, Mapping[str, float]], at: float) -> None:
        body = {"before": old, "after": self.judge.version, "offsets": measured, "answers": len(self._samples)}
        self._store.record_run(StoredRun(BRIDGE, self.judge.name, at, failing=False, body=body), Tallies())
        values = ", ".join(f"{quantity} {record['value']:+.3f}" for quantity, record in measured.items())
        detail = f"{self.judge.name}: {self.judge.version} instead of {old}: {values or 'no answers in common'}"
        self._store.record(RecordedEvent(at, "judge", detail))
        self._telemetry.announced("judge", detail)
        self._save()

    def _save(self) -> None:
        self._store.remember(self._name, {"version": self.judge.version})
