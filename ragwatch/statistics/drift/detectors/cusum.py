"""CUSUM (Page 1954): the cumulative sum of shortfalls below the baseline minus a slack, never below zero.

S <- max(0, S + (w / w_max) (m0 - x - k)). It detects quickly if its threshold fits the distribution of the scores, and
guarantees nothing otherwise: calibrated to one false alarm in 10,000 Beta scores of mean .9, it raises one in 50 claim
ratios of the same mean. `betting` has a guarantee.

The Page-Hinkley test (Gama et al. 2014, section 3.2) is a CUSUM about the running mean of the scores. It needs no
baseline, so it misses a slow decay: the mean that it compares with decays as well. Its threshold guarantees no false
alarm rate: on scores of sd .1, .15 and .3 the same threshold gives run lengths that differ by factors of ten.
"""

from __future__ import annotations

from dataclasses import dataclass

from ragwatch.statistics.drift.detect import Direction, Numbers, Score


@dataclass(frozen=True, slots=True)
class PageHinkley:
    """One-sided Page-Hinkley test.

    Attributes:
        threshold: Distance of the sum from its minimum that raises an alarm.
        max_weight: Largest weight; a score of weight w counts w / max_weight, in the mean as in the sum.
        slack: Difference of a score from the mean that adds nothing.
        fading: Factor by which the sum decays with each score.
        min_scores: Number of scores below which the evidence is 0.
    """

    threshold: float = 50.0
    direction: Direction = Direction.FALL
    max_weight: float = 1.0
    slack: float = 0.005
    fading: float = 1.0 - 0.0001
    min_scores: int = 30

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


@dataclass(frozen=True, slots=True)
class Cusum:
    """One-sided CUSUM. A score of weight w counts w / max_weight; a shortfall up to the slack adds nothing."""

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
