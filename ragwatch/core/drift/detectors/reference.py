"""Reference: a mean that is surely no better than the past was, learnt from scores while all was well.

Maurer and Pontil (2009, theorem 4), empirical Bernstein: with probability 1 - d the mean of n independent values with
range 1 is above mean - sqrt(2 s^2 ln(2/d) / n) - 7 ln(2/d) / (3 (n - 1)). Scores of the drawn carry weights, so it is
applied to z = (w / w_max) (x - m), whose mean is 0 at the traffic's mean m: the bound is the m at which it becomes 0.
With equal weights that is the formula itself. Taking the plain mean instead of the bound breaks the promised run
length in half of all deployments.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ragwatch.core.drift.detect import Detector, Direction, Numbers, Score, Unit
from ragwatch.core.drift.detectors.betting import LEAST_ROOM
from ragwatch.core.estimate import Addends

_HALVINGS = 60
Build = Callable[[float], Detector[Score]]


def lower_bound(addends: Addends, heaviest: float, risk: float = 0.05) -> float | None:
    """A mean that the true one exceeds with probability 1 - risk; None where nothing above 0 can be said.

    >>> some = Addends.of([(0.5, 1.0), (1.0, 1.0)] * 1000)           # s^2 = 1/16, ln 40 = 3.689
    >>> round(lower_bound(some, heaviest=1.0), 4)                    # .75 - sqrt(.125 * 3.689/2000) - 7 * 3.689/5997
    0.7305
    """
    if addends.n < 2:
        return None
    low, high = 0.0, addends.wx / addends.w
    if _margin(addends, heaviest, risk, low) <= 0.0:
        return None
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        if _margin(addends, heaviest, risk, middle) > 0.0:
            low = middle
        else:
            high = middle
    return low


def _margin(addends: Addends, heaviest: float, risk: float, guess: float) -> float:
    """Lower bound of the mean of z at a guessed mean: a quadratic under a root, so it vanishes once below the mean."""
    n, log = addends.n, math.log(2.0 / risk)
    mean = (addends.wx - guess * addends.w) / heaviest / n
    square = (addends.w2x2 - 2.0 * guess * addends.w2x + guess * guess * addends.w2) / heaviest**2 / n
    variance = max(0.0, square - mean * mean) * n / (n - 1)
    return mean - math.sqrt(2.0 * variance * log / n) - 7.0 * log / (3.0 * (n - 1))


@dataclass(frozen=True, slots=True)
class AgainstReference:
    """A scheme that learns the mean of the first scores, and then watches for one worse than its bound by a tolerance.

    Attributes:
        build: The detector against a baseline.
        direction: Which way is worse.
        size: Scores to learn from. Below 2,000 the bound costs more delay than the reference saves.
        tolerance: What the mean may be worse without anybody being called; it absorbs the swing of a day.
        heaviest: Largest weight. Heavier scores count as this heavy.
        unit: What run length is counted in.
        risk: Probability that the bound is above the true mean, so that the promised run length does not hold.
        span: Seconds to learn for, at least. A reference of the best hours makes every night a fall.
    """

    build: Build
    direction: Direction = Direction.FALL
    scores: int = 2000
    tolerance: float = 0.02
    heaviest: float = 1.0
    unit: Unit = Unit.SCORES
    risk: float = 0.05
    span: float = 0.0

    def size(self, reading: Score) -> float:
        """One."""
        del reading
        return 1.0

    def learn(self, reference: Numbers, reading: Score) -> Numbers:
        """The addends of all scores so far, seen from the good end, and the heaviest weight that was allowed."""
        value = reading.value if self.direction is Direction.FALL else 1.0 - reading.value
        found = _addends(reference) + Addends.one(value, 1.0 / min(reading.weight, self.heaviest))
        return (float(found.n), found.w, found.wx, found.w2, found.w2x, found.w2x2, self._heaviest(reference))

    def baseline(self, reference: Numbers) -> float | None:
        """The mean to watch against; None while scores are too few, or too scattered for any bound above 0."""
        found = _addends(reference)
        bound = lower_bound(found, self._heaviest(reference), self.risk) if found.n >= self.scores else None
        if bound is None or bound <= self.tolerance + LEAST_ROOM:
            return None
        worst = bound - self.tolerance
        return worst if self.direction is Direction.FALL else 1.0 - worst

    def detector(self, reference: Numbers) -> Detector[Score] | None:
        """The detector against the baseline."""
        baseline = self.baseline(reference)
        return None if baseline is None else self.build(baseline)

    def _heaviest(self, reference: Numbers) -> float:
        # Probabilities may have been lower while it was learnt.
        return max(self.heaviest, reference[-1]) if reference else self.heaviest


def _addends(reference: Numbers) -> Addends:
    return Addends(int(reference[0]), *reference[1:-1]) if reference else Addends()
