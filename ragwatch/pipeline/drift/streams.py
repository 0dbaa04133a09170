"""Drift streams: the state of each detector, for scores against a reference, scores against a control, and counts."""

from __future__ import annotations

from dataclasses import dataclass
from operator import add
from typing import Generic, NotRequired, TypedDict, TypeVar, cast

from ragwatch.core.drift import detect
from ragwatch.core.drift.detect import Alarm, DetectorRecord, DetectorState, Numbers, Scheme, Score
from ragwatch.core.drift.detectors.betting import (
    ControlScheme,
    QueueRecord,
    ScorePair,
    ScoreQueue,
    pair,
    queue_from_dict,
    queue_to_dict,
)
from ragwatch.core.drift.detectors.reference import ReferenceScheme
from ragwatch.core.drift.detectors.shift import Counts, CountScheme, ShiftDetector
from ragwatch.core.drift.recovery import EndTest, Mend, Recovery, RecoveryRecord, limit_time
from ragwatch.core.tally import bound_label
from ragwatch.model.signals import Signal

_R = TypeVar("_R")
RISING_FROM = 1e-3
"""Share of the threshold above which evidence counts as rising: about half of its logarithm."""


class ReferenceRecord(DetectorRecord):
    """The state of a stream with a reference as JSON values; earlier versions had no test that ends alarms."""

    recovery: NotRequired[RecoveryRecord]


class ControlRecord(DetectorRecord):
    """The state of a stream with a control as JSON values."""

    queue: QueueRecord


class RiseRecord(TypedDict):
    """Since when the evidence about a signal has risen, and the requests since, as JSON values."""

    began: float
    counts: list[int]
    cut: int | None


@dataclass(slots=True)
class Rise:
    """The requests since the evidence about a signal began to rise.

    Attributes:
        began: When, in seconds since the epoch.
        counts: Their number in each bucket.
        cut: The bucket above which they differed most when the alarm was raised; None without an alarm.
    """

    began: float
    counts: tuple[int, ...]
    cut: int | None = None

    def to_record(self) -> RiseRecord:
        """The rise as JSON values."""
        return {"began": self.began, "counts": list(self.counts), "cut": self.cut}


class SignalRecord(TypedDict):
    """The state of a stream of counts as JSON values; earlier versions did not store the rise."""

    watch: DetectorRecord
    counts: list[int]
    vocabulary: NotRequired[str | None]
    rise: NotRequired[RiseRecord | None]


class DriftStream(Generic[_R]):
    """The state of one detector: its reference, its evidence and its alarm.

    Args:
        scheme: How values are watched.
    """

    def __init__(self, scheme: Scheme[_R]) -> None:
        self._scheme = scheme
        self._watch: DetectorState[_R] = detect.begin(scheme)

    @property
    def alarm(self) -> Alarm | None:
        """The active alarm."""
        return self._watch.alarm

    @property
    def evidence(self) -> float | None:
        """Evidence now; None while the reference is being learnt."""
        return self._watch.evidence

    @property
    def learning(self) -> bool:
        """Whether the reference is being learnt."""
        return self._watch.detector is None

    @property
    def threshold(self) -> float | None:
        """Evidence from which on there is an alarm; None while the reference is being learnt."""
        return None if self._watch.detector is None else self._watch.detector.threshold

    @property
    def complete(self) -> bool:
        """Whether the reference is complete: nothing more is learnt."""
        return not self.learning and self._scheme.look(self._watch.reference) >= self._scheme.looks

    def limit_time(self, now: float) -> None:
        """Replace times after now, which come from a clock that was ahead, by now."""
        self._watch = detect.cap_time(self._watch, now)

    def acknowledge(self) -> None:
        """End the alarm; evidence restarts at 0."""
        self._watch = detect.acknowledge(self._watch)

    def renew(self) -> None:
        """End the alarm and learn another reference."""
        self._watch = detect.renew(self._scheme, self._watch)

    def _step(self, seq: int, at: float, value: _R | None, *, learn: bool = True) -> None:
        self._watch = detect.step(self._scheme, self._watch, seq, at, value, learn=learn)


class ReferenceStream(DriftStream[Score]):
    """Scores of one quantity on one route that are compared with a reference from their own past.

    Args:
        scheme: How scores are watched.
        end: Tests whether the break behind an alarm is over.
    """

    def __init__(self, scheme: ReferenceScheme, end: EndTest) -> None:
        super().__init__(scheme)
        self._reference = scheme
        self._baseline: tuple[Numbers, float | None] = ((), None)
        self._end = end
        self._recovery = Recovery()

    @property
    def baseline(self) -> float | None:
        """The worst mean that still counts as unchanged; None while the reference is being learnt."""
        if self._watch.detector is None:
            return None
        if self._baseline[0] is not self._watch.reference:
            self._baseline = self._watch.reference, self._reference.baseline(self._watch.reference)
        return self._baseline[1]

    @property
    def mean(self) -> float | None:
        """The mean of the scores that were learnt from; None before the first."""
        return self._reference.mean(self._watch.reference)

    def take(self, seq: int, at: float, score: Score, *, control: bool, learn: bool = True) -> None:
        """Add a score, from which the reference may be learnt or not. There is no control."""
        del control
        before = self._watch
        self._step(seq, at, score, learn=learn)
        baseline, evidence, threshold = self.baseline, self.evidence, self.threshold
        if self._watch.seq == before.seq or baseline is None or evidence is None or threshold is None:
            return
        if before.alarm is None:
            self._recovery = self._end.watch(self._recovery, score, evidence / threshold)
        else:
            passed = 0.0 if before.at is None or self._watch.at is None else self._watch.at - before.at
            self._recovery = self._end.step(self._recovery, score, at, passed, baseline)

    @property
    def mend(self) -> Mend | None:
        """The mend of the break behind the alarm; None while it is not over. Acknowledge the alarm then."""
        baseline = self.baseline
        return None if self.alarm is None or baseline is None else self._end.mend(self._recovery, baseline)

    def limit_time(self, now: float) -> None:
        """Replace times after now, which come from a clock that was ahead, by now."""
        super().limit_time(now)
        self._recovery = limit_time(self._recovery, now)

    def acknowledge(self) -> None:
        """End the alarm; evidence restarts at 0."""
        super().acknowledge()
        self._recovery = Recovery()

    def renew(self) -> None:
        """End the alarm and learn another reference."""
        super().renew()
        self._recovery = Recovery()

    def to_dict(self) -> ReferenceRecord:
        """The state as JSON values."""
        return {**detect.to_dict(self._watch), "recovery": self._recovery.to_record()}

    def load(self, state: ReferenceRecord) -> None:
        """Continue with a state that `to_dict` returned.

        Raises:
            KeyError: A value is missing.
            TypeError: A value has another type.
            ValueError: A value is out of range.
        """
        recovery = Recovery.from_record(state["recovery"]) if "recovery" in state else Recovery()
        self._watch, self._recovery = detect.from_dict(self._scheme, state), recovery


class ControlStream(DriftStream[ScorePair]):
    """Scores of one quantity on one route that are compared with those of a control at the same time."""

    def __init__(self, scheme: ControlScheme) -> None:
        super().__init__(scheme)
        self._queue = ScoreQueue()

    @property
    def baseline(self) -> None:
        """None: scores are compared with the control, whose mean may change."""
        return

    @property
    def mean(self) -> None:
        """None, for the same reason."""
        return

    @property
    def mend(self) -> None:
        """None, for the same reason: the alarm is active until it is acknowledged."""
        return

    def take(self, seq: int, at: float, score: Score, *, control: bool, learn: bool = True) -> None:
        """Add a score of either side. Nothing is learnt."""
        del learn
        self._queue, scores = pair(self._queue, score, control=control)
        self._step(seq, at, scores)

    def renew(self) -> None:
        """End the alarm. There is no reference to learn."""
        self.acknowledge()

    def to_dict(self) -> ControlRecord:
        """The state, with the scores that wait for one of the other side."""
        return {**detect.to_dict(self._watch), "queue": queue_to_dict(self._queue)}

    def load(self, state: ControlRecord) -> None:
        """Continue with a state that `to_dict` returned. Raises as for a stream with a reference."""
        queue = queue_from_dict(state["queue"])
        self._watch = detect.from_dict(self._scheme, state)
        self._queue = queue


ScoreStream = ReferenceStream | ControlStream


@dataclass(frozen=True, slots=True)
class SignalChange:
    """How the distribution of a signal changed.

    Attributes:
        began: Estimated time of the change, in seconds since the epoch.
        above: The value above which requests are counted; None where those that have the signal are.
        before: Their share while the reference was learnt.
        since: Their share since the change.
    """

    began: float
    above: str | None
    before: float
    since: float


class SignalStream(DriftStream[Counts]):
    """Counts of one signal on one route.

    Args:
        signal: The signal.
        scheme: How its distribution is watched.
        counts: Counts at present; only later requests are watched.
        vocabulary: Fingerprint of the vocabulary that questions are measured with; None for other signals.

    Attributes:
        signal: The signal.
    """

    def __init__(
        self, signal: Signal, scheme: CountScheme, counts: tuple[int, ...], vocabulary: str | None = None
    ) -> None:
        super().__init__(scheme)
        self.signal = signal
        self._counts = counts
        self._vocabulary = vocabulary
        self._rise: Rise | None = None

    def take(self, counts: tuple[int, ...], now: float, vocabulary: str | None = None, *, learn: bool = True) -> bool:
        """Add the requests since the last call. True when the state has changed.

        Args:
            counts: Counts at present.
            now: Seconds since the epoch.
            vocabulary: Fingerprint of the vocabulary at present.
            learn: Whether the reference may be learnt from these requests.
        """
        if self._vocabulary != vocabulary:  # another vocabulary measures other things: its reference is of no use
            self.renew()
            self._vocabulary, self._counts = vocabulary, counts
            return True
        new = tuple(count - before for count, before in zip(counts, self._counts, strict=True))
        if not any(new):
            return False
        self._counts = counts
        self.limit_time(now)
        if min(new) >= 0:  # otherwise of a version with other buckets: no traffic
            self._follow(new, now, learn=learn)
        return True

    def _follow(self, new: tuple[int, ...], now: float, *, learn: bool) -> None:
        """Step, and count the requests since the evidence began to rise."""
        evidence, threshold, before = self.evidence, self.threshold, self._watch.at
        if evidence is None or threshold is None:
            self._rise = None
        elif self._rise is None or (self.alarm is None and evidence < RISING_FROM * threshold):
            self._rise = Rise(now if before is None else before, (0,) * len(new))
        self._step(self._watch.seq + sum(new), now, new, learn=learn)
        if (rise := self._rise) is not None:
            rise.counts = tuple(map(add, rise.counts, new))
            if self.alarm is None:
                rise.cut = None
            elif rise.cut is None:
                rise.cut = cast("ShiftDetector", self._watch.detector).where(self._watch.numbers)[0]

    def change(self) -> SignalChange | None:
        """How the distribution changed, while there is an alarm; None if it was raised by an earlier version."""
        rise = self._rise
        if self.alarm is None or rise is None or rise.cut is None or not any(rise.counts):
            return None
        reference, bounds, first = self._watch.reference[: len(rise.counts)], self.signal.row.bounds, rise.cut + 1
        return SignalChange(
            began=rise.began,
            above=None if bounds is None else bound_label(bounds[rise.cut]),
            before=sum(reference[first:]) / sum(reference),
            since=sum(rise.counts[first:]) / sum(rise.counts),
        )

    def shift(self) -> dict[str, str]:
        """The value at which the distribution has shifted most, and the direction. Only after learning."""
        detector = cast("ShiftDetector", self._watch.detector)
        cut, direction = detector.where(self._watch.numbers)
        bounds = self.signal.row.bounds
        bound = "yes" if bounds is None else bound_label(bounds[cut])
        return {"cut": bound, "direction": str(direction)}

    def to_dict(self) -> SignalRecord:
        """The state, with the counts that are included in it."""
        return {
            "watch": detect.to_dict(self._watch),
            "counts": list(self._counts),
            "vocabulary": self._vocabulary,
            "rise": None if self._rise is None else self._rise.to_record(),
        }

    def load(self, state: SignalRecord) -> None:
        """Continue with a state that `to_dict` returned. Raises as for a stream with a reference."""
        counts, vocabulary = tuple(map(int, state["counts"])), state.get("vocabulary")
        if len(counts) != len(self._counts):
            raise ValueError(f"{len(counts)} buckets instead of {len(self._counts)}")
        self._watch = detect.from_dict(self._scheme, state["watch"])
        self._counts, self._vocabulary = counts, vocabulary
        if (rise := state.get("rise")) is not None and len(rise["counts"]) == len(counts):
            self._rise = Rise(rise["began"], tuple(map(int, rise["counts"])), rise["cut"])
