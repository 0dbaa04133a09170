"""CUSUM (Page 1954): the cumulative sum of shortfalls below the baseline minus a slack, never below zero.

S <- max(0, S + (w / w_max) (m0 - x - k)). It detects quickly if its threshold fits the distribution of the scores, and
guarantees nothing otherwise: calibrated to one false alarm in 10,000 Beta scores of mean .9, it raises one in 50 claim
ratios of the same mean. `betting` has a guarantee.
"""

from __future__ import annotations

from dataclasses import dataclass

from ragwatch.core.drift.detect import Direction, Numbers, Score


@dataclass(frozen=True, slots=True)
class Cusum:
    """One-sided CUSUM.

    Attributes:
        baseline: The worst mean that is still good.
        threshold: The sum that raises an alarm.
        direction: Direction in which quality gets worse.
        max_weight: Largest weight; a score of weight w counts w / max_weight.
        slack: Shortfall of a score that adds nothing.
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
        """Return the sum after one more score. A CUSUM has no run length: `credit` is unused.

        >>> detector = Cusum(baseline=0.75, slack=0.125)
        >>> detector.step((0.5,), Score(0.25)), detector.step((0.5,), Score(1.0)), detector.step((0.0,), Score(1.0))
        ((0.875,), (0.125,), (0.0,))
        """
        del credit
        worse = self.baseline - reading.value if self.direction is Direction.FALL else reading.value - self.baseline
        share = min(1.0, reading.weight / self.max_weight)
        return (max(0.0, numbers[0] + share * (worse - self.slack)),)

    def evidence(self, numbers: Numbers) -> float:
        """Return the sum."""
        return numbers[0]
