"""The Hajek estimator: a mean over unequal inclusion probabilities, self-normalised.

mu = sum(w x) / sum(w) with w = 1/p over judged scores. Its variance is the linearised (Taylor) one for sampling
with unequal probabilities, v = sum(w^2 (x - mu)^2) / (sum w)^2 * n / (n - 1) (Saerndal, Swensson and Wretman 1992,
section 5.7; the factor is the usual small-sample one).

The interval is Wilson's (1927) on the effective sample size m = mu (1 - mu) / v of Korn and Graubard (1998), with
Student's t in place of the normal quantile. Scores live in [0, 1], where mu (1 - mu) is the largest variance a mean
of mu allows; the interval stays inside [0, 1], is asymmetric near its ends, and where all scores are equal (v = 0)
it keeps an honest width from m = n_eff instead of collapsing to a point.

Where failures are few and weights differ, v comes out too small most of the time: the light rows show their failures
first, and one heavy failure not yet seen would have moved everything. So v is given the weight of A_FEW failures
more, each of the size of those that were seen, only so far as weights differ, and not beyond the variance that n_eff
trials of (mu n_eff + 1) / (n_eff + 2) would leave: with equal weights it is Wilson's interval and nothing else.
Figures: docs/statistics.md.
"""

from __future__ import annotations

from ragwatch.core.estimate import Addends, Estimate
from ragwatch.core.estimators.interval import clip as _clip
from ragwatch.core.estimators.interval import quantile as _quantile
from ragwatch.core.estimators.interval import wilson as _wilson

A_FEW = 3.0
CRUMBS = 1e-14  # what rounding may leave of a variance of 1: some tens of times the spacing of floats


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
    if addends.n == 0:
        return None
    mean, low, high, effective = interval(addends, confidence)
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
        interval="wilson",
    )


def interval(addends: Addends, confidence: float = 0.95) -> tuple[float, float, float, float]:
    """Mean, lower end, upper end and n_eff of the scores behind `addends`, of which there must be one at least.

    >>> [round(each, 3) for each in interval(Addends.of([(1.0, 0.5)] * 20))]
    [1.0, 0.82, 1.0, 20.0]
    """
    mean = _clip(addends.wx / addends.w)
    effective = addends.w * addends.w / addends.w2
    low, high = _wilson(mean, trials(addends, mean, effective), _quantile(confidence, effective - 1))
    return mean, low, high, effective


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


def trials(addends: Addends, mean: float, effective: float) -> float:
    """Number of independent yes/no trials that would leave the same variance, given the mean and n_eff."""
    spread = variance(addends)
    most = mean * (1.0 - mean)
    # Rounding leaves crumbs of variance where all scores are equal; a crumb must not become a million trials.
    if spread is None or spread <= max(most * 1e-9, CRUMBS / effective):
        return effective
    unequal = 1.0 - effective / addends.n
    size = _size(addends, mean)
    more = A_FEW * max(unequal, 0.0) * (size / effective) ** 2
    shrunk = (mean * effective + 1.0) / (effective + 2.0)
    return most / max(spread, min(spread + more, size * shrunk * (1.0 - shrunk) / effective))


def _size(addends: Addends, mean: float) -> float:
    """Typical distance of a score from the end that most scores are at: sum(w^2 d^2) / sum(w^2 d)."""
    if mean > 0.5:
        first, second = addends.w2 - addends.w2x, addends.w2 - 2.0 * addends.w2x + addends.w2x2
    else:
        first, second = addends.w2x, addends.w2x2
    return _clip(second / first) if first > 0.0 else 1.0
