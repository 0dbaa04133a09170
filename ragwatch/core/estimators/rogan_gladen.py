"""Rogan-Gladen estimator: a rate of yes/no verdicts, corrected by the judge's sensitivity and specificity.

With p the judge's rate, q1 its sensitivity and q0 its specificity, rate = (p + q0 - 1) / (q0 + q1 - 1) (Rogan and
Gladen 1978). The interval is that of Lee et al. (arXiv 2511.21140): all three rates are shrunk towards 1/2, the centre
is shifted for the curvature of the ratio, and the width contains the uncertainty of all three. PPI++ is narrower with
labels of the same traffic; this estimator is for sensitivity and specificity from other labels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from ragwatch.core.estimators.interval import clip


@dataclass(frozen=True, slots=True)
class ErrorRates:
    """Confusion counts of a judge against labels.

    Attributes:
        hits: True positives: labelled and judged positive.
        positives: Answers labelled positive.
        rejections: True negatives: labelled and judged negative.
        negatives: Answers labelled negative.
    """

    hits: int
    positives: int
    rejections: int
    negatives: int


def correct(
    rate: float, n_eff: float, rates: ErrorRates, confidence: float = 0.95
) -> tuple[float, float, float] | None:
    """Return the corrected rate with its interval, all in [0, 1].

    None if the judge is no better than chance, or without labels of both classes.

    Args:
        rate: Rate of positive verdicts.
        n_eff: Effective number of verdicts.
        rates: Confusion counts of the judge.
        confidence: Two-sided level.

    >>> value, low, high = correct(0.25, 1000, ErrorRates(hits=90, positives=100, rejections=80, negatives=100))
    >>> round(value, 4)                                        # (.25 + .8 - 1) / (.9 + .8 - 1) = .05 / .7
    0.0714
    >>> low, round(high, 2)
    (0.0, 0.17)
    >>> correct(0.25, 1000, ErrorRates(50, 100, 50, 100)) is None   # a coin toss
    True
    """
    if not rates.positives or not rates.negatives or n_eff <= 0.0:
        return None
    specificity, sensitivity = rates.rejections / rates.negatives, rates.hits / rates.positives
    if specificity + sensitivity <= 1.0:
        return None
    value = clip((rate + specificity - 1.0) / (specificity + sensitivity - 1.0))
    z = NormalDist().inv_cdf(0.5 + confidence / 2.0)
    p, n = (n_eff * rate + z * z / 2.0) / (n_eff + z * z), n_eff + z * z
    m0, m1 = rates.negatives + 2.0, rates.positives + 2.0
    q0, q1 = (rates.rejections + 1.0) / m0, (rates.hits + 1.0) / m1
    youden = q0 + q1 - 1.0
    if youden <= 0.0:
        return None
    centre = (p + q0 - 1.0) / youden
    v0, v1 = q0 * (1.0 - q0) / m0, q1 * (1.0 - q1) / m1
    error = math.sqrt(p * (1.0 - p) / n + (1.0 - centre) ** 2 * v0 + centre**2 * v1) / youden
    shift = 2.0 * z * z * (centre * v1 - (1.0 - centre) * v0)
    low, high = clip(centre + shift - z * error), clip(centre + shift + z * error)
    return value, min(low, value), max(high, value)
