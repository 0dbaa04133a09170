"""Stratified and post-stratified means: each stratum by itself, put together by its known share of the traffic.

value = sum_h W_h mean_h, with W_h the share of stratum h (a route, a label) in all traffic, which is known exactly
because every request is counted, drawn or not. That the strata were drawn at different rates, or more of one by
chance, then adds no error (Saerndal, Swensson and Wretman 1992, section 7.6).

The interval is the score interval of `ragwatch.core.estimators.score`, which asks for every mean of the whole which
means of the strata are likeliest: a stratum that showed no failure keeps an honest width.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from ragwatch.core.estimate import Addends, Estimate
from ragwatch.core.estimators import hajek, score
from ragwatch.core.estimators.interval import clip

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
    low, high = score.interval([(share, score.StratumSums.of(addends)) for share, addends, _ in known], confidence)
    return Estimate(
        value=_mean(known, "value"),
        low=low,
        high=high,
        n=sum(each.n for _, _, each in known),
        n_eff=1.0 / math.fsum(share * share / each.n_eff for share, _, each in known),
        coverage=_mean(known, "coverage"),
        bound_low=_mean(known, "bound_low"),
        bound_high=_mean(known, "bound_high"),
        interval=score.NAME,
    )


def _mean(known: list[tuple[float, Addends, Estimate]], attribute: str) -> float:
    return clip(math.fsum(share * getattr(each, attribute) for share, _, each in known))
