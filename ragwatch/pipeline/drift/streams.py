"""Drift streams: the state of each detector, for scores against a reference, scores against a control, and counts."""

from __future__ import annotations

from typing import Generic, NotRequired, TypeVar

from ragwatch.statistics.drift import detect
from ragwatch.statistics.drift.detect import Alarm, DetectorRecord, DetectorState, Numbers, Scheme, Score
from ragwatch.statistics.drift.detectors.betting import (
    ControlScheme,
    QueueRecord,
    ScorePair,
    ScoreQueue,
    pair,
    queue_from_dict,
    queue_to_dict,
)
from ragwatch.statistics.drift.detectors.reference import ReferenceScheme
from ragwatch.statistics.drift.recovery import RISING_CREDITS, EndTest, Mend, Recovery, RecoveryRecord, limit_time

_R = TypeVar("_R")


class ReferenceRecord(DetectorRecord):
    """The state of a stream with a reference as JSON values; earlier versions had no test that ends alarms."""

    recovery: NotRequired[RecoveryRecord]


class ControlRecord(DetectorRecord):
    """The state of a stream with a control as JSON values."""

    queue: QueueRecord


class DriftStream(Generic[_R]):
    """The state of one detector: its reference, its evidence and its alarm.

    Args:
        scheme: How values are watched.
    """

    def __init__(self, scheme: Scheme[_R]) -> None:
        self._scheme = scheme
        self._watch: DetectorState[_R] = detect.begin(scheme)
        self._recovery = Recovery()  # the test that ends an alarm, of streams that have one

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
    def rising(self) -> bool:
        """Whether the evidence is above what it is without a change."""
        return self._watch.rising()

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
        self._recovery = limit_time(self._recovery, now)

    def acknowledge(self) -> None:
        """End the alarm; evidence restarts at 0."""
        self._watch, self._recovery = detect.acknowledge(self._watch), Recovery()

    def renew(self) -> None:
        """End the alarm and learn another reference."""
        self._watch, self._recovery = detect.renew(self._scheme, self._watch), Recovery()

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
        baseline = self.baseline
        if self._watch.seq == before.seq or baseline is None:
            return
        if before.alarm is None:
            rising = self._watch.rising(RISING_CREDITS, 0.0)
            self._recovery = self._end.watch(self._recovery, score, rising=rising)
        else:
            passed = 0.0 if before.at is None or self._watch.at is None else self._watch.at - before.at
            self._recovery = self._end.step(self._recovery, score, at, passed, baseline)

    @property
    def mend(self) -> Mend | None:
        """The mend of the break behind the alarm; None while it is not over. Acknowledge the alarm then."""
        baseline = self.baseline
        return None if self.alarm is None or baseline is None else self._end.mend(self._recovery, baseline)

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
