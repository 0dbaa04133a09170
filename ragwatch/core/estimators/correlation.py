"""Weighted correlation of two scores in [0, 1], with an interval that does not assume that they are normal.

Pearson's r of weighted pairs, w = 1 / inclusion probability. Its variance is that of its influence function,
z_x z_y - r (z_x^2 + z_y^2) / 2, and at least that of normal pairs. The interval is symmetric on Fisher's scale (1915),
with the quantile of Student's t. Near -1 and 1, where few pairs show no exception, r counts as if 3 of n_eff pairs
could be one (the rule of three) at the end that is nearer to 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from ragwatch.core.estimators.interval import quantile

MIN_PAIRS = 50
_MIN_VARIANCE = 1e-9
_MIN_EFFECTIVE = 10.0
_POWERS = tuple((i, j) for i in range(5) for j in range(5 - i))


_FIRST, _SECOND = attrgetter("first"), attrgetter("second")


@dataclass(frozen=True, slots=True)
class Correlation:
    """Pearson's r of n pairs, with its interval."""

    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True)
class PairSums:
    """Sums over pairs of w x^i y^j (`first`) and w^2 x^i y^j, by the order of `_POWERS`, which add up over time."""

    n: int = 0
    first: tuple[float, ...] = (0.0,) * len(_POWERS)
    second: tuple[float, ...] = (0.0,) * len(_POWERS)

    @classmethod
    def of(cls, pairs: Iterable[tuple[float, float, float]]) -> PairSums:
        """Return the sums over (x, y, inclusion probability)."""
        n, first, second = 0, [0.0] * len(_POWERS), [0.0] * len(_POWERS)
        for x, y, probability in pairs:
            n += 1
            w = 1.0 / probability
            for place, (i, j) in enumerate(_POWERS):
                term = w * x**i * y**j
                first[place] += term
                second[place] += w * term
        return cls(n, tuple(first), tuple(second))

    @classmethod
    def total(cls, parts: Sequence[PairSums]) -> PairSums:
        """Return the total of at least one part, added up column by column."""
        if len(parts) == 1:
            return parts[0]
        first, second = (zip(*(sums(part) for part in parts), strict=True) for sums in (_FIRST, _SECOND))
        return cls(sum(part.n for part in parts), tuple(map(math.fsum, first)), tuple(map(math.fsum, second)))

    def __add__(self, other: PairSums) -> PairSums:
        return PairSums(
            self.n + other.n,
            tuple(map(float.__add__, self.first, other.first)),
            tuple(map(float.__add__, self.second, other.second)),
        )


def correlate(sums: PairSums, confidence: float = 0.95, min_pairs: int = MIN_PAIRS) -> Correlation | None:
    """Return the correlation; None for too few pairs, or if either score is always the same."""
    if sums.n < min_pairs:
        return None
    w = sums.first[0]
    moment = dict(zip(_POWERS, (total / w for total in sums.first), strict=True))
    mean_x, mean_y = moment[1, 0], moment[0, 1]
    var_x, var_y = moment[2, 0] - mean_x**2, moment[0, 2] - mean_y**2
    if min(var_x, var_y) <= _MIN_VARIANCE:
        return None
    r = max(-1.0, min(1.0, (moment[1, 1] - mean_x * mean_y) / math.sqrt(var_x * var_y)))
    n_eff = w * w / sums.second[0]
    if n_eff < _MIN_EFFECTIVE:
        return None
    variance = _influence(sums, (mean_x, mean_y), (var_x, var_y), r) / (w * w)
    inner = math.copysign(min(abs(r), 1.0 - 3.0 / n_eff), r)
    slope = 1.0 - inner * inner
    error = max(math.sqrt(max(0.0, variance)) / slope, 1.0 / math.sqrt(n_eff - 3.0))
    half = quantile(confidence, n_eff - 2.0) * error
    outer = math.copysign(min(abs(r), 1.0 - _MIN_VARIANCE), r)
    lower, upper = math.atanh(min(inner, outer)) - half, math.atanh(max(inner, outer)) + half
    return Correlation(r, min(r, math.tanh(lower)), max(r, math.tanh(upper)), sums.n)


def _influence(sums: PairSums, means: tuple[float, float], variances: tuple[float, float], r: float) -> float:
    """Return the sum of the squares of w times the influence of each pair on r."""
    (mean_x, mean_y), (var_x, var_y) = means, variances
    total = dict(zip(_POWERS, sums.second, strict=True))

    scale_x, scale_y = math.sqrt(var_x), math.sqrt(var_y)

    def central(i: int, j: int) -> float:
        """Sum of w^2 z_x^i z_y^j."""
        terms = (
            math.comb(i, a) * math.comb(j, b) * (-mean_x) ** (i - a) * (-mean_y) ** (j - b) * total[a, b]
            for a in range(i + 1)
            for b in range(j + 1)
        )
        return math.fsum(terms) / (math.pow(scale_x, i) * math.pow(scale_y, j))

    fourth = central(4, 0) + 2.0 * central(2, 2) + central(0, 4)
    return central(2, 2) - r * (central(3, 1) + central(1, 3)) + r * r / 4.0 * fourth
