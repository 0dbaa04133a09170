"""Stratified and post-stratified means: each stratum by itself, put together by its known share of the traffic.

value = sum_h W_h mean_h, with W_h the share of stratum h (a route, a label) in all traffic, which is known exactly
because every request is counted, drawn or not. That the strata were drawn at different rates, or more of one by
chance, then adds no error (Saerndal, Swensson and Wretman 1992, section 7.6).

The interval is Wilson's on value (1 - value) / v trials with v = sum_h W_h^2 v_h, v_h as in `hajek`. A stratum that
showed no failure at all has a v_h as if two more scores of the whole's mean had been seen: it keeps an honest width.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from ragwatch.core.estimate import Addends, Estimate
from ragwatch.core.estimators import hajek
from ragwatch.core.estimators.interval import clip, quantile, wilson

_NOTHING: Mapping[str, float] = {}


def estimate(
    strata: Mapping[str, Addends],
    shares: Mapping[str, float],
    *,
    unjudged_weight: Mapping[str, float] = _NOTHING,
    confidence: float = 0.95,
) -> Estimate | None:
    """Mean over all strata, or None when one of them has traffic and no score: nothing is known of it.

    Args:
        strata: Addends of judged scores, by stratum.
        shares: Traffic of each stratum, in any unit: requests seen, or the drawn weight.
        unjudged_weight: By stratum, weight of draws that should have been scored and were not.
        confidence: Two-sided level of the interval.

    >>> strata = {"a": Addends.of([(1.0, 0.1)] * 8 + [(0.0, 0.1)] * 2), "b": Addends.of([(0.5, 1.0)] * 40)}
    >>> found = estimate(strata, {"a": 300, "b": 100})
    >>> round(found.value, 4), found.n                                    # .75 * .8 + .25 * .5
    (0.725, 50)
    >>> estimate(strata, {"a": 300, "b": 100, "c": 1}) is None
    True
    """
    whole = math.fsum(shares.values())
    known: list[tuple[float, Addends, Estimate]] = []
    for name, share in shares.items():
        if share > 0.0:
            addends, missed = strata.get(name, Addends()), unjudged_weight.get(name, 0.0)
            found = hajek.estimate(addends, unjudged_weight=missed, confidence=confidence)
            if found is None:
                return None
            known.append((share / whole, addends, found))
    if not known:
        return None
    value = _mean(known, "value")
    effective = 1.0 / math.fsum(share * share / each.n_eff for share, _, each in known)
    spread = math.fsum(share * share * _variance(addends, each, value) for share, addends, each in known)
    trials = value * (1.0 - value) / spread if spread > 0.0 else effective
    low, high = wilson(value, trials, quantile(confidence, effective - 1.0))
    return Estimate(
        value=value,
        low=low,
        high=high,
        n=sum(each.n for _, _, each in known),
        n_eff=effective,
        coverage=_mean(known, "coverage"),
        bound_low=_mean(known, "bound_low"),
        bound_high=_mean(known, "bound_high"),
        interval="wilson",
    )


def _variance(addends: Addends, found: Estimate, whole: float) -> float:
    """Variance of a stratum's mean; where it shows no spread because it is at an end, that of a mean just beside."""
    mean = found.value
    if mean in {0.0, 1.0}:
        mean = (mean * found.n_eff + 2.0 * whole) / (found.n_eff + 2.0)
    return mean * (1.0 - mean) / hajek.trials(addends, found.value, found.n_eff)


def _mean(known: list[tuple[float, Addends, Estimate]], attribute: str) -> float:
    return clip(math.fsum(share * getattr(each, attribute) for share, _, each in known))
