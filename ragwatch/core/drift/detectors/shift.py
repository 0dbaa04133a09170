"""Shift: a distribution over fixed buckets is not what it was. Needs no judge, and counts every request.

For each cut between two buckets, the share of values below it is a mean of zeros and ones; `betting` watches it fall
and rise, and evidence is the mean over cuts, both directions and a few sizes of bet, so that one threshold serves all.
A rate (abstentions, empty retrievals) is a distribution over two buckets.

Readings are counts of a batch. A batch of n requests, c of them below the cut, multiplies a bet by
(1 + b (m0 - 1))^c (1 + b m0)^(n - c): the order within a batch does not matter, and M <- L (n + M) keeps M minus the
number of requests a supermartingale.

The reference is a bound on each share (Chernoff: n kl(share, bound) = ln(1 / risk), with the risk divided over cuts
and directions), moved away by a tolerance. It should span what is ordinary: a day at least.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from ragwatch.core.drift.detect import Detector, Direction, Numbers, Unit
from ragwatch.core.drift.detectors.betting import LEAST_ROOM, MOST_EVIDENCE

FRACTIONS = (0.05, 0.2, 0.8)
_HALVINGS = 50
_LARGEST_LOG = 690.0
Counts = Sequence[int]
"""How many values of a batch fell into each bucket."""


def share_bound(count: float, total: float, risk: float) -> float:
    """The share that the true one is below with probability 1 - risk, after `count` of `total`.

    >>> round(share_bound(0, 100, 0.05), 4)         # 1 - .05^(1/100)
    0.0295
    >>> round(share_bound(50, 100, 0.05), 4)        # about sqrt(ln(20) / 200) above
    0.6206
    """
    share, limit = count / total, math.log(1.0 / risk) / total
    low, high = share, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        if _kl(share, middle) < limit:
            low = middle
        else:
            high = middle
    return high


def _kl(one: float, other: float) -> float:
    """Kullback-Leibler divergence of two coins; `other` is in (0, 1), or equal to `one`."""
    heads = one * math.log(one / other) if one > 0.0 else 0.0
    return heads + ((1.0 - one) * math.log((1.0 - one) / (1.0 - other)) if one < 1.0 else 0.0)


@dataclass(frozen=True, slots=True)
class ShiftDetector:
    """The detector.

    Attributes:
        shares: For each cut, the least share of values below it that is still ordinary, and the least share above it.
        threshold: 1 / alpha.
    """

    shares: Sequence[tuple[float, float]]
    threshold: float

    @property
    def design(self) -> Numbers:
        """All shares."""
        return tuple(share for both in self.shares for share in both)

    def start(self) -> Numbers:
        """No evidence for any bet."""
        return (0.0,) * (len(self.shares) * 2 * len(FRACTIONS))

    def step(self, numbers: Numbers, reading: Counts, credit: float) -> Numbers:
        """Evidence for each bet after one more batch.

        >>> one = Shift(shares=((0.5, 0.0),), threshold=100)     # at least half below the cut; b = .8 / .5
        >>> round(one.step(one.start(), (0, 2), 2)[2], 4)        # two above: (1 + 1.6 * .5)^2 * 2
        6.48
        """
        total, below = sum(reading), list(accumulate(reading))
        after: list[float] = []
        for cut, both in enumerate(self.shares):
            for least, kept in zip(both, (below[cut], total - below[cut]), strict=True):
                floor = min(least, 1.0 - LEAST_ROOM)
                for fraction in FRACTIONS:
                    before = numbers[len(after)]
                    bet = fraction / (1.0 - floor)
                    # No share is less than 0: against such a floor there is nothing to bet on.
                    log = kept * math.log1p(bet * (floor - 1.0)) + (total - kept) * math.log1p(bet * floor)
                    found = math.exp(min(log, _LARGEST_LOG)) * (credit + before) if floor > 0.0 else 0.0
                    after.append(min(found, MOST_EVIDENCE))
        return tuple(after)

    def evidence(self, numbers: Numbers) -> float:
        """The mean over all bets."""
        return math.fsum(numbers) / len(numbers)

    def where(self, numbers: Numbers) -> tuple[int, Direction]:
        """The cut with most evidence, and which way the values went: `rise` when more of them lie above it."""
        strongest = max(range(len(numbers)), key=numbers.__getitem__)
        cut, rest = divmod(strongest, 2 * len(FRACTIONS))
        return cut, Direction.RISE if rest < len(FRACTIONS) else Direction.FALL


@dataclass(frozen=True, slots=True)
class AgainstCounts:
    """A scheme that learns counts in buckets, and then watches for a shift.

    Attributes:
        threshold: 1 / alpha.
        buckets: Number of buckets; 2 for a rate.
        requests: Requests to learn from.
        tolerance: What a share may differ from the reference without anybody being called.
        unit: What run length is counted in; `scores` means requests.
        risk: Probability that some bound does not hold.
        span: Seconds to learn for, at least.
    """

    threshold: float
    buckets: int = 2
    requests: int = 5000
    tolerance: float = 0.02
    unit: Unit = Unit.SCORES
    risk: float = 0.05
    span: float = 0.0

    def size(self, reading: Counts) -> float:
        """Requests in the batch."""
        return float(sum(reading))

    def learn(self, reference: Numbers, reading: Counts) -> Numbers:
        """All counts so far."""
        before = reference or (0.0,) * self.buckets
        return tuple(one + more for one, more in zip(before, reading, strict=True))

    def detector(self, reference: Numbers) -> Detector[Counts] | None:
        """The detector; None while requests are too few."""
        total = sum(reference)
        if not reference or total < self.requests:
            return None
        risk = self.risk / (2 * (self.buckets - 1))
        shares = []
        for below in list(accumulate(reference))[:-1]:
            least_below = 1.0 - share_bound(total - below, total, risk) - self.tolerance
            least_above = 1.0 - share_bound(below, total, risk) - self.tolerance
            shares.append((max(0.0, least_below), max(0.0, least_above)))
        return ShiftDetector(tuple(shares), self.threshold)
