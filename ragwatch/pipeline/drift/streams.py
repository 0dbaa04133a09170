"""Drift streams: the state of each detector, for scores against a reference, scores against a control, and counts."""

from __future__ import annotations

from typing import Generic, NotRequired, TypedDict, TypeVar, cast

from ragwatch.core.drift import detect
from ragwatch.core.drift.detect import Alarm, DetectorRecord, DetectorState, Numbers, Scheme, Score
from ragwatch.core.drift.detectors.betting import ScorePair
from ragwatch.core.drift.detectors.control import (
    ControlScheme,
    QueueRecord,
    ScoreQueue,
    pair,
    queue_from_dict,
    queue_to_dict,
)
from ragwatch.core.drift.detectors.reference import ReferenceScheme
from ragwatch.core.drift.detectors.shift import Counts, CountScheme, ShiftDetector
from ragwatch.core.tally import bound_label
from ragwatch.model.signals import Signal

_R = TypeVar("_R")


class ControlRecord(DetectorRecord):
    """The state of a stream with a control as JSON values."""

    queue: QueueRecord


class SignalRecord(TypedDict):
    """The state of a stream of counts as JSON values."""

    watch: DetectorRecord
    counts: list[int]
    vocabulary: NotRequired[str | None]


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
    """Scores of one quantity on one route that are compared with a reference from their own past."""

    def __init__(self, scheme: ReferenceScheme) -> None:
        super().__init__(scheme)
        self._reference = scheme
        self._baseline: tuple[Numbers, float | None] = ((), None)

    @property
    def baseline(self) -> float | None:
        """The worst mean that still counts as unchanged; None while the reference is being learnt."""
        if self._watch.detector is None:
            return None
        if self._baseline[0] is not self._watch.reference:
            self._baseline = self._watch.reference, self._reference.baseline(self._watch.reference)
        return self._baseline[1]

    def take(self, seq: int, at: float, score: Score, *, control: bool, learn: bool = True) -> None:
        """Add a score, from which the reference may be learnt or not. There is no control."""
        del control
        self._step(seq, at, score, learn=learn)

    def to_dict(self) -> DetectorRecord:
        """The state as JSON values."""
        return detect.to_dict(self._watch)

    def load(self, state: DetectorRecord) -> None:
        """Continue with a state that `to_dict` returned.

        Raises:
            KeyError: A value is missing.
            TypeError: A value has another type.
            ValueError: A value is out of range.
        """
        self._watch = detect.from_dict(self._scheme, state)


class ControlStream(DriftStream[ScorePair]):
    """Scores of one quantity on one route that are compared with those of a control at the same time."""

    def __init__(self, scheme: ControlScheme) -> None:
        super().__init__(scheme)
        self._queue = ScoreQueue()

    @property
    def baseline(self) -> None:
        """None: scores are compared with the control, whose mean may change."""
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
            self._step(self._watch.seq + sum(new), now, new, learn=learn)
        return True

    def shift(self) -> dict[str, str]:
        """The value at which the distribution has shifted most, and the direction. Only after learning."""
        detector = cast("ShiftDetector", self._watch.detector)
        cut, direction = detector.where(self._watch.numbers)
        bounds = self.signal.row.bounds
        bound = "yes" if bounds is None else bound_label(bounds[cut])
        return {"cut": bound, "direction": str(direction)}

    def to_dict(self) -> SignalRecord:
        """The state, with the counts that are included in it."""
        return {"watch": detect.to_dict(self._watch), "counts": list(self._counts), "vocabulary": self._vocabulary}

    def load(self, state: SignalRecord) -> None:
        """Continue with a state that `to_dict` returned. Raises as for a stream with a reference."""
        counts, vocabulary = tuple(map(int, state["counts"])), state.get("vocabulary")
        if len(counts) != len(self._counts):
            raise ValueError(f"{len(counts)} buckets instead of {len(self._counts)}")
        self._watch = detect.from_dict(self._scheme, state["watch"])
        self._counts, self._vocabulary = counts, vocabulary
