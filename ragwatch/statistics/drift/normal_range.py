"""Normal range of a mean: how much worse than its reference it may be and still count as unchanged.

A mean m may change by the tolerance t. Above .9 that would hide failures: at a mean of .99 a tolerance of .02 ignores
that failures triple. There the tolerance is one on the scale of odds instead: m may fall by the factor of its odds that
takes .9 to .9 - t. A rise of a small share is a fall of 1 - share, so the same holds for it.

Quality differs by the hour. The reference is therefore also kept by part of the day, and the mean may fall to that of
the worst part. Parts also differ by chance, so each is drawn towards the mean of all (empirical Bayes: by the ratio of
its sampling variance to the variance between parts, which is that of DerSimonian and Laird 1986). With little traffic
hardly anything of a difference is left, and none is needed: a night then has too few scores for an alarm.
"""

from collections.abc import Iterable
from math import fsum

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
    """Return the lowest mean that the tolerance allows."""
    lowest = max(0.0, mean - tolerance)
    if mean <= _ODDS_FROM or tolerance >= _ODDS_FROM:
        return lowest
    allowed = _ODDS_FROM - tolerance
    factor = _ODDS_FROM / (1.0 - _ODDS_FROM) * (1.0 - allowed) / allowed
    return max(lowest, mean / (mean + factor * (1.0 - mean)))


def worst_part(parts: Iterable[tuple[float, float, float]], variance: float) -> float:
    """Return the mean of the worst part of the day, drawn towards that of all; 1 if all are alike or none is there.

    Each part is given by its sums of w, w x and w^2, and is skipped without scores; `variance` is that of one score.

    >>> parts = [(100.0, 50.0, 100.0), (100.0, 90.0, 100.0), (0.0, 0.0, 0.0)]
    >>> round(worst_part(parts, 0.25), 4)                 # .7 - .2 (1 - s^2 / d^2), where s^2 = .0025, d^2 = .2^2 * 2
    0.5062
    >>> worst_part(parts, 25.0), worst_part([], 0.25)
    (1.0, 1.0)
    """
    errors = [(wx / w, variance * w2 / (w * w)) for w, wx, w2 in parts if w > 0.0]
    if len(errors) < 2 or variance <= 0.0:
        return 1.0
    precisions = [1.0 / error for _, error in errors]
    total = fsum(precisions)
    centre = fsum(mean * precision for (mean, _), precision in zip(errors, precisions, strict=True)) / total
    scatter = fsum((mean - centre) ** 2 * precision for (mean, _), precision in zip(errors, precisions, strict=True))
    excess = scatter - (len(errors) - 1)
    if excess <= 0.0:
        return 1.0
    between = excess / (total - fsum(precision * precision for precision in precisions) / total)
    return min(centre + (mean - centre) * between / (between + error) for mean, error in errors)
