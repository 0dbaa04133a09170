"""Intervals, and those for a mean of scores in [0, 1] from the number of yes/no trials with the same variance."""

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

_HALVINGS = 40
_TERMS = 10_000


class Interval(NamedTuple):
    """A value with its confidence interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class CountedInterval:
    """A value of n observations with its confidence interval."""

    value: float
    low: float
    high: float
    n: int

    def shown(self, digits: int = 2) -> str:
        """Return it as text, such as `0.83 (0.71-0.94)`."""
        return f"{self.value:.{digits}f} ({self.low:.{digits}f}-{self.high:.{digits}f})"


def wilson(mean: float, trials: float, z: float) -> tuple[float, float]:
    """Return the Wilson interval (1927) of `mean` over a possibly fractional number of trials; z is the quantile."""
    square = z * z / trials
    centre = (mean + square / 2.0) / (1.0 + square)
    half = z / (1.0 + square) * math.sqrt(mean * (1.0 - mean) / trials + square / (4.0 * trials))
    return clip(min(centre - half, mean)), clip(max(centre + half, mean))


def clopper_pearson(mean: float, trials: float, confidence: float = 0.95) -> tuple[float, float]:
    """Return the exact interval of `mean` by Clopper and Pearson (1934) over a possibly fractional number of trials.

    Its ends are quantiles of Beta(k, n - k + 1) and Beta(k + 1, n - k), as Korn and Graubard (1998) use them at an
    effective sample size.
    """
    return 1.0 - _exact_high(1.0 - mean, trials, confidence), _exact_high(mean, trials, confidence)


def _exact_high(mean: float, trials: float, confidence: float) -> float:
    ones, zeros = mean * trials, (1.0 - mean) * trials
    if zeros <= 1e-9:
        return 1.0
    low, high = mean, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        if beta_cdf(middle, ones + 1.0, zeros) < 0.5 + confidence / 2.0:
            low = middle
        else:
            high = middle
    return high


def beta_cdf(x: float, a: float, b: float) -> float:
    """Return the cumulative distribution function of Beta(a, b) at x: the regularised incomplete beta function.

    Continued fraction (Abramowitz and Stegun 26.5.8), evaluated by Lentz's method on the side of the mean where it
    converges fast.
    """
    if x <= 0.0 or x >= 1.0:
        return 0.0 if x <= 0.0 else 1.0
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - beta_cdf(1.0 - x, b, a)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    c, d, m = 1.0, 1.0 / (1.0 - (a + b) * x / (a + 1.0)), 0
    product = d
    while abs(c * d - 1.0) > 1e-13 and m < _TERMS:
        m += 1
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        for term in (even, odd):
            d, c = 1.0 / (1.0 + term * d), 1.0 + term / c
            product *= c * d
    return clip(front * product / a)


def quantile(confidence: float, degrees: float) -> float:
    """Return the two-sided Student t quantile by the Cornish-Fisher expansion (Abramowitz and Stegun 26.7.5).

    The expansion is in 1 / degrees and is inaccurate below 3 degrees of freedom, so the minimum is 3.
    """
    z, g1, g2, g3 = _expansion(confidence)
    nu = max(degrees, 3.0)
    return z + g1 / nu + g2 / nu**2 + g3 / nu**3


@lru_cache(16)  # a configuration has one or two levels, and each is used many times
def _expansion(confidence: float) -> tuple[float, float, float, float]:
    z = NormalDist().inv_cdf(0.5 + confidence / 2.0)
    g1 = (z**3 + z) / 4.0
    g2 = (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / 96.0
    g3 = (3.0 * z**7 + 19.0 * z**5 + 17.0 * z**3 - 15.0 * z) / 384.0
    return z, g1, g2, g3


def clip(value: float) -> float:
    """Clip a value to [0, 1]."""
    return min(1.0, max(0.0, value))
