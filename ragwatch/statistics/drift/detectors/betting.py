"""Shiryaev-Roberts betting e-detector for the mean of scores in [0, 1]: no distribution, no calibration.

Source: Shin, Ramdas and Rinaldo, "E-detectors" (arXiv 2203.03532). For a fall below the baseline m0, each score x is a
bet L = 1 + b (w / w_max) (m0 - x) with 0 <= b < 1 / (1 - m0). L is positive and, while E[w (x - m0) | past] >= 0, has a
mean of at most 1. With M <- L (c + M), from M = 0, M minus the run length (the sum of credits c) is a supermartingale,
so the mean run length until M >= 1 / alpha is at least 1 / alpha, for any dependence and every distribution. M is the
mean over several sizes of bet b = f / (1 - m0). The run length counts scores if c = 1, and days if c = days passed.

Sampled scores, weighted by 1 / inclusion probability, have the mean of the traffic, which the null hypothesis is about.
A weight above `max_weight` counts as `max_weight`. A rise is a fall of 1 - x.

Against a concurrent control (previous release, frozen canaries) nothing is learnt. A change that affects both, such as
another time of day or other questions, raises no alarm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from math import fsum
from typing import TypedDict

from ragwatch.statistics.drift.detect import Detector, Direction, Numbers, Scheme, Score, Unit

FRACTIONS = (0.025, 0.05, 0.1, 0.2, 0.4, 0.8)
MIN_MARGIN = 0.01
"""Smallest 1 - m0: a baseline closer to 1 is lowered, which keeps the guarantee and keeps bets finite."""
MAX_EVIDENCE = 1e300
"""Evidence is capped here, before floats overflow; less evidence keeps the guarantee."""


@dataclass(frozen=True, slots=True)
class Betting:
    """E-detector that bets against a fixed baseline.

    Attributes:
        baseline: The worst mean that is still good, in [0, 1].
        max_weight: Largest weight, 1 / the lowest inclusion probability configured.
        fractions: Sizes of bet as fractions of the largest allowed one; each in (0, 1).
    """

    baseline: float
    threshold: float
    direction: Direction = Direction.FALL
    max_weight: float = 1.0
    fractions: Sequence[float] = FRACTIONS
    _floor: float = field(init=False, repr=False)
    _bets: Numbers = field(init=False, repr=False)

    def __post_init__(self) -> None:
        baseline = self.baseline if self.direction is Direction.FALL else 1.0 - self.baseline
        floor = min(baseline, 1.0 - MIN_MARGIN)
        object.__setattr__(self, "_floor", floor)
        object.__setattr__(self, "_bets", tuple(fraction / (1.0 - floor) for fraction in self.fractions))

    @property
    def design(self) -> Numbers:
        """Baseline, direction, largest weight and bets. Evidence does not depend on the threshold."""
        return (self.baseline, float(self.direction is Direction.RISE), self.max_weight, *self.fractions)

    def start(self) -> Numbers:
        """Return zero evidence for each size of bet."""
        return (0.0,) * len(self._bets)

    def step(self, numbers: Numbers, reading: Score, credit: float = 1.0) -> Numbers:
        """Return the evidence for each size of bet after one more score."""
        value = reading.value if self.direction is Direction.FALL else 1.0 - reading.value
        gain = (self._floor - value) * min(1.0, reading.weight / self.max_weight)
        return tuple(
            min((1.0 + bet * gain) * (credit + number), MAX_EVIDENCE)
            for bet, number in zip(self._bets, numbers, strict=True)
        )

    def evidence(self, numbers: Numbers) -> float:
        """Return the mean over all sizes of bet; without a change its expectation is at most the run length."""
        return fsum(numbers) / len(numbers)


@dataclass(frozen=True, slots=True)
class ScorePair:
    """A score and a score of the concurrent control, each with its weight 1 / inclusion probability."""

    score: Score
    control: Score


@dataclass(frozen=True, slots=True)
class TwoSample:
    """E-detector that bets against a concurrent control (previous release, frozen canaries).

    It needs no baseline, and detects two to three times more slowly. L = 1 + b (w v / max_weight^2) (control - score)
    with 0 <= b < 1. The two weights are multiplied, because under equal means the difference of two weighted scores has
    mean 0 only if both carry both weights.
    """

    threshold: float
    direction: Direction = Direction.FALL
    max_weight: float = 1.0
    fractions: Sequence[float] = FRACTIONS[1:]

    @property
    def design(self) -> Numbers:
        """Direction, largest weight and bets."""
        return (float(self.direction is Direction.RISE), self.max_weight, *self.fractions)

    def start(self) -> Numbers:
        """Return zero evidence for each size of bet."""
        return (0.0,) * len(self.fractions)

    def step(self, numbers: Numbers, reading: ScorePair, credit: float = 1.0) -> Numbers:
        """Return the evidence for each size of bet after one more pair."""
        worse = reading.control.value - reading.score.value
        share = min(1.0, reading.score.weight / self.max_weight) * min(1.0, reading.control.weight / self.max_weight)
        gain = share * (worse if self.direction is Direction.FALL else -worse)
        return tuple(
            min((1.0 + bet * gain) * (credit + number), MAX_EVIDENCE)
            for bet, number in zip(self.fractions, numbers, strict=True)
        )

    def evidence(self, numbers: Numbers) -> float:
        """Return the mean over all sizes of bet."""
        return fsum(numbers) / len(numbers)


_MAX_WAITING = 1000


@dataclass(frozen=True, slots=True)
class ControlScheme(Scheme[ScorePair]):
    """Scheme that compares with a concurrent control and needs no reference."""

    test: TwoSample
    unit: Unit = Unit.SCORES
    span: float = 0.0

    def detector(self, reference: Numbers) -> Detector[ScorePair]:
        """Return the detector, which is available from the start."""
        del reference
        return self.test


@dataclass(frozen=True, slots=True)
class ScoreQueue:
    """Scores of one side that wait for a score of the other side."""

    scores: tuple[Score, ...] = ()
    control: bool = False


def pair(queue: ScoreQueue, score: Score, *, control: bool) -> tuple[ScoreQueue, ScorePair | None]:
    """Add a score of either side; return the queue after it, and the pair it forms with the oldest of the other side.

    Pairs are formed in the order of arrival, independently of the scores. If one side is ahead by more than 1000
    scores, its oldest ones are dropped, which does not depend on their values either.
    """
    if not queue.scores or queue.control == control:
        return ScoreQueue((*queue.scores, score)[-_MAX_WAITING:], control), None
    first, rest = queue.scores[0], queue.scores[1:]
    return replace(queue, scores=rest), ScorePair(first, score) if control else ScorePair(score, first)


class QueueRecord(TypedDict):
    """A queue as JSON values."""

    control: bool
    scores: list[dict[str, float]]


def queue_to_dict(queue: ScoreQueue) -> QueueRecord:
    """Return the queue as plain values for JSON."""
    return {"control": queue.control, "scores": [asdict(score) for score in queue.scores]}


def queue_from_dict(stored: QueueRecord) -> ScoreQueue:
    """Return the queue that `queue_to_dict` stored."""
    return ScoreQueue(tuple(Score(**score) for score in stored["scores"]), bool(stored["control"]))
