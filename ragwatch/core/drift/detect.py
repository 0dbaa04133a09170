"""Detect: values in time to an Alarm, with a stated budget of false ones. State is a value; every change is a function.

A `Scheme` says what a reading is, how a reference is learnt from readings and which `Detector` it gives. A `Watch` is
everything to remember between two readings, so that a daemon killed between them raises the same alarm at the same
reading. An alarm latches: it stands until a person acknowledges it or renews the baseline.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar

Numbers = tuple[float, ...]
"""What a detector remembers: a few floats."""

Reading_contra = TypeVar("Reading_contra", contravariant=True)
_R = TypeVar("_R")
_DAY = 86400.0
MOST_DAYS = 1.0
"""Run length that one reading adds at most, in days: silence is no evidence, and less run length keeps the promise."""


GAPS = 8.0
"""Between two readings at most this part of the time to learn for has passed: in a silence nothing was learnt, and one
reading with a time of long ago, or of a clock that was wrong, is no day of readings. Who is asked seldom learns longer.
"""


class Direction(StrEnum):
    """Which way a mean moves when things get worse."""

    FALL = "fall"
    RISE = "rise"


class Unit(StrEnum):
    """What the average run length is counted in: scores, or days that passed between them."""

    SCORES = "scores"
    DAYS = "days"


@dataclass(frozen=True, slots=True)
class Score:
    """A score in [0, 1], and its weight 1 / inclusion probability."""

    value: float
    weight: float = 1.0


class Detector(Protocol[Reading_contra]):
    """Readings in, evidence out. Holds what was configured; what it remembers is handed in and out."""

    @property
    def threshold(self) -> float:
        """Evidence from here on is an alarm."""
        ...

    @property
    def design(self) -> Numbers:
        """What the numbers mean: numbers of one design say nothing to another."""
        ...

    def start(self) -> Numbers:
        """What it remembers before the first reading."""
        ...

    def step(self, numbers: Numbers, reading: Reading_contra, credit: float) -> Numbers:
        """What it remembers after one more reading; `credit` is the run length this reading adds."""
        ...

    def evidence(self, numbers: Numbers) -> float:
        """How much speaks for a change."""
        ...


class Scheme(Protocol[Reading_contra]):
    """How a watch begins: what is learnt from the first readings, and the detector that follows from it."""

    @property
    def unit(self) -> Unit:
        """What run length is counted in."""
        ...

    @property
    def span(self) -> float:
        """Seconds to learn for, at least, however many readings there were. See `GAPS`."""
        ...

    def size(self, reading: Reading_contra) -> float:
        """Scores in one reading."""
        ...

    def learn(self, reference: Numbers, reading: Reading_contra) -> Numbers:
        """The reference with one more reading; it begins empty."""
        ...

    def detector(self, reference: Numbers) -> Detector[Reading_contra] | None:
        """The detector, or None while the reference is too small or too noisy for one."""
        ...


@dataclass(frozen=True, slots=True)
class Alarm:
    """The moment at which the evidence reached the threshold.

    Attributes:
        at: Time of the reading that did it, in seconds since the epoch.
        seq: Its number in the stream.
        evidence: The evidence then.
        threshold: What it reached.
        scores: Scores since watching began or began anew.
    """

    at: float
    seq: int
    evidence: float
    threshold: float
    scores: float


@dataclass(frozen=True, slots=True)
class Watch(Generic[_R]):
    """Everything to remember about one watched stream.

    Attributes:
        unit: What run length is counted in.
        reference: What was learnt of the time when all was well.
        detector: What follows from it; None while learning.
        numbers: What the detector remembers.
        seq: Number of the last reading taken; what is not above it is a replay.
        at: Latest time of a reading; None before the first.
        learnt: Seconds that were learnt for, without long silences.
        scores: Scores the detector has seen since it began (anew).
        alarm: The alarm that stands, if one does.
    """

    unit: Unit
    reference: Numbers = ()
    detector: Detector[_R] | None = None
    numbers: Numbers = ()
    seq: int = -1
    at: float | None = None
    learnt: float = 0.0
    scores: float = 0.0
    alarm: Alarm | None = None

    @property
    def evidence(self) -> float | None:
        """Evidence now; None while the reference is being learnt."""
        return None if self.detector is None else self.detector.evidence(self.numbers)


def begin(scheme: Scheme[_R]) -> Watch[_R]:
    """A watch that has seen nothing."""
    return _begun(Watch(unit=scheme.unit), scheme.detector(()))


def step(scheme: Scheme[_R], watch: Watch[_R], seq: int, at: float, reading: _R | None) -> Watch[_R]:
    """The watch after one more reading.

    A reading that was taken already (`seq` not above the last) and one without a score (None: the judgement failed)
    leave everything as it is: a guarantee counts judged scores, and a failure is not a low score.

    Args:
        scheme: How this stream is watched.
        watch: What is remembered.
        seq: Number of the reading, rising along the stream.
        at: Its time, in seconds since the epoch. Late ones add no run length, and one after a silence that of a day.
        reading: What was read, or None.
    """
    if reading is None or seq <= watch.seq:
        return watch
    moved = replace(watch, seq=seq, at=at if watch.at is None else max(at, watch.at))
    if watch.detector is None:
        passed = 0.0 if watch.at is None or moved.at is None else moved.at - watch.at
        learnt = watch.learnt + min(passed, scheme.span / GAPS)
        moved = replace(moved, reference=scheme.learn(watch.reference, reading), learnt=learnt)
        return replace(_begun(moved, _learnt(scheme, moved)), alarm=watch.alarm)
    size = scheme.size(reading)
    credit = size if watch.unit is Unit.SCORES else _days(watch.at, moved.at)
    numbers = watch.detector.step(watch.numbers, reading, credit)
    moved = replace(moved, numbers=numbers, scores=watch.scores + size)
    evidence = watch.detector.evidence(numbers)
    if watch.alarm is not None or evidence < watch.detector.threshold:
        return moved
    return replace(moved, alarm=Alarm(at, seq, evidence, watch.detector.threshold, moved.scores))


def no_later(watch: Watch[_R], now: float) -> Watch[_R]:
    """The watch without times behind `now`: a clock that was ahead would leave it without run length until then."""
    if watch.at is None or watch.at <= now:
        return watch
    return replace(watch, at=now)


def acknowledge(watch: Watch[_R]) -> Watch[_R]:
    """The alarm is seen: it is taken down, and evidence is gathered from nothing, against the same reference."""
    return _begun(watch, watch.detector)


def renew(scheme: Scheme[_R], watch: Watch[_R]) -> Watch[_R]:
    """Things are different now, and meant to be: alarm and reference are dropped, and learning begins anew."""
    return _begun(replace(watch, reference=(), learnt=0.0), scheme.detector(()))


def to_dict(watch: Watch[Any]) -> dict[str, Any]:
    """The watch as plain values (numbers, lists, text, None), to be kept as JSON."""
    return {
        "reference": list(watch.reference),
        "unit": watch.unit,
        "design": None if watch.detector is None else list(watch.detector.design),
        "numbers": list(watch.numbers),
        "seq": watch.seq,
        "at": watch.at,
        "learnt": watch.learnt,
        "scores": watch.scores,
        "alarm": None if watch.alarm is None else asdict(watch.alarm),
    }


def from_dict(scheme: Scheme[_R], kept: Mapping[str, Any]) -> Watch[_R]:
    """The watch that `to_dict` gave. What was learnt is kept; evidence only where the detector is the same as then.

    A changed tolerance or kind makes another detector of the same reference: it starts from nothing, and an alarm that
    stood still stands. A changed budget only moves the threshold.

    Raises:
        KeyError: Something is missing.
        TypeError: Something is no number where one belongs.
        ValueError: The same.
    """
    reference = tuple(map(float, kept["reference"]))
    at = None if kept["at"] is None else float(kept["at"])
    so_far: Watch[_R] = Watch(scheme.unit, reference, seq=int(kept["seq"]), at=at, learnt=_learnt_for(scheme, kept))
    watch = _begun(so_far, _learnt(scheme, so_far))
    alarm = None if kept["alarm"] is None else Alarm(**kept["alarm"])
    if watch.detector is None or kept["unit"] != watch.unit or kept["design"] != list(watch.detector.design):
        return replace(watch, alarm=alarm)
    return replace(watch, numbers=tuple(map(float, kept["numbers"])), scores=float(kept["scores"]), alarm=alarm)


def threshold_for(days: float, detectors: int, scores_per_day: float = 1.0) -> float:
    """1 / alpha, so that all detectors together page falsely once in `days`, or less often.

    In scores where a rate is given; in days, for `Unit.DAYS`, where it is left at 1. The sum of J false-alarm rates of
    at most 1 / (J days) each is at most 1 / days, whatever the detectors have in common.

    >>> threshold_for(30, 1, 1440), threshold_for(30, 10, 1440), threshold_for(30, 3)
    (43200, 432000, 90.0)
    """
    return days * detectors * scores_per_day


def _begun(watch: Watch[_R], detector: Detector[_R] | None) -> Watch[_R]:
    numbers = () if detector is None else detector.start()
    return replace(watch, detector=detector, numbers=numbers, scores=0.0, alarm=None)


def _learnt(scheme: Scheme[_R], watch: Watch[_R]) -> Detector[_R] | None:
    """The detector, once the reference is large enough and spans enough time."""
    return None if watch.learnt < scheme.span else scheme.detector(watch.reference)


def _learnt_for(scheme: Scheme[_R], kept: Mapping[str, Any]) -> float:
    """Seconds learnt for; earlier versions kept when learning had begun, and the first one did not ask."""
    if "learnt" in kept:
        return float(kept["learnt"])
    if kept.get("since") is None or kept["at"] is None:
        return scheme.span if kept["reference"] else 0.0
    return float(kept["at"]) - float(kept["since"])


def _days(before: float | None, now: float | None) -> float:
    return 0.0 if before is None or now is None else min(MOST_DAYS, (now - before) / _DAY)
