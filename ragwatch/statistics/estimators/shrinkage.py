"""Draws means of groups with few answers toward a common mean (empirical Bayes), with intervals that hold their level.

The true mean of a group is taken to lie around a centre c, with variance V between groups; its estimate y has the
sampling variance v. The estimate c + s (y - c) with s = V / (V + v) has the least mean squared error (Morris 1983,
"Parametric empirical Bayes inference", JASA 78). Its interval is the robust one of Armstrong, Kolesar and
Plagborg-Moller (2022, "Robust empirical Bayes confidence intervals", Econometrica 90): s sqrt(v) times the critical
value at which the interval holds for a share `confidence` of the groups, however their true means are distributed
around the centre. The bias of the estimate, squared and in units of its variance, is v / V on average over the groups.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from ragwatch.model.estimate import Addends
from ragwatch.statistics.estimators.interval import Interval

MIN_GROUPS = 5
"""With fewer groups, the variance between them is not known: their means stay as they are."""
_DIGITS = 0.02  # step of the logarithm of v / V, which is rounded up
_STEPS = 40


class Noisy(NamedTuple):
    """An estimate with its sampling variance, which is positive."""

    value: float
    variance: float


def score_variance(addends: Addends) -> float:
    """Return the variance of one score, from sums over at least one."""
    mean = addends.w2x / addends.w2
    return max(0.0, addends.w2x2 / addends.w2 - mean * mean)


def noisy(addends: Addends, least: float) -> Noisy:
    """Return the mean with its sampling variance: of a score at `least` that over all groups, as few may agree."""
    n_eff = addends.w * addends.w / addends.w2
    return Noisy(addends.wx / addends.w, max(least, score_variance(addends)) / n_eff)


def variance_between(groups: Sequence[Noisy], centre: float) -> float | None:
    """Return the variance of the true means around the centre; None for fewer than MIN_GROUPS.

    It is the greatest of the moment estimates with weights 1 / v and with equal weights, because groups with much
    traffic may differ less, and of 2 / sum(1 / v), because groups never show that they do not differ at all (Armstrong,
    Kolesar and Plagborg-Moller 2022, section 4.2). One standard error is added, since one that is too small makes
    intervals too narrow. Measured coverage: docs/statistics.md.
    """
    if len(groups) < MIN_GROUPS:
        return None
    number, precision = len(groups), math.fsum(1.0 / group.variance for group in groups)
    squares = [(group.value - centre) ** 2 for group in groups]
    excess = math.fsum(square / group.variance - 1.0 for square, group in zip(squares, groups, strict=True))
    alike = math.fsum(square - group.variance for square, group in zip(squares, groups, strict=True)) / number
    between = max(excess / precision, alike, 2.0 / precision)
    return between + math.sqrt(2.0 * math.fsum((group.variance + between) ** 2 for group in groups)) / number


def drawn(group: Noisy, centre: float, between: float) -> float:
    """Return the mean of a group, drawn toward the centre."""
    return centre + between / (between + group.variance) * (group.value - centre)


def shrunk(group: Noisy, centre: float, between: float, confidence: float) -> Interval:
    """Return the mean of a group, drawn toward the common mean, with an interval that so many of the groups hold."""
    share = between / (between + group.variance)
    value = drawn(group, centre, between)
    ratio = math.exp(math.ceil(math.log(group.variance / between) / _DIGITS) * _DIGITS)
    half = critical_value(ratio, 1.0 - confidence) * share * math.sqrt(group.variance)
    return Interval(value, value - half, value + half)


@lru_cache(1 << 10)
def critical_value(bias: float, alpha: float) -> float:
    """Return the least x with P(|Z + b| > x) <= alpha for a normal Z and any distribution of b with E b^2 = `bias`."""
    low, high = 0.0, math.sqrt((1.0 + bias) / alpha)  # the latter by Chebyshev
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if _missed(bias, middle) > alpha else (low, middle)
    return high


def _missed(bias: float, limit: float) -> float:
    """The greatest P(|Z + b| > limit): b is 0 or one other value, that with the steepest chord from b = 0."""
    none = _beyond(0.0, limit)

    def slope(b: float) -> float:
        return (_beyond(b, limit) - none) / (b * b)

    low = max(math.sqrt(bias), 1e-6)
    high = max(low, limit + 4.0)
    for _ in range(_STEPS):  # it rises to its maximum, and falls from there on
        first, second = low + (high - low) / 3.0, high - (high - low) / 3.0
        low, high = (first, high) if slope(first) < slope(second) else (low, second)
    return none + bias * slope((low + high) / 2.0)


def _beyond(b: float, limit: float) -> float:
    return 0.5 * (math.erfc((limit - b) / math.sqrt(2.0)) + math.erfc((limit + b) / math.sqrt(2.0)))
