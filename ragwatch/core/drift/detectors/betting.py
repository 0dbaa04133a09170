"""Shiryaev-Roberts betting e-detector for the mean of scores in [0, 1]: no distribution, no calibration.

Shin, Ramdas and Rinaldo, "E-detectors" (arXiv 2203.03532). For a fall below the baseline m0, each score x is a bet
L = 1 + b (w / w_max) (m0 - x) with 0 <= b < 1 / (1 - m0), which is positive and, while E[w (x - m0) | past] >= 0, worth
at most 1 on average. M <- L (c + M), from M = 0, so M minus the run length (the sum of credits c) is a supermartingale
and the mean run length until M >= 1 / alpha is at least 1 / alpha: for any dependence, for every distribution. M is
the mean over a few sizes of bet b = f / (1 - m0). With c = 1 run length counts scores, with c = days passed, days.

Weights: scores of the drawn, weighted by 1 / inclusion probability, have the traffic's mean, and that is what the
null speaks of. A weight above `heaviest` counts as `heaviest`. A rise is a fall of 1 - x.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import fsum

from ragwatch.core.drift.detect import Direction, Numbers, Score

FRACTIONS = (0.025, 0.05, 0.1, 0.2, 0.4, 0.8)
LEAST_ROOM = 0.01
"""1 - m0 is never taken for less: a lower baseline keeps the guarantee, and bets stay finite."""
MOST_EVIDENCE = 1e300
"""Evidence stops here, where floats end; less evidence keeps the guarantee."""


@dataclass(frozen=True, slots=True)
class Betting:
    """Betting against a fixed baseline.

    Attributes:
        baseline: The mean that is still good, in [0, 1].
        threshold: 1 / alpha.
        direction: Which way is worse.
        heaviest: Largest weight, 1 / the lowest inclusion probability configured.
        fractions: Sizes of bet, as shares of the largest allowed; each in (0, 1).
    """

    baseline: float
    threshold: float
    direction: Direction = Direction.FALL
    heaviest: float = 1.0
    fractions: Sequence[float] = FRACTIONS
    _floor: float = field(init=False, repr=False)
    _bets: Numbers = field(init=False, repr=False)

    def __post_init__(self) -> None:
        baseline = self.baseline if self.direction is Direction.FALL else 1.0 - self.baseline
        floor = min(baseline, 1.0 - LEAST_ROOM)
        object.__setattr__(self, "_floor", floor)
        object.__setattr__(self, "_bets", tuple(each / (1.0 - floor) for each in self.fractions))

    @property
    def design(self) -> Numbers:
        """Baseline, direction, heaviest weight and bets. Not the threshold: evidence is the same against any."""
        return (self.baseline, float(self.direction is Direction.RISE), self.heaviest, *self.fractions)

    def start(self) -> Numbers:
        """No evidence for any size of bet."""
        return (0.0,) * len(self._bets)

    def step(self, numbers: Numbers, reading: Score, credit: float = 1.0) -> Numbers:
        """Evidence for each size of bet, after one more score.

        >>> watching = Betting(baseline=0.9, threshold=10_000, fractions=(0.5,))
        >>> [round(each, 4) for each in watching.step((1.0,), Score(0.7))]     # b = 5: (1 + 5 * 0.2) * (1 + 1)
        [4.0]
        >>> [round(each, 4) for each in watching.step((1.0,), Score(1.0))]     # (1 - 5 * 0.1) * (1 + 1)
        [1.0]
        """
        value = reading.value if self.direction is Direction.FALL else 1.0 - reading.value
        gain = (self._floor - value) * min(1.0, reading.weight / self.heaviest)
        return tuple(
            min((1.0 + bet * gain) * (credit + each), MOST_EVIDENCE)
            for bet, each in zip(self._bets, numbers, strict=True)
        )

    def evidence(self, numbers: Numbers) -> float:
        """The mean over all sizes of bet: on average at most the run length while nothing is wrong."""
        return fsum(numbers) / len(numbers)


@dataclass(frozen=True, slots=True)
class ScorePair:
    """A score beside one of the concurrent control, each with its weight 1 / inclusion probability."""

    score: Score
    control: Score


@dataclass(frozen=True, slots=True)
class TwoSample:
    """Betting against a concurrent control (previous release, frozen canaries): no baseline, two to three times slower.

    L = 1 + b (w v / heaviest^2) (control - score) with 0 <= b < 1. Weights of both are multiplied, because the mean of
    a difference of two weighted scores vanishes under equal means only when both carry both weights.

    Attributes:
        threshold: 1 / alpha.
        direction: Which way is worse.
        heaviest: Largest weight on either side.
        fractions: Sizes of bet, each in (0, 1).
    """

    threshold: float
    direction: Direction = Direction.FALL
    heaviest: float = 1.0
    fractions: Sequence[float] = FRACTIONS[1:]

    @property
    def design(self) -> Numbers:
        """Direction, heaviest weight and bets."""
        return (float(self.direction is Direction.RISE), self.heaviest, *self.fractions)

    def start(self) -> Numbers:
        """No evidence for any size of bet."""
        return (0.0,) * len(self.fractions)

    def step(self, numbers: Numbers, reading: ScorePair, credit: float = 1.0) -> Numbers:
        """Evidence for each size of bet, after one more pair.

        >>> TwoSample(threshold=100, fractions=(0.5,)).step((1.0,), Pair(Score(0.25), Score(0.75)))   # 1.25 * 2
        (2.5,)
        """
        worse = reading.control.value - reading.score.value
        share = min(1.0, reading.score.weight / self.heaviest) * min(1.0, reading.control.weight / self.heaviest)
        gain = share * (worse if self.direction is Direction.FALL else -worse)
        return tuple(
            min((1.0 + bet * gain) * (credit + each), MOST_EVIDENCE)
            for bet, each in zip(self.fractions, numbers, strict=True)
        )

    def evidence(self, numbers: Numbers) -> float:
        """The mean over all sizes of bet."""
        return fsum(numbers) / len(numbers)
