"""Rogan-Gladen: a rate of yes/no verdicts, corrected for a judge of known sensitivity and specificity.

With p the judge's rate, q1 its sensitivity and q0 its specificity, rate = (p + q0 - 1) / (q0 + q1 - 1) (Rogan and
Gladen 1978). The interval is that of Lee et al. (arXiv 2511.21140): all three rates shrunk towards their middle, the
centre shifted for the ratio's curvature, and the uncertainty of all three in the width. With labels of the same traffic
PPI++ is narrower; this one serves where sensitivity and specificity are known from elsewhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from ragwatch.core.estimators.interval import clip


@dataclass(frozen=True, slots=True)
class ErrorRates:
    """What labels say of a judge.

    Attributes:
        hits: Positives that the judge called positive.
        positives: Labelled positive.
        rejections: Negatives that it called negative.
        negatives: Labelled negative.
    """

    hits: int
    positives: int
    rejections: int
    negatives: int


def correct(
    rate: float, n_eff: float, known: ErrorRates, confidence: float = 0.95
) -> tuple[float, float, float] | None:
    """The true rate with its interval, all in [0, 1]; None where the judge says no more than chance, or nobody knows.

    Args:
        rate: The judge's rate of positives.
        n_eff: Effective number of verdicts behind it.
        known: What labels say of the judge.
        confidence: Two-sided level.

    >>> value, low, high = correct(0.25, 1000, Known(hits=90, positives=100, rejections=80, negatives=100))
    >>> round(value, 4)                                        # (.25 + .8 - 1) / (.9 + .8 - 1) = .05 / .7
    0.0714
    >>> low, round(high, 2)
    (0.0, 0.17)
    >>> correct(0.25, 1000, Known(50, 100, 50, 100)) is None   # a coin
    True
    """
    if not known.positives or not known.negatives or n_eff <= 0.0:
        return None
    specificity, sensitivity = known.rejections / known.negatives, known.hits / known.positives
    if specificity + sensitivity <= 1.0:
        return None
    value = clip((rate + specificity - 1.0) / (specificity + sensitivity - 1.0))
    z = NormalDist().inv_cdf(0.5 + confidence / 2.0)
    p, n = (n_eff * rate + z * z / 2.0) / (n_eff + z * z), n_eff + z * z
    m0, m1 = known.negatives + 2.0, known.positives + 2.0
    q0, q1 = (known.rejections + 1.0) / m0, (known.hits + 1.0) / m1
    power = q0 + q1 - 1.0
    if power <= 0.0:
        return None
    centre = (p + q0 - 1.0) / power
    v0, v1 = q0 * (1.0 - q0) / m0, q1 * (1.0 - q1) / m1
    error = math.sqrt(p * (1.0 - p) / n + (1.0 - centre) ** 2 * v0 + centre**2 * v1) / power
    shift = 2.0 * z * z * (centre * v1 - (1.0 - centre) * v0)
    low, high = clip(centre + shift - z * error), clip(centre + shift + z * error)
    return value, min(low, value), max(high, value)
