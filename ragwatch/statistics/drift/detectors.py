"""Drift detectors for the mean of scores in [0, 1], by kind.

`Betting` is the default: it alone guarantees a false alarm rate. It is a Shiryaev-Roberts e-detector, and needs no
distribution and no calibration.

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

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import fsum
from types import MappingProxyType
from typing import NamedTuple

from ragwatch.statistics.drift.detect import Detector, Direction, Numbers, Scheme, Score, Unit

FRACTIONS = (0.025, 0.05, 0.1, 0.2, 0.4, 0.8)
MIN_MARGIN = 0.01
"""Smallest 1 - m0: a baseline closer to 1 is lowered, which keeps the guarantee and keeps bets finite."""
MAX_EVIDENCE = 1e300
"""Evidence is capped here, before floats overflow; less evidence keeps the guarantee."""


def _after(bets: Sequence[float], gain: float, numbers: Numbers, credit: float) -> Numbers:
    return tuple(
        min((1.0 + bet * gain) * (credit + number), MAX_EVIDENCE) for bet, number in zip(bets, numbers, strict=True)
    )


@dataclass(frozen=True, slots=True)
class Betting:
    """E-detector that bets against a fixed baseline."""

    baseline: float  # the worst mean that is still good, in [0, 1]
    threshold: float
    direction: Direction = Direction.FALL
    max_weight: float = 1.0  # largest weight, 1 / the lowest inclusion probability configured
    fractions: Sequence[float] = FRACTIONS  # sizes of bet as fractions of the largest allowed one; each in (0, 1)
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
        return _after(self._bets, gain, numbers, credit)

    def evidence(self, numbers: Numbers) -> float:
        """Return the mean over all sizes of bet; without a change its expectation is at most the run length."""
        return fsum(numbers) / len(numbers)


@dataclass(frozen=True, slots=True)
class Cusum:
    """One-sided CUSUM (Page 1954): the sum of shortfalls below the baseline minus a slack k, never below zero.

    S <- max(0, S + (w / w_max) (m0 - x - k)). It detects quickly if its threshold fits the distribution of the scores,
    and guarantees nothing otherwise: calibrated to one false alarm in 10,000 Beta scores of mean .9, it raises one in
    50 claim ratios of the same mean.
    """

    baseline: float
    threshold: float = 1.0
    direction: Direction = Direction.FALL
    max_weight: float = 1.0
    slack: float = 0.05

    @property
    def design(self) -> Numbers:
        """Baseline, direction, largest weight and slack."""
        return (self.baseline, float(self.direction is Direction.RISE), self.max_weight, self.slack)

    def start(self) -> Numbers:
        """Return a sum of zero."""
        return (0.0,)

    def step(self, numbers: Numbers, reading: Score, credit: float = 1.0) -> Numbers:
        """Return the sum after one more score. A CUSUM has no run length: `credit` is unused."""
        del credit
        worse = self.baseline - reading.value if self.direction is Direction.FALL else reading.value - self.baseline
        share = min(1.0, reading.weight / self.max_weight)
        return (max(0.0, numbers[0] + share * (worse - self.slack)),)

    def evidence(self, numbers: Numbers) -> float:
        """Return the sum."""
        return numbers[0]


@dataclass(frozen=True, slots=True)
class PageHinkley:
    """One-sided Page-Hinkley test (Gama et al. 2014, section 3.2): a CUSUM about the running mean of the scores.

    It needs no baseline, so it misses a slow decay: the mean that it compares with decays as well. Its threshold
    guarantees no false alarm rate: on scores of sd .1, .15 and .3 the same threshold gives run lengths that differ by
    factors of ten.
    """

    threshold: float = 50.0  # distance of the sum from its minimum that raises an alarm
    direction: Direction = Direction.FALL
    max_weight: float = 1.0  # largest weight; a score of weight w counts w / max_weight, in the mean as in the sum
    slack: float = 0.005  # difference of a score from the mean that adds nothing
    fading: float = 1.0 - 0.0001  # factor by which the sum decays with each score
    min_scores: int = 30  # number of scores below which the evidence is 0

    @property
    def design(self) -> Numbers:
        """Direction, largest weight, slack, fading and minimum number of scores."""
        return (
            float(self.direction is Direction.RISE),
            self.max_weight,
            self.slack,
            self.fading,
            float(self.min_scores),
        )

    def start(self) -> Numbers:
        """Return count, total share, mean, sum and minimum of the sum, all zero."""
        return (0.0, 0.0, 0.0, 0.0, 0.0)

    def step(self, numbers: Numbers, reading: Score, credit: float = 1.0) -> Numbers:
        """Return count, total share, mean, sum and minimum of the sum after one more score; `credit` is unused."""
        del credit
        count, total, mean, drop, minimum = numbers
        share = min(1.0, reading.weight / self.max_weight)
        total += share
        mean += share / total * (reading.value - mean)
        worse = mean - reading.value if self.direction is Direction.FALL else reading.value - mean
        drop = self.fading * drop + share * (worse - self.slack)
        return (count + 1.0, total, mean, drop, min(minimum, drop) if count else drop)

    def evidence(self, numbers: Numbers) -> float:
        """Return the sum minus its minimum; 0 below `min_scores`."""
        count, _, _, drop, minimum = numbers
        return drop - minimum if count >= self.min_scores else 0.0


Kind = Callable[[float, float, Direction, float], Detector[Score]]
KINDS: MappingProxyType[str, Kind] = MappingProxyType(
    {"betting": Betting, "cusum": Cusum, "page_hinkley": lambda _, *settings: PageHinkley(*settings)}
)
"""Builders by kind, called with baseline, threshold, direction and largest weight.

A Page-Hinkley test compares with its own running mean instead of a baseline.
"""


class ScorePair(NamedTuple):
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
        return _after(self.fractions, gain, numbers, credit)

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


class ScoreQueue(NamedTuple):
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
    return queue._replace(scores=rest), ScorePair(first, score) if control else ScorePair(score, first)
