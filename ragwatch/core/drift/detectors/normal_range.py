"""Normal range of a mean: how much worse than its reference it may be and still count as unchanged.

A mean m may change by the tolerance t. Above .9 that would hide failures: at a mean of .99 a tolerance of .02 ignores
that failures triple. There the tolerance is one on the scale of odds instead: m may fall by the factor of its odds that
takes .9 to .9 - t. A rise of a small share is a fall of 1 - share, so the same holds for it.

Quality differs by the hour. The reference is therefore also kept by part of the day, and the mean may fall to that of
the worst part, as far as that differs by more than its standard error. With little traffic no part does, and none needs to:
a night then has too few scores for an alarm.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

PARTS = 8
"""Parts of a day of 24 hours (UTC) by which a reference is kept."""
_PART_SECONDS = 86400.0 / PARTS
_ODDS_FROM = 0.9


def part_of_day(at: float) -> int:
    """Return the part of the day of a time in seconds since the epoch.

    >>> part_of_day(0.0), part_of_day(86400.0 + 3 * 3600.0), part_of_day(-1.0)
    (0, 1, 7)
    """
    return int(at // _PART_SECONDS) % PARTS


def lowest_unchanged(mean: float, tolerance: float) -> float:
    """Return the lowest mean that the tolerance allows.

    >>> [round(lowest_unchanged(mean, 0.02), 4) for mean in (0.5, 0.9, 0.99, 1.0)]     # odds 99 / (9 / (.88 / .12))
    [0.48, 0.88, 0.9878, 1.0]
    >>> lowest_unchanged(0.95, 0.95), lowest_unchanged(0.5, 0.6)
    (0.0, 0.0)
    """
    lowest = max(0.0, mean - tolerance)
    if mean <= _ODDS_FROM or tolerance >= _ODDS_FROM:
        return lowest
    allowed = _ODDS_FROM - tolerance
    factor = _ODDS_FROM / (1.0 - _ODDS_FROM) * (1.0 - allowed) / allowed
    return max(lowest, mean / (mean + factor * (1.0 - mean)))


def worst_part(parts: Iterable[tuple[float, float, float]], variance: float) -> float:
    """Return the mean of the worst part of the day, less bad by its standard error; 1 if there is no part.

    Args:
        parts: For each part, the sum of weights w, the sum of w x and the sum of w^2. Parts without scores are skipped.
        variance: Variance of one score.

    >>> worst_part([(100.0, 50.0, 100.0), (100.0, 90.0, 100.0), (0.0, 0.0, 0.0)], 0.25)           # .5 + .5 / 10
    0.55
    """
    means = (wx / w + math.sqrt(variance * w2) / w for w, wx, w2 in parts if w > 0.0)
    return min(means, default=1.0)
