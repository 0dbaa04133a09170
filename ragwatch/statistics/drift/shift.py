"""Distribution shift over fixed buckets, from counts of all requests; no judge is needed.

For each cut between two buckets, the share of values below it is a mean of zeros and ones. `betting` detects its fall
and its rise. The evidence is the mean over cuts, both directions and several sizes of bet, so that one threshold serves
all. A rate (abstentions, empty retrievals) is a distribution over two buckets.

A reading holds the counts of a batch. A batch of n requests, c of them below the cut, multiplies a bet by
(1 + b (m0 - 1))^c (1 + b m0)^(n - c): the order within a batch does not matter, and M <- L (n + M) keeps M minus the
number of requests a supermartingale.

The reference is a bound on each share (Chernoff: n kl(share, bound) = ln(1 / risk), with the risk divided by the number
of cuts and directions), minus a tolerance; for shares below .1 and above .9 the tolerance is one on the scale of odds,
so that it does not hide a rise from none to 5 %. It should cover the normal variation: at least a day. Where a share
differs by the part of the day, the worst part counts (see `normal_range`). A bound of 0 allows no bet, and the mean of
the evidence leaves it out: a rare signal cannot fall.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from ragwatch.statistics.drift.detect import Detector, Direction, Numbers, Unit, look_sizes
from ragwatch.statistics.drift.detectors import MAX_EVIDENCE, MIN_MARGIN
from ragwatch.statistics.drift.normal_range import PARTS, lowest_unchanged, part_of_day, worst_part

FRACTIONS = (0.05, 0.2, 0.8)
_HALVINGS = 50
_MAX_LOG = 690.0
Counts = Sequence[int]
"""Number of values of a batch in each bucket."""


def share_bound(count: float, total: float, risk: float) -> float:
    """Return the upper bound of a share with probability 1 - risk, given `count` of `total`.

    >>> round(share_bound(0, 100, 0.05), 4)         # 1 - .05^(1/100)
    0.0295
    >>> round(share_bound(50, 100, 0.05), 4)        # about sqrt(ln(20) / 200) above
    0.6206
    """
    share, limit = count / total, math.log(1.0 / risk) / total
    low, high = share, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        # The Kullback-Leibler divergence of two Bernoulli distributions.
        ones = share * math.log(share / middle) if share > 0.0 else 0.0
        zeros = (1.0 - share) * math.log((1.0 - share) / (1.0 - middle)) if share < 1.0 else 0.0
        if ones + zeros < limit:
            low = middle
        else:
            high = middle
    return high


@dataclass(frozen=True, slots=True)
class ShiftDetector:
    """E-detector for a shift of a distribution over buckets."""

    shares: Sequence[tuple[float, float]]  # for each cut, the smallest normal share of values below and above it
    threshold: float  # 1 / alpha

    @property
    def design(self) -> Numbers:
        """All bounds on shares."""
        return tuple(share for bounds in self.shares for share in bounds)

    def start(self) -> Numbers:
        """Return zero evidence for each bet."""
        return (0.0,) * (len(self.shares) * 2 * len(FRACTIONS))

    def step(self, numbers: Numbers, reading: Counts, credit: float) -> Numbers:
        """Return the evidence for each bet after one more batch.

        >>> detector = ShiftDetector(shares=((0.5, 0.0),), threshold=100)     # at least half below the cut; b = .8 / .5
        >>> round(detector.step(detector.start(), (0, 2), 2)[2], 4)        # two above: (1 + 1.6 * .5)^2 * 2
        6.48
        """
        total, below = sum(reading), list(accumulate(reading))
        after: list[float] = []
        for cut, bounds in enumerate(self.shares):
            for bound, count in zip(bounds, (below[cut], total - below[cut]), strict=True):
                floor = min(bound, 1.0 - MIN_MARGIN)
                for fraction in FRACTIONS:
                    before = numbers[len(after)]
                    bet = fraction / (1.0 - floor)
                    # No share is below 0: with a floor of 0 there is no bet.
                    log = count * math.log1p(bet * (floor - 1.0)) + (total - count) * math.log1p(bet * floor)
                    evidence = math.exp(min(log, _MAX_LOG)) * (credit + before) if floor > 0.0 else 0.0
                    after.append(min(evidence, MAX_EVIDENCE))
        return tuple(after)

    def evidence(self, numbers: Numbers) -> float:
        """Return the mean over all bets that are possible."""
        possible = sum(bound > 0.0 for bound in self.design) * len(FRACTIONS)
        return math.fsum(numbers) / max(possible, 1)

    def where(self, numbers: Numbers) -> tuple[int, Direction]:
        """Return the cut with most evidence, and the direction: `rise` if more values than before lie above it."""
        strongest_bet = max(range(len(numbers)), key=numbers.__getitem__)
        cut, rest = divmod(strongest_bet, 2 * len(FRACTIONS))
        return cut, Direction.RISE if rest < len(FRACTIONS) else Direction.FALL


FIRST_REQUESTS = 500
"""Requests after which detection starts, if the reference is not complete with fewer."""


@dataclass(frozen=True, slots=True)
class CountScheme:
    """Scheme that learns the distribution over buckets, and then detects a shift."""

    threshold: float  # 1 / alpha
    buckets: int = 2  # number of buckets; 2 for a rate
    requests: int = 5000  # number of requests to learn from
    tolerance: float = 0.02  # how much a share may differ from the reference without an alarm
    unit: Unit = Unit.SCORES  # unit of the run length; `scores` means requests
    risk: float = 0.05  # probability that at least one bound does not hold
    span: float = 0.0  # minimum learning time in seconds
    first: int = FIRST_REQUESTS
    # for values that grow by themselves: index of the bound from which on the next bound is the double. Only shares
    # above a bound are watched, against the reference's share above the bound before it: values may double. None: all
    # changes are
    doubles_from: int | None = None

    def size(self, reading: Counts) -> float:
        """Return the number of requests in the batch."""
        return float(sum(reading))

    @property
    def looks(self) -> int:
        """Number of sizes of the reference at which the bounds are computed."""
        return len(look_sizes(self.first, self.requests)) - 1

    def look(self, reference: Numbers) -> int:
        """Return how many of these sizes a reference has reached; one more if it is twice a complete one."""
        return bisect_right(look_sizes(self.first, self.requests), sum(reference[: self.buckets]))

    def learn(self, reference: Numbers, reading: Counts, at: float = 0.0) -> Numbers:
        """Return the sums of all counts so far, then those by part of the day."""
        sums = list(reference) + [0.0] * (self.buckets * (1 + PARTS) - len(reference))  # earlier versions kept no parts
        for first in (0, self.buckets * (1 + part_of_day(at))):
            for bucket, count in enumerate(reading, start=first):
                sums[bucket] += count
        return tuple(sums)

    def detector(self, reference: Numbers) -> Detector[Counts] | None:
        """Return the detector; None while requests are too few."""
        if not self.look(reference):
            return None
        counts, *parts = (reference[first : first + self.buckets] for first in range(0, len(reference), self.buckets))
        return ShiftDetector(tuple(self._bounds(cut, counts, parts) for cut in range(1, self.buckets)), self.threshold)

    def _bounds(self, cut: int, counts: Numbers, parts: Sequence[Numbers]) -> tuple[float, float]:
        """Return the smallest normal shares below and above a cut; 0 where it is not watched."""
        if self.doubles_from is None:
            return self._lowest(slice(cut), counts, parts), self._lowest(slice(cut, None), counts, parts)
        before = cut - 1  # number of the buckets below the bound before
        return (self._lowest(slice(before), counts, parts) if before > self.doubles_from else 0.0), 0.0

    def _lowest(self, side: slice, counts: Numbers, parts: Sequence[Numbers]) -> float:
        """Return the smallest normal share of the buckets of one side of a cut."""
        count, total = sum(counts[side]), sum(counts)
        bound = 1.0 - share_bound(total - count, total, self.risk / (2 * (self.buckets - 1)))
        share = count / total
        worst = worst_part(((sum(part), sum(part[side]), sum(part)) for part in parts), share * (1.0 - share))
        return max(0.0, min(lowest_unchanged(bound, self.tolerance), worst))
