"""Score interval of a weighted mean: every mean p that a score test does not reject.

The test uses the variance that the estimate would have *at p* (Wilson 1927), not the observed one: near 0 and 1 the
observed variance is too small just when the estimate is too high or too low. All inputs are sums (`SampleMoments`):

- The variance of a score is c p (1 - p), where c <= 1 is the observed dispersion: 1 for yes/no scores, less for finer
  ones, more than observed if the scores hardly differ.
- The variance of the mean needs the mean over w^2. It differs from the mean over w if the traffic with a low inclusion
  probability is better or worse than the rest. The difference used is the observed one minus the part that the
  deviation of the estimate from p explains: both deviate together, with regression coefficient
  sum(w^3) sum(w) / sum(w^2)^2. A difference that chance explains is shrunk away (1 - 2 / z^2, positive part: James and
  Stein 1961).
- The skewness of the estimate follows from its third moment, which is that of a Beta distribution with the same mean
  and variance; if c is estimated, it covaries with the estimate (Hall 1992, section 2.6). Tails come from a Pearson III
  curve, which for rare failures is that of Fay and Feuer (1997), by the cube root of Wilson and Hilferty (1931).
- c is estimated from few rows with a high weight: Student's t, with sum(w^2)^2 / sum(w^4) degrees of freedom
  (Satterthwaite 1946), more the nearer c is to 1, where nothing is estimated.

Which values count as at least as far away as the estimate is a mix of Wilson's choice (distance on both sides) and that
of equal tails: see `_ScoreTest`.

With fewer than MIN_EFFECTIVE effective failures, their distribution over rows with low and high weights is unknown; the
interval is then at most as wide as the Clopper-Pearson interval at n_eff. Below MIN_EFFECTIVE effective answers it
equals that interval, because so few do not show the dispersion of the scores. Measured coverage: docs/statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from ragwatch.model.estimate import Addends
from ragwatch.statistics.estimators.interval import clip, clopper_pearson, quantile

NAME = "score"
WIDTH = 2.0**-32
_MAX_SLOW_STEPS = 2
MIN_EFFECTIVE = 5.0
_ERROR_SHARE = 0.2  # of the standard error of c is added to c: failures not yet seen may differ from those seen
_ALIKE = 0.01  # a smaller dispersion is that of scores that hardly differ
_MIN_SHARE = 0.25  # the mean over w^2 is taken to be at least this share of p
_ROUNDING = 1e-9  # what rounding may leave of the variance of equal scores
_MIN_VARIANCE = 1e-30  # a smaller variance is that of a mean at 0 or 1
_MIN_CHANCE = 1e-300


class MeanMoments(NamedTuple):
    """Central moments of a mean at some p: variance, third moment, and covariance with its estimated variance."""

    variance: float
    third: float
    joint: float


@dataclass(frozen=True, slots=True)
class SampleMoments:
    """What sums tell about the distribution of a weighted mean."""

    mean: float
    n_eff: float
    heavy: float
    dispersion: float  # c, variance of a score over mean (1 - mean), in (0, 1]
    cubes: float  # sum(w^3) / sum(w^2)^(3/2): skewness of the sum over that of one score
    pull: float  # regression coefficient of the deviation of `heavy` on that of `mean`
    rest: float  # residual variance of `heavy`, over the variance of one score
    degrees: float

    @classmethod
    def of(cls, addends: Addends) -> SampleMoments:
        """Compute the moments from sums over at least one score.

        If the sums of w^3 and w^4 are missing, those of gamma distributed weights are used.
        """
        n, w, w2 = addends.n, addends.w, addends.w2
        n_eff = w * w / w2
        effect = max(1.0, n / n_eff)
        third, fourth = (2.0 * effect - 1.0), (2.0 * effect - 1.0) * (3.0 * effect - 2.0)
        w3 = third * w2 * w / n if addends.w3 is None else addends.w3
        w4 = fourth * w2 * w2 / effect / n if addends.w4 is None else addends.w4
        pull = w3 * w / (w2 * w2)
        rest = w4 / (w2 * w2) - pull * w3 / (w2 * w)
        heavy = clip(addends.w2x / w2)
        return cls(
            mean=clip(addends.wx / w),
            n_eff=n_eff,
            heavy=heavy,
            dispersion=_dispersion(heavy, clip(addends.w2x2 / w2), n, n_eff),
            cubes=w3 / w2**1.5,
            pull=pull,
            rest=rest if rest > _ROUNDING * w4 / (w2 * w2) else 0.0,
            degrees=w2 * w2 / w4 - 1.0,
        )

    def at(self, p: float) -> MeanMoments:
        """Return the moments of the mean if the true mean were p."""
        c, heavy = self.dispersion, p + self._excess(p)
        spread = heavy * (1.0 - heavy)
        variance = (c * spread + (heavy - p) ** 2) / self.n_eff
        third = (1.0 - 2.0 * heavy) * spread * 2.0 * c * c / (1.0 + c) * self.cubes / self.n_eff**1.5
        return MeanMoments(variance, third, third * (1.0 - c) / 2.0)

    def _excess(self, p: float) -> float:
        """Return the difference of the mean over w^2 from p that chance does not explain."""
        if self.rest == 0.0:
            return 0.0
        excess = self.heavy - p - self.pull * (self.mean - p)
        chance = self.dispersion * p * (1.0 - p) * self.rest
        shrunk = excess - 2.0 * chance / excess if excess * excess > 2.0 * chance else 0.0
        if shrunk * (0.5 - p) < 0.0:  # less variance than at p itself
            limit = (1.0 - _MIN_SHARE) * min(p, 1.0 - p)
            return max(-limit, min(limit, shrunk))
        return clip(p + shrunk) - p


def _dispersion(mean: float, square: float, n: int, n_eff: float) -> float:
    """Return the variance of a score over mean (1 - mean), slightly more with few failures; 1 if there is no variance.

    Scores that hardly differ are like equal ones: they do not show how far a rare other one lies from them. Up to
    3 / n_eff of the answers may be of a kind that none of n_eff answers showed (rule of three: Hanley and Lippman-Hand
    1983), and it may lie at the far end. The more scores differ, the less of that is added: nothing from `_ALIKE` on.

    >>> round(_dispersion(0.5, 0.3, 1000, 1000.0), 3), _dispersion(0.5, 0.5, 10, 10.0), _dispersion(0.3, 0.09, 10, 10.0)
    (0.2, 1.0, 1.0)
    >>> [round(_dispersion(0.007, 0.00005, n, n), 2) for n in (20, 200, 2000)]
    [0.95, 0.67, 0.17]
    """
    bound = mean * (1.0 - mean)
    variance = square - mean * mean
    if bound <= _ROUNDING or variance <= _ROUNDING * bound:
        return 1.0
    ratio = min(1.0, variance / bound)
    observed = ratio + (1.0 - ratio) * _ERROR_SHARE * math.sqrt(ratio) / (1.0 + n * bound)
    unseen = min(1.0, 3.0 / n_eff) * max(0.0, 1.0 - ratio / _ALIKE)
    far = unseen * (1.0 - unseen) * max(mean, 1.0 - mean) ** 2
    return max(observed, (variance + far) / (bound + far))


def interval(moments: SampleMoments, confidence: float = 0.95) -> tuple[float, float]:
    """Return the lower and the upper end of the interval."""
    mean, n_eff = moments.mean, moments.n_eff
    if n_eff < MIN_EFFECTIVE * (1.0 - _ROUNDING):  # too few to show the dispersion of scores: as wide as for yes/no
        return clopper_pearson(mean, n_eff, confidence)
    test = _ScoreTest.of(moments, confidence)
    low, high = test.end(1.0), test.end(-1.0)
    if n_eff * min(mean, 1.0 - mean) < MIN_EFFECTIVE:
        exact = clopper_pearson(mean, n_eff, confidence)
        low, high = max(low, exact[0]), min(high, exact[1])
    return min(low, mean), max(high, mean)


@dataclass(frozen=True, slots=True)
class _ScoreTest:
    """Score test of a mean."""

    moments: SampleMoments
    confidence: float
    # by how much one more failure typically moves the estimate: sum(v^3) / sum(v^2), times dispersion, with v the
    # weights normalised to a sum of 1
    lump: float
    by_distance: float  # share of the error that is assigned by distance; the rest is split evenly between both tails

    @classmethod
    def of(cls, moments: SampleMoments, confidence: float) -> _ScoreTest:
        squares = 1.0 / moments.n_eff
        cubes = moments.cubes / moments.n_eff**1.5
        # Equal tails assign half of the error to either side. If one side is out of reach, the actual error is half of
        # that. Ordering by distance assigns all of it to the other side. The more weights differ, the farther one side
        # is out of reach: two thirds by distance with equal weights, nearly all with very unequal ones.
        return cls(
            moments=moments,
            confidence=confidence,
            lump=moments.dispersion * cubes / squares,
            by_distance=1.0 - 1.0 / (3.0 * max(1.0, cubes / squares**2) ** 4),
        )

    def end(self, sign: float) -> float:
        """Return the farthest mean that is not rejected: below the estimate with sign 1, above it with sign -1."""
        mean = self.moments.mean
        if (mean if sign > 0.0 else 1.0 - mean) <= _MIN_VARIANCE:
            return mean
        # Probabilities decrease like those of a normal variable: on this scale nearly linearly.
        limit = math.sqrt(-math.log(1.0 - self.confidence))

        def candidate(place: float) -> float:
            return _shrunk(mean, place) if sign > 0.0 else 1.0 - _shrunk(1.0 - mean, place)

        def height(place: float) -> float:
            return limit - math.sqrt(-math.log(min(1.0, max(self.chance(candidate(place)), _MIN_CHANCE))))

        return clip(candidate(crossing(height, limit)))

    def chance(self, p: float) -> float:
        """Return the probability of an estimate at least as far away if the true mean is p."""
        moments = self.moments
        variance, third, joint = moments.at(p)
        deviation = moments.mean - p
        if variance <= _MIN_VARIANCE:
            return float(abs(deviation) <= _ROUNDING)
        # A lump counts half on either side of its position (a continuity correction), if so few are expected that
        # nothing smooths them.
        lump = 0.5 * self.lump / (1.0 + moments.n_eff * min(p, 1.0 - p)) ** 2
        error = math.sqrt(variance)
        z = math.copysign(max(0.0, abs(deviation) - lump), deviation) / error + joint / error**3 / 2.0
        estimated = (variance * (1.0 - moments.dispersion)) ** 2 / max(moments.degrees, 3.0)
        if estimated > 0.0:
            z *= quantile(self.confidence, math.inf) / quantile(self.confidence, variance * variance / estimated)
        skewness = (third - 3.0 * joint) / error**3
        above, below = _tail(-_normal_score(abs(z), skewness)), _tail(_normal_score(-abs(z), skewness))
        near = 2.0 * (above if z > 0.0 else below)
        return self.by_distance * (above + below) + (1.0 - self.by_distance) * near


def _shrunk(mean: float, place: float) -> float:
    """Map a place in [0, 1) to a mean between `mean` (at 0) and 0: the p with (mean - p) / (p (1 - p)) = slope."""
    slope = place / (1.0 - place)
    return 2.0 * mean / (1.0 + slope + math.sqrt(max(0.0, (1.0 + slope) ** 2 - 4.0 * slope * mean)))


def _tail(z: float) -> float:
    """Return the probability that a normal variable is below z."""
    return 0.5 * math.erfc(-z / math.sqrt(2.0))


def _normal_score(x: float, skewness: float) -> float:
    """Return the normal score of a Pearson III variable of mean 0 and variance 1 (Wilson and Hilferty 1931)."""
    if abs(skewness) < 1e-5:
        return x
    inner = 1.0 + skewness * x / 2.0
    if inner <= 0.0:
        return math.copysign(math.inf, -skewness)
    return 6.0 / skewness * (math.cbrt(inner) - 1.0) + skewness / 6.0


def crossing(height: Callable[[float], float], start: float) -> float:
    """Return the largest evaluated place with height >= 0 before the crossing in (0, 1), at most WIDTH below it.

    Illinois variant of regula falsi (Dowell and Jarratt 1971), with a bisection step whenever two steps have not halved
    the bracket: a step or a flat stretch costs no more than bisection, others about a third. The height at 0 is
    `start`, above 0; that at 1 is taken to be below 0.
    """
    inside, outside, above, below = 0.0, 1.0, start, -math.inf
    slow, side = 0, 0.0
    while outside - inside > WIDTH:
        width = outside - inside
        if below == -math.inf or slow == _MAX_SLOW_STEPS:
            middle, slow = inside + width / 2.0, 0
        else:
            guess = inside + width * above / (above - below)
            middle = min(max(guess, inside + WIDTH / 2.0), outside - WIDTH / 2.0)
        value = height(middle)
        if value >= 0.0:
            inside, above = middle, value
            below /= 1.0 + (side > 0.0)  # the other end has not moved for two steps: it counts half
        else:
            outside, below = middle, value
            above /= 1.0 + (side < 0.0)
        side = math.copysign(1.0, value)
        slow = slow + 1 if outside - inside > width / 2.0 else 0
    return inside
