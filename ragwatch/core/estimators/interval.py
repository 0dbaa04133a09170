"""Intervals for a mean of scores in [0, 1], from the number of yes/no trials that would leave as much variance."""

from __future__ import annotations

import math
from statistics import NormalDist


def wilson(mean: float, trials: float, z: float) -> tuple[float, float]:
    """Wilson's (1927) interval of `mean` over so many trials, which may be no whole number; z is the quantile.

    >>> [round(end, 4) for end in wilson(0.9, 100, 1.96)]
    [0.8256, 0.9448]
    """
    square = z * z / trials
    centre = (mean + square / 2.0) / (1.0 + square)
    half = z / (1.0 + square) * math.sqrt(mean * (1.0 - mean) / trials + square / (4.0 * trials))
    return clip(min(centre - half, mean)), clip(max(centre + half, mean))


def quantile(confidence: float, degrees: float) -> float:
    """Two-sided Student t quantile, by the Cornish-Fisher expansion in 1/degrees (Abramowitz and Stegun 26.7.5).

    Below 3 degrees the expansion is poor and a sample says little anyway: 3 is the floor.
    """
    z = NormalDist().inv_cdf(0.5 + confidence / 2.0)
    nu = max(degrees, 3.0)
    g1 = (z**3 + z) / 4.0
    g2 = (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / 96.0
    g3 = (3.0 * z**7 + 19.0 * z**5 + 17.0 * z**3 - 15.0 * z) / 384.0
    return z + g1 / nu + g2 / nu**2 + g3 / nu**3


def clip(value: float) -> float:
    """The value, or the end of [0, 1] that is nearest."""
    return min(1.0, max(0.0, value))
