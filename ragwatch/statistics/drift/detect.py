"""Sequential change detection: a stream of readings in, an Alarm out, with a stated false alarm rate.

A `Scheme` defines what a reading is, how a reference is learnt and which `Detector` follows from it. A `DetectorState`
is the complete state of one stream: a daemon that is killed between two readings raises the same alarm at the same
reading. An alarm latches until a person or a test of its end (`recovery`) acknowledges it, or the baseline is renewed.

Detection starts with a small reference, which grows during detection. The null hypothesis is composite (the mean is at
least the lower bound that the reference allows) and tightens whenever the reference has doubled; evidence then restarts
at zero. A reading counts as evidence first and as part of the reference afterwards, so each null hypothesis depends on
earlier readings only, and evidence minus run length is a supermartingale while the bound in force holds. If a change is
suspected, the larger reference waits: until the evidence has fallen, or the reference has doubled twice.
"""

from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

Numbers = tuple[float, ...]
"""State of a detector, or what a scheme has learnt: a few floats."""

Reading_contra = TypeVar("Reading_contra", contravariant=True)
_R = TypeVar("_R")
_DAY = 86400.0
MAX_DAYS_PER_READING = 1.0
"""Run length that one reading adds at most, in days.

A period without traffic is no evidence, and a shorter run length keeps the guarantee.
"""
SUSPICION = 1e-3
"""Share of the threshold from which on evidence counts as a suspicion."""
_RISING_SHARE = 0.5  # of the threshold: from here on evidence rises, however little traffic there is
_CREDIT_SCORES = 100.0  # scores over which the run length that one adds is averaged
MIN_LEARNING_GAPS = 8.0
"""The time between two readings counts as at most 1 / MIN_LEARNING_GAPS of the learning time. So neither a period
without traffic nor a single wrong timestamp completes the reference; a stream with little traffic learns for longer."""


class Direction(StrEnum):
    """Direction in which a mean moves when quality gets worse."""

    FALL = "fall"
    RISE = "rise"


class Unit(StrEnum):
    """Unit of the average run length: scores, or the days that passed between them."""

    SCORES = "scores"
    DAYS = "days"


class Score(NamedTuple):
    """A score in [0, 1] with its weight, 1 / inclusion probability."""

    value: float
    weight: float = 1.0


class Detector(Protocol[Reading_contra]):
    """Computes evidence from readings. It holds the configuration only; its state is passed in and returned."""

    @property
    def threshold(self) -> float:
        """Evidence at which an alarm is raised."""

    @property
    def design(self) -> Numbers:
        """Identity of the detector: state can only be continued by a detector of the same design."""

    def start(self) -> Numbers:
        """Return the state before the first reading."""

    def step(self, numbers: Numbers, reading: Reading_contra, credit: float) -> Numbers:
        """Return the state after one more reading; `credit` is the run length that this reading adds."""

    def evidence(self, numbers: Numbers) -> float:
        """Return the evidence for a change."""


class Scheme(Protocol[Reading_contra]):
    """Defines how a stream is monitored: what is learnt from the first readings, and the detector that follows."""

    @property
    def unit(self) -> Unit:
        """Unit of the run length."""

    @property
    def span(self) -> float:
        """Minimum learning time in seconds, whatever the number of readings. See `MIN_LEARNING_GAPS`."""

    def size(self, reading: Reading_contra) -> float:
        """Return the number of scores in one reading: one."""
        del reading
        return 1.0

    @property
    def looks(self) -> int:
        """Number of sizes at which a detector follows from the reference; it is complete at the last of them."""
        return 0

    def look(self, reference: Numbers) -> int:
        """Return how many of these sizes a reference has reached; one more if it is twice a complete one."""
        del reference
        return 0

    def learn(self, reference: Numbers, reading: Reading_contra, at: float = 0.0) -> Numbers:
        """Return the reference with one more reading of time `at` added; the first reference is empty."""
        del reading, at
        return reference

    def detector(self, reference: Numbers) -> Detector[Reading_contra] | None:
        """Return the detector, or None while the reference is too small or too noisy."""


class Alarm(NamedTuple):
    """The moment at which the evidence reached the threshold, so many scores after the start or the last reset."""

    at: float
    seq: int
    evidence: float
    threshold: float
    scores: float


class DetectorState(NamedTuple, Generic[_R]):
    """State of one monitored stream."""

    unit: Unit
    reference: Numbers = ()  # what the detector follows from
    detector: Detector[_R] | None = None  # the detector that follows from the reference; None while learning
    numbers: Numbers = ()
    seq: int = -1  # sequence number of the last reading; a reading with a number up to it is a replay
    at: float | None = None  # latest time of a reading, in seconds since the epoch; None before the first
    learnt: float = 0.0  # learning time so far in seconds; long gaps are cut off
    scores: float = 0.0  # number of scores since the detector started or was last reset
    alarm: Alarm | None = None
    growing: Numbers = ()  # the reference with the readings since; empty if there are none, or once it is complete
    credit: float = 0.0  # run length that a score adds, on average over about the newest 100; 0 before the first

    @property
    def evidence(self) -> float | None:
        """Current evidence; None while the reference is being learnt."""
        return None if self.detector is None else self.detector.evidence(self.numbers)

    def rising(self, credits_from: float = 300.0, share_from: float = SUSPICION) -> bool:
        """Whether evidence exceeds the run length of some scores, and a share of the threshold.

        Without a change it is about that of 100 scores: with little traffic it always exceeds a small share.
        """
        evidence = self.evidence
        if evidence is None or self.detector is None:
            return False
        usual = max(share_from * self.detector.threshold, credits_from * self.credit)
        return evidence >= min(usual, _RISING_SHARE * self.detector.threshold)


def begin(scheme: Scheme[_R]) -> DetectorState[_R]:
    """Return the state of a stream before its first reading."""
    return _restarted(DetectorState(unit=scheme.unit), scheme.detector(()))


def step(
    scheme: Scheme[_R],
    watch: DetectorState[_R],
    seq: int,
    at: float,
    reading: _R | None,
    *,
    learn: bool = True,
) -> DetectorState[_R]:
    """Return the state after one more reading, numbered in increasing order, of a time in seconds since the epoch.

    A replayed reading (`seq` not above the last) and a failed judgement (None) change nothing: the guarantee counts
    judged scores. A late reading adds no run length, one after a long gap at most `MAX_DAYS_PER_READING`. Without
    `learn` the reference stays, and a stream without a detector leaves the reading out.
    """
    if reading is None or seq <= watch.seq or (watch.detector is None and not learn):
        return watch
    newest = at if watch.at is None else max(at, watch.at)
    passed = 0.0 if watch.at is None else newest - watch.at
    updated = watch._replace(seq=seq, at=newest)
    if watch.detector is None:
        learnt = watch.learnt + min(passed, scheme.span / MIN_LEARNING_GAPS)
        updated = updated._replace(reference=scheme.learn(watch.reference, reading, at), learnt=learnt)
        return _restarted(updated, _detector_of(scheme, updated))._replace(alarm=watch.alarm)
    size = scheme.size(reading)
    credit = size if watch.unit is Unit.SCORES else min(MAX_DAYS_PER_READING, passed / _DAY)
    numbers = watch.detector.step(watch.numbers, reading, credit)
    part = min(1.0, size / _CREDIT_SCORES) if watch.credit else 1.0
    average = watch.credit + part * (credit / max(size, 1.0) - watch.credit)
    updated = updated._replace(numbers=numbers, scores=watch.scores + size, credit=average)
    evidence = watch.detector.evidence(numbers)
    if watch.alarm is None and evidence >= watch.detector.threshold:
        return updated._replace(alarm=Alarm(at, seq, evidence, watch.detector.threshold, updated.scores))
    if watch.alarm is not None or not learn or scheme.look(watch.reference) >= scheme.looks:
        return updated
    grown = updated._replace(growing=scheme.learn(watch.growing or watch.reference, reading, at))
    suspected = evidence >= SUSPICION * watch.detector.threshold
    if scheme.look(grown.growing) - scheme.look(grown.reference) <= suspected:
        return grown
    detector = scheme.detector(grown.growing)  # against the larger reference, which has reached the next size
    return grown if detector is None else _restarted(grown._replace(reference=grown.growing), detector)


def cap_time(watch: DetectorState[_R], now: float) -> DetectorState[_R]:
    """Return the state with its time capped at `now`: after a clock that ran ahead no run length would be added."""
    return watch if watch.at is None or watch.at <= now else watch._replace(at=now)


def acknowledge(watch: DetectorState[_R]) -> DetectorState[_R]:
    """End the alarm: evidence restarts at zero, against the same reference."""
    return _restarted(watch, watch.detector)


def renew(scheme: Scheme[_R], watch: DetectorState[_R]) -> DetectorState[_R]:
    """Renew the baseline after an intended change: drop alarm and reference, and learn again from the start."""
    return _restarted(watch._replace(reference=(), learnt=0.0), scheme.detector(()))


def to_dict(watch: DetectorState[_R]) -> dict[str, Any]:
    """Return the state as plain values for JSON."""
    stored = watch._asdict()
    detector = stored.pop("detector")
    design, alarm = (None if detector is None else detector.design), (watch.alarm and watch.alarm._asdict())
    return stored | {"design": design, "alarm": alarm}


def from_dict(scheme: Scheme[_R], stored: Mapping[str, Any]) -> DetectorState[_R]:
    """Return the state that `to_dict` stored.

    The reference is always restored, the evidence only if the detector has the same design. A changed tolerance or kind
    gives another detector of the same reference: its evidence starts at zero, and an active alarm stays active. A
    changed false alarm rate only moves the threshold.
    """
    reference = tuple(map(float, stored["reference"]))
    at, learnt = (None if stored["at"] is None else float(stored["at"])), _learning_seconds(scheme, stored)
    restored: DetectorState[_R] = DetectorState(scheme.unit, reference, seq=int(stored["seq"]), at=at, learnt=learnt)
    watch = _restarted(restored, _detector_of(scheme, restored))
    alarm = None if stored["alarm"] is None else Alarm(**stored["alarm"])
    if watch.detector is None or stored["unit"] != watch.unit or tuple(stored["design"] or ()) != watch.detector.design:
        return watch._replace(alarm=alarm)
    return watch._replace(
        numbers=tuple(map(float, stored["numbers"])),
        scores=float(stored["scores"]),
        alarm=alarm,
        growing=tuple(map(float, stored.get("growing", ()))),  # earlier versions kept none
        credit=float(stored.get("credit", 0.0)),  # likewise
    )


def threshold_for(days: float, detectors: int, scores_per_day: float = 1.0) -> float:
    """Return the threshold 1 / alpha at which all detectors together raise one false alarm in `days`, or fewer.

    The unit is scores if `scores_per_day` is given, and days (`Unit.DAYS`) if it is left at 1. The sum of J false alarm
    rates of at most 1 / (J days) each is at most 1 / days, however the detectors depend on each other.
    """
    return days * detectors * scores_per_day


def _restarted(watch: DetectorState[_R], detector: Detector[_R] | None) -> DetectorState[_R]:
    numbers = () if detector is None else detector.start()
    return watch._replace(detector=detector, numbers=numbers, scores=0.0, alarm=None, growing=())


@lru_cache(64)  # each reading asks for them
def look_sizes(first: int, complete: int) -> Numbers:
    """Return the sizes at which a detector follows from a reference, and twice the last: doubled until complete."""
    sizes: list[float] = []
    while (size := max(first, 1) * 2.0 ** len(sizes)) < complete:
        sizes.append(size)
    return (*sizes, max(complete, 1) * 1.0, max(complete, 1) * 2.0)


def _detector_of(scheme: Scheme[_R], watch: DetectorState[_R]) -> Detector[_R] | None:
    """Return the detector, once the reference is large enough and has been learnt for long enough."""
    return None if watch.learnt < scheme.span else scheme.detector(watch.reference)


def _learning_seconds(scheme: Scheme[_R], stored: Mapping[str, Any]) -> float:
    """Return the stored learning time; earlier versions stored the start of learning, and the first version neither."""
    if "learnt" in stored:
        return float(stored["learnt"])
    since, at = stored.get("since"), stored["at"]
    if since is None or at is None:
        return scheme.span if stored["reference"] else 0.0
    return float(at) - float(since)
