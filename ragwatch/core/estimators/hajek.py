"""The Hajek estimator: a mean over unequal inclusion probabilities, self-normalised.

mu = sum(w x) / sum(w) with w = 1/p over judged scores (Hajek 1971). Its variance is the linearised (Taylor) one for
sampling with unequal probabilities, v = sum(w^2 (x - mu)^2) / (sum w)^2 * n / (n - 1) (Saerndal, Swensson and Wretman
1992, section 5.7; the factor is the usual small-sample one). n_eff = (sum w)^2 / sum(w^2) is Kish's (1965) effective
number.

The interval is the score interval of `ragwatch.core.estimators.score`: inside [0, 1], asymmetric near its ends, of an
honest width where all scores are equal and v = 0. What stayed unjudged has the worst-case bounds of Manski (1989).
"""

from __future__ import annotations

from ragwatch.core.estimate import Addends, Estimate
from ragwatch.core.estimators import score
from ragwatch.core.estimators.interval import clip as _clip

Interval = tuple[float, float, float, float]
"""Mean, lower end, upper end and n_eff."""


def estimate(addends: Addends, *, unjudged_weight: float = 0.0, confidence: float = 0.95) -> Estimate | None:
    """Weighted mean of the scores behind `addends`, or None when there is none.

    Args:
        addends: Sums over judged scores.
        unjudged_weight: Sum of weights of draws that should have been scored and were not.
        confidence: Two-sided level of the interval, in (0, 1).

    >>> found = estimate(Addends.of([(1.0, 1.0), (1.0, 1.0), (0.0, 1.0), (1.0, 1.0)]))
    >>> found.value, found.n, found.n_eff, found.coverage
    (0.75, 4, 4.0, 1.0)
    >>> found = estimate(Addends.of([(1.0, 0.5), (0.0, 1.0)]), unjudged_weight=1.0)
    >>> round(found.value, 4), found.bound_low, found.bound_high    # 2/3; (2 + 0)/4; (2 + 1)/4
    (0.6667, 0.5, 0.75)
    """
    return None if addends.n == 0 else around(interval(addends, confidence), addends, unjudged_weight)


def around(found: Interval, addends: Addends, unjudged_weight: float) -> Estimate:
    """The estimate with this interval: by far the most work is in the interval, and it hears nothing of the unjudged.

    >>> some = Addends.of([(1.0, 1.0), (0.0, 1.0)])
    >>> around(interval(some), some, 2.0) == estimate(some, unjudged_weight=2.0)
    True
    """
    mean, low, high, effective = found
    drawn = addends.w + unjudged_weight
    return Estimate(
        value=mean,
        low=low,
        high=high,
        n=addends.n,
        n_eff=effective,
        coverage=_clip(addends.w / drawn),
        bound_low=_clip(addends.wx / drawn),
        bound_high=_clip((addends.wx + unjudged_weight) / drawn),
        interval=score.NAME,
    )


def interval(addends: Addends, confidence: float = 0.95) -> Interval:
    """Mean, lower end, upper end and n_eff of the scores behind `addends`, of which there must be one at least.

    >>> [round(each, 3) for each in interval(Addends.of([(1.0, 0.5)] * 20))]        # Clopper-Pearson: .832
    [1.0, 0.849, 1.0, 20.0]
    """
    shape = score.StratumSums.of(addends)
    low, high = score.interval([(1.0, shape)], confidence)
    return shape.mean, low, high, shape.n_eff


def variance(addends: Addends) -> float | None:
    """Linearised variance of the mean; None below two scores.

    With all weights equal this is s^2 / n:

    >>> variance(Addends.of([(0.0, 1.0), (1.0, 1.0)]))    # s^2 = 1/2, n = 2
    0.25
    """
    if addends.n < 2:
        return None
    mean = addends.wx / addends.w
    spread = addends.w2x2 - 2.0 * mean * addends.w2x + mean * mean * addends.w2
    return max(spread, 0.0) / (addends.w * addends.w) * addends.n / (addends.n - 1)
