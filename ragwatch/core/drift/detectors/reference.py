"""Monitoring against a learnt reference: a lower bound of the mean of the first scores.

Empirical Bernstein bound (Maurer and Pontil 2009, theorem 4): with probability 1 - d the mean of n independent values
with range 1 is above mean - sqrt(2 s^2 ln(2/d) / n) - 7 ln(2/d) / (3 (n - 1)). Sampled scores are weighted, so the
bound is applied to z = (w / w_max) (x - m), whose mean is 0 at the mean m of the traffic: the result is the m at which
the bound of z is 0. With equal weights it is the formula above. With the plain mean as baseline instead of the bound,
the run length would fall short of the guarantee in half of all deployments.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ragwatch.core.drift.detect import Detector, Direction, Numbers, Score, Unit
from ragwatch.core.drift.detectors.betting import MIN_MARGIN
from ragwatch.core.estimate import Addends

_HALVINGS = 60
Build = Callable[[float], Detector[Score]]


def lower_bound(addends: Addends, max_weight: float, risk: float = 0.05) -> float | None:
    """Return a mean that the true mean exceeds with probability 1 - risk; None if no such bound is above 0.

    >>> addends = Addends.of([(0.5, 1.0), (1.0, 1.0)] * 1000)           # s^2 = 1/16, ln 40 = 3.689
    >>> round(lower_bound(addends, max_weight=1.0), 4)               # .75 - sqrt(.125 * 3.689/2000) - 7 * 3.689/5997
    0.7305
    """
    if addends.n < 2:
        return None
    low, high = 0.0, addends.wx / addends.w
    if _margin(addends, max_weight, risk, low) <= 0.0:
        return None
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        if _margin(addends, max_weight, risk, middle) > 0.0:
            low = middle
        else:
            high = middle
    return low


def _margin(addends: Addends, max_weight: float, risk: float, guess: float) -> float:
    """Return the lower bound of the mean of z at a guessed mean.

    It is a quadratic under a root, and has exactly one zero below the mean.
    """
    n, log = addends.n, math.log(2.0 / risk)
    mean = (addends.wx - guess * addends.w) / max_weight / n
    square = (addends.w2x2 - 2.0 * guess * addends.w2x + guess * guess * addends.w2) / max_weight**2 / n
    variance = max(0.0, square - mean * mean) * n / (n - 1)
    return mean - math.sqrt(2.0 * variance * log / n) - 7.0 * log / (3.0 * (n - 1))


@dataclass(frozen=True, slots=True)
class ReferenceScheme:
    """Scheme that learns the mean of the first scores, and then detects one that is worse than its bound.

    Attributes:
        build: Builds the detector for a baseline.
        direction: Direction in which quality gets worse.
        scores: Number of scores to learn from. Below 2,000 the bound costs more delay than the reference saves.
        tolerance: How much worse than the bound the mean may be without an alarm; it absorbs the daily cycle.
        max_weight: Largest weight; a larger one counts as this one.
        unit: Unit of the run length.
        risk: Probability that the bound is above the true mean, so that the run length is not guaranteed.
        span: Minimum learning time in seconds. With a reference of only the best hours, every night counts as a fall.
    """

    build: Build
    direction: Direction = Direction.FALL
    scores: int = 2000
    tolerance: float = 0.02
    max_weight: float = 1.0
    unit: Unit = Unit.SCORES
    risk: float = 0.05
    span: float = 0.0

    def size(self, reading: Score) -> float:
        """Return 1: a reading is one score."""
        del reading
        return 1.0

    def learn(self, reference: Numbers, reading: Score) -> Numbers:
        """Return the sums of all scores so far (reversed for a rise), then the largest weight that was allowed."""
        value = reading.value if self.direction is Direction.FALL else 1.0 - reading.value
        addends = _addends(reference) + Addends.one(value, 1.0 / min(reading.weight, self.max_weight))
        sums = (addends.w, addends.wx, addends.w2, addends.w2x, addends.w2x2)
        return (float(addends.n), *sums, self._max_weight(reference))

    def baseline(self, reference: Numbers) -> float | None:
        """Return the mean to compare with; None while scores are too few, or vary too much for a bound above 0."""
        addends = _addends(reference)
        bound = lower_bound(addends, self._max_weight(reference), self.risk) if addends.n >= self.scores else None
        if bound is None or bound <= self.tolerance + MIN_MARGIN:
            return None
        worst = bound - self.tolerance
        return worst if self.direction is Direction.FALL else 1.0 - worst

    def detector(self, reference: Numbers) -> Detector[Score] | None:
        """Return the detector for the baseline; None while there is no baseline."""
        baseline = self.baseline(reference)
        return None if baseline is None else self.build(baseline)

    def _max_weight(self, reference: Numbers) -> float:
        # Inclusion probabilities may have been lower while the reference was learnt.
        return max(self.max_weight, reference[-1]) if reference else self.max_weight


def _addends(reference: Numbers) -> Addends:
    return Addends(int(reference[0]), *reference[1:-1]) if reference else Addends()
