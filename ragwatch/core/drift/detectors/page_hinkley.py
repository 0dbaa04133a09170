"""Page-Hinkley: a CUSUM about the running mean of the scores themselves (Page 1954; Gama et al. 2014, section 3.2).

It needs no baseline, and so forgets a slow decay: the mean it compares with decays too. Its threshold guarantees
nothing; on scores of sd .1, .15 and .3 the same one gives run lengths that differ by factors of ten.
"""

from __future__ import annotations

from dataclasses import dataclass

from ragwatch.core.drift.detect import Direction, Numbers, Score


@dataclass(frozen=True, slots=True)
class PageHinkley:
    """One-sided Page-Hinkley test.

    Attributes:
        threshold: How far the sum must come from its extreme.
        direction: Which way is worse.
        heaviest: Largest weight; a score of weight w counts w / heaviest, in the mean as in the sum.
        slack: What each score may differ from the mean without adding anything.
        fading: What the sum keeps of itself with each score.
        fewest: Scores before which it says nothing.
    """

    threshold: float = 50.0
    direction: Direction = Direction.FALL
    heaviest: float = 1.0
    slack: float = 0.005
    fading: float = 1.0 - 0.0001
    fewest: int = 30

    @property
    def design(self) -> Numbers:
        """Direction, heaviest weight, slack, fading and fewest."""
        return (float(self.direction is Direction.RISE), self.heaviest, self.slack, self.fading, float(self.fewest))

    def start(self) -> Numbers:
        """No score: count, total share, mean, sum, least sum."""
        return (0.0, 0.0, 0.0, 0.0, 0.0)

    def step(self, numbers: Numbers, reading: Score, credit: float = 1.0) -> Numbers:
        """Count, total share, mean, sum and least sum after one more score; `credit` is unused.

        >>> PageHinkley(slack=0.0, fading=1.0).step((1.0, 1.0, 1.0, 0.0, 0.0), Score(0.5))    # mean .75, .25 below it
        (2.0, 2.0, 0.75, 0.25, 0.0)
        """
        del credit
        count, total, mean, drop, least = numbers
        share = min(1.0, reading.weight / self.heaviest)
        total += share
        mean += share / total * (reading.value - mean)
        worse = mean - reading.value if self.direction is Direction.FALL else reading.value - mean
        drop = self.fading * drop + share * (worse - self.slack)
        return (count + 1.0, total, mean, drop, min(least, drop) if count else drop)

    def evidence(self, numbers: Numbers) -> float:
        """The sum above its least; 0 before the fewest scores."""
        count, _, _, drop, least = numbers
        return drop - least if count >= self.fewest else 0.0
