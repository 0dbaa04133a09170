"""Drift streams: the state of each detector, for scores against a reference or a control, and for counts of traffic."""

from dataclasses import asdict, dataclass
from operator import add
from typing import Generic, TypeVar, cast

from ragwatch.model.signals import Signal
from ragwatch.ports import SavedState
from ragwatch.statistics.drift import detect
from ragwatch.statistics.drift.detect import Alarm, DetectorState, Direction, Numbers, Scheme, Score
from ragwatch.statistics.drift.detectors import ControlScheme, ScorePair, ScoreQueue, pair
from ragwatch.statistics.drift.recovery import RISING_CREDITS, EndTest, Mend, Recovery, Sums, limit_time
from ragwatch.statistics.drift.reference import ReferenceScheme
from ragwatch.statistics.drift.shift import Counts, CountScheme, ShiftDetector
from ragwatch.statistics.estimators.interval import clopper_pearson
from ragwatch.statistics.tally import bound_label

_R = TypeVar("_R")


class DriftStream(Generic[_R]):
    """The state of one detector: its reference, its evidence and its alarm."""

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

    `end` tests whether the break behind an alarm is over.
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
        """The end of the break behind the alarm; None while it is not over. Acknowledge the alarm then."""
        baseline = self.baseline
        return None if self.alarm is None or baseline is None else self._end.mend(self._recovery, baseline)

    def to_dict(self) -> SavedState:
        """The state as JSON values."""
        return {**detect.to_dict(self._watch), "recovery": self._recovery._asdict()}

    def load(self, state: SavedState) -> None:
        """Continue with a state that `to_dict` returned.

        Raises:
            KeyError, TypeError, ValueError: A value is missing, of another type or out of range.
        """
        recovery = Recovery.from_record(state["recovery"]) if "recovery" in state else Recovery()
        self._watch, self._recovery = detect.from_dict(self._scheme, state), recovery


class ControlStream(DriftStream[ScorePair]):
    """Scores of one quantity on one route that are compared with those of a control at the same time.

    The mean of the control may change: there is no baseline, and an alarm is active until it is acknowledged.
    """

    baseline: None = None
    mean: None = None
    mend: None = None

    def __init__(self, scheme: ControlScheme) -> None:
        super().__init__(scheme)
        self._queue = ScoreQueue()

    def take(self, seq: int, at: float, score: Score, *, control: bool, learn: bool = True) -> None:
        """Add a score of either side. Nothing is learnt."""
        del learn
        self._queue, scores = pair(self._queue, score, control=control)
        self._step(seq, at, scores)

    def renew(self) -> None:
        """End the alarm. There is no reference to learn."""
        self.acknowledge()

    def to_dict(self) -> SavedState:
        """The state, with the scores that wait for one of the other side."""
        scores = [score._asdict() for score in self._queue.scores]
        return {**detect.to_dict(self._watch), "queue": {"control": self._queue.control, "scores": scores}}

    def load(self, state: SavedState) -> None:
        """Continue with a state that `to_dict` returned. Raises as for a stream with a reference."""
        queue = ScoreQueue(tuple(Score(**score) for score in state["queue"]["scores"]), bool(state["queue"]["control"]))
        self._watch, self._queue = detect.from_dict(self._scheme, state), queue


ScoreStream = ReferenceStream | ControlStream


CONFIDENCE = 0.98  # confidence of the lower bound of a share since a change


@dataclass(slots=True)
class Rise:
    """The requests since the evidence about a signal began to rise."""

    began: float  # when, in seconds since the epoch
    counts: tuple[int, ...]  # their number in each bucket
    cut: int | None = None  # the bucket above which they differed most when the alarm was raised; None without an alarm
    # whether more or fewer of them than before were above it; None without, and in earlier versions
    direction: Direction | None = None


@dataclass(frozen=True, slots=True)
class SignalChange:
    """How the distribution of a signal changed."""

    began: float  # estimated time of the change, in seconds since the epoch
    above: str | None  # the value above which requests are counted; None where those that have the signal are
    before: float  # their share while the reference was learnt
    since: float  # their share since the change
    since_low: float  # its lower bound (Clopper and Pearson, at `CONFIDENCE`): the first answers after a change are few


class SignalStream(DriftStream[Counts]):
    """Counts of one signal on one route, of which only those after the given ones are watched.

    Args:
        end: Tests whether the change behind an alarm is over.
        vocabulary: Fingerprint of the vocabulary that questions are measured with; None for other signals.
    """

    def __init__(
        self, signal: Signal, scheme: CountScheme, end: EndTest, counts: tuple[int, ...], vocabulary: str | None = None
    ) -> None:
        super().__init__(scheme)
        self.signal = signal
        self._end = end
        self._counts = counts
        self._vocabulary = vocabulary
        self._rise: Rise | None = None

    def take(self, counts: tuple[int, ...], now: float, vocabulary: str | None = None, *, learn: bool = True) -> bool:
        """Add the requests since the last call, and learn from them if `learn`. True when the state has changed."""
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
        """Step, count the requests since the evidence began to rise, and test whether the alarm is over."""
        alarm, before = self.alarm, self._watch.at
        if self.evidence is None:
            self._rise = None
        elif self._rise is None or (alarm is None and not self.rising):
            self._rise = Rise(now if before is None else before, (0,) * len(new))
        self._step(self._watch.seq + sum(new), now, new, learn=learn)
        if (rise := self._rise) is None:
            return
        if self.alarm is None:
            rise.cut, rise.direction = None, None
        elif alarm is None:
            rise.cut, rise.direction = self._detector.where(self._watch.numbers)
        if alarm is None:
            rise.counts = tuple(map(add, rise.counts, new))
        if self.alarm is None or rise.direction is None:
            return
        good, total = self._usual(new if alarm is not None else rise.counts, rise)
        if alarm is None:
            self._recovery = Recovery(worse=Sums(total, total, good, total))
        else:
            passed = 0.0 if before is None else now - before
            self._recovery = self._end.batch(self._recovery, (good, total), now, passed, self._smallest(rise))

    @property
    def _detector(self) -> ShiftDetector:
        return cast("ShiftDetector", self._watch.detector)

    def _usual(self, counts: tuple[int, ...], rise: Rise) -> tuple[int, int]:
        """Number of requests on the side of the cut that has become smaller, and of all."""
        first = cast("int", rise.cut) + 1
        return sum(counts[:first] if rise.direction is Direction.RISE else counts[first:]), sum(counts)

    def _smallest(self, rise: Rise) -> float:
        """The smallest normal share of that side."""
        return self._detector.shares[cast("int", rise.cut)][rise.direction is Direction.FALL]

    @property
    def mend(self) -> Mend | None:
        """The end of the change behind the alarm; None while it is not over. Acknowledge the alarm then."""
        rise = self._rise
        if self.alarm is None or self.learning or rise is None or rise.direction is None:
            return None
        return self._end.mend(self._recovery, self._smallest(rise))

    def acknowledge(self) -> None:
        """End the alarm; evidence restarts at 0."""
        super().acknowledge()
        self._rise = None

    def renew(self) -> None:
        """End the alarm and learn another reference."""
        super().renew()
        self._rise = None

    def change(self) -> SignalChange | None:
        """How the distribution changed, while there is an alarm; None if it was raised by an earlier version.

        A mend does not thin the share since the change: the requests that may be of after it do not count.
        """
        rise = self._rise
        if self.alarm is None or rise is None or rise.cut is None or not any(rise.counts):
            return None
        reference, bounds, first = self._watch.reference[: len(rise.counts)], self.signal.row.bounds, rise.cut + 1
        total = float(sum(rise.counts))
        since = sum(rise.counts[first:]) / total
        if worse := self._recovery.worse.n:
            total, usual = worse, self._recovery.worse.mean
            since = 1.0 - usual if rise.direction is Direction.RISE else usual
        return SignalChange(
            began=rise.began,
            above=None if bounds is None else bound_label(bounds[rise.cut]),
            before=sum(reference[first:]) / sum(reference),
            since=since,
            since_low=clopper_pearson(since, total, 2.0 * CONFIDENCE - 1.0)[0],
        )

    def shift(self) -> dict[str, str]:
        """The value at which the distribution has shifted most, and the direction. Only after learning."""
        cut, direction = self._detector.where(self._watch.numbers)
        bounds = self.signal.row.bounds
        bound = "yes" if bounds is None else bound_label(bounds[cut])
        return {"cut": bound, "direction": str(direction)}

    def to_dict(self) -> SavedState:
        """The state, with the counts that are included in it."""
        return {
            "watch": detect.to_dict(self._watch),
            "counts": list(self._counts),
            "vocabulary": self._vocabulary,
            "rise": None if self._rise is None else asdict(self._rise),
            "recovery": self._recovery._asdict(),
        }

    def load(self, state: SavedState) -> None:
        """Continue with a state that `to_dict` returned. Raises as for a stream with a reference."""
        counts, vocabulary = tuple(map(int, state["counts"])), state.get("vocabulary")
        if len(counts) != len(self._counts):
            raise ValueError(f"{len(counts)} buckets instead of {len(self._counts)}")
        self._watch = detect.from_dict(self._scheme, state["watch"])
        self._counts, self._vocabulary = counts, vocabulary
        if (rise := state.get("rise")) is not None and len(rise["counts"]) == len(counts):
            direction = rise.get("direction")
            counts = tuple(map(int, rise["counts"]))
            self._rise = Rise(rise["began"], counts, rise["cut"], None if direction is None else Direction(direction))
        if "recovery" in state:
            self._recovery = Recovery.from_record(state["recovery"])
