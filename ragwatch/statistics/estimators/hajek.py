"""Hajek estimator: a self-normalised mean over unequal inclusion probabilities.

mu = sum(w x) / sum(w) with w = 1/p over judged scores (Hajek 1971). n_eff = (sum w)^2 / sum(w^2) is the effective
sample size of Kish (1965). The interval is the score interval of `ragwatch.statistics.estimators.score`: it lies in
[0, 1], is asymmetric near the ends, and keeps a valid width if all scores are equal. Unjudged draws give the
worst-case bounds of Manski (1989).
"""

from collections.abc import Hashable

from ragwatch.model.estimate import Addends, Estimate
from ragwatch.statistics.estimators import score
from ragwatch.statistics.estimators.interval import clip as _clip

Interval = tuple[float, float, float, float]
"""Mean, lower end, upper end and n_eff."""


def estimate(addends: Addends, *, unjudged_weight: float = 0.0, confidence: float = 0.95) -> Estimate | None:
    """Return the mean of the scores, if any; `unjudged_weight` is that of draws that should have been scored."""
    return None if addends.n == 0 else from_interval(interval(addends, confidence), addends, unjudged_weight)


def from_interval(figures: Interval, addends: Addends, unjudged_weight: float) -> Estimate:
    """Return the estimate with a given interval, the expensive part, which callers may cache."""
    mean, low, high, n_eff = figures
    drawn = addends.w + unjudged_weight
    return Estimate(
        value=mean,
        low=low,
        high=high,
        n=addends.n,
        n_eff=n_eff,
        coverage=_clip(addends.w / drawn),
        bound_low=_clip(addends.wx / drawn),
        bound_high=_clip((addends.wx + unjudged_weight) / drawn),
        interval=score.NAME,
    )


def interval(addends: Addends, confidence: float = 0.95) -> Interval:
    """Return mean, lower end, upper end and n_eff of the scores in `addends`, of which there must be at least one."""
    moments = score.SampleMoments.of(addends)
    low, high = score.interval(moments, confidence)
    return moments.mean, low, high, moments.n_eff


class IntervalCache:
    """Intervals (two-sided) of sums, by what they are about; computed again when the sums have changed."""

    def __init__(self, confidence: float) -> None:
        self._confidence = confidence
        self._known: dict[Hashable, tuple[Addends, Interval]] = {}

    def of(self, place: Hashable, addends: Addends) -> Interval:
        """The interval of the sums of a place."""
        known = self._known.get(place)
        if known is None or known[0] != addends:
            known = self._known[place] = (addends, interval(addends, self._confidence))
        return known[1]
