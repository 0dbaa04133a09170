"""The score interval of a weighted mean: every mean p that the scores do not contradict.

Whether p is contradicted is asked with the variance that the estimate would have *at p* (Wilson 1927), not with the
one that was observed: near 0 and 1 the observed one is too small just when the estimate is too good. What is known of
a population comes from sums, its `StratumSums`:

- Scores scatter by c p (1 - p), where c <= 1 is the dispersion that was seen: 1 for yes/no, less for finer scores.
- The mean over w^2, which the variance needs, differs from the mean over w when the rarely drawn part of the traffic is
  the better or the worse one. It is what was observed less what the deviation of the estimate from p explains: the two
  deviate together, by the regression sum(w^3) sum(w) / sum(w^2)^2. A difference that chance explains is shrunk away
  (1 - 2 / z^2, positive part: James and Stein 1961).
- The estimate is lopsided by its third moment, which is that of a Beta with the same mean and variance; and where c is
  estimated, it deviates together with the estimate (Hall 1992, section 2.6). Tails come from a Pearson III
  curve, which for rare failures is that of Fay and Feuer (1997), by Wilson and Hilferty's (1931) cube root.
- c is estimated from few heavy rows: Student's t, with sum(w^2)^2 / sum(w^4) degrees of freedom (Satterthwaite 1946),
  more the nearer c is to 1, where nothing is estimated.

Strata have a mean each. For every p they take the means that are likeliest together (Miettinen and Nurminen 1985).
What is counted as at least as far off as the estimate is between Wilson's choice, distance on both sides, and that of
equal tails: see `_Whole`.

Where fewer than A_FEW effective failures were seen nobody can know yet how they are spread over light and heavy rows;
there the interval is not let wider than Clopper and Pearson's at n_eff. Below A_FEW effective answers it is theirs: so
few do not tell how little scores scatter. Figures: docs/statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ragwatch.core.estimate import Addends
from ragwatch.core.estimators.interval import clip, clopper_pearson, quantile
from ragwatch.core.estimators.root import crossing

NAME = "score"
A_FEW = 5.0
_UNSEEN = 0.2  # part of c's standard error that is added to it: the failure not seen yet is the one that is unlike
_LEAST_SHARE = 0.25  # of p that the mean over w^2 is taken for at least
_CRUMBS = 1e-9  # what rounding may leave of the variance of equal scores
_NOTHING = 1e-30  # a variance below it is that of a mean at 0 or 1
_NO_CHANCE = 1e-300


class MeanMoments(NamedTuple):
    """Central moments of a mean at some p: variance, third moment, and covariance with its estimated variance."""

    variance: float
    third: float
    joint: float


@dataclass(frozen=True, slots=True)
class StratumSums:
    """How the mean of one population scatters, as far as sums tell.

    Attributes:
        mean: The weighted mean.
        n_eff: Kish's effective number.
        heavy: Mean over w^2.
        dispersion: c, variance of a score over mean (1 - mean), in (0, 1].
        cubes: sum(w^3) / sum(w^2)^(3/2): skewness of the sum over that of one score.
        pull: By how much `heavy` deviates per deviation of `mean`.
        rest: Variance of `heavy` beyond that, over that of one score.
        degrees: Of freedom of the variance.
    """

    mean: float
    n_eff: float
    heavy: float
    dispersion: float
    cubes: float
    pull: float
    rest: float
    degrees: float

    @classmethod
    def of(cls, addends: Addends) -> StratumSums:
        """Of the scores behind `addends`, of which there must be one at least.

        Without the sums of w^3 and w^4 they are those of weights that scatter like a gamma variable.

        >>> found = Shape.of(Addends.of([(1.0, 0.5), (0.0, 1.0), (1.0, 1.0)]))        # w = 2, 1, 1: w^2 = 6, w^3 = 10
        >>> round(found.mean, 2), round(found.heavy, 3), round(found.n_eff, 3), round(found.pull, 3)
        (0.75, 0.833, 2.667, 1.111)
        >>> round(found.dispersion, 6)
        1.0
        """
        n, w, w2 = addends.n, addends.w, addends.w2
        n_eff = w * w / w2
        effect = max(1.0, n / n_eff)
        third, fourth = (2.0 * effect - 1.0), (2.0 * effect - 1.0) * (3.0 * effect - 2.0)
        cubed = third * w2 * w / n if addends.w3 is None else addends.w3
        fourths = fourth * w2 * w2 / effect / n if addends.w4 is None else addends.w4
        pull = cubed * w / (w2 * w2)
        rest = fourths / (w2 * w2) - pull * cubed / (w2 * w)
        heavy = clip(addends.w2x / w2)
        return cls(
            mean=clip(addends.wx / w),
            n_eff=n_eff,
            heavy=heavy,
            dispersion=_dispersion(heavy, clip(addends.w2x2 / w2), n),
            cubes=cubed / w2**1.5,
            pull=pull,
            rest=rest if rest > _CRUMBS * fourths / (w2 * w2) else 0.0,
            degrees=w2 * w2 / fourths - 1.0,
        )

    def at(self, p: float, tilted: float) -> MeanMoments:
        """Moments of the mean if the true one were p; `tilted` is the estimate less p.

        >>> Shape.of(Addends.of([(1.0, 1.0)] * 5 + [(0.0, 1.0)] * 5)).at(0.5, 0.0).variance
        0.025
        """
        c, heavy = self.dispersion, p + self._unlike(p, tilted)
        most = heavy * (1.0 - heavy)
        variance = (c * most + (heavy - p) ** 2) / self.n_eff
        third = (1.0 - 2.0 * heavy) * most * 2.0 * c * c / (1.0 + c) * self.cubes / self.n_eff**1.5
        return MeanMoments(variance, third, third * (1.0 - c) / 2.0)

    def _unlike(self, p: float, tilted: float) -> float:
        """By how much the mean over w^2 differs from p, beyond what chance explains."""
        if self.rest == 0.0:
            return 0.0
        found = self.heavy - p - self.pull * tilted
        chance = self.dispersion * p * (1.0 - p) * self.rest
        kept = found - 2.0 * chance / found if found * found > 2.0 * chance else 0.0
        if kept * (0.5 - p) < 0.0:  # less variance than at p itself
            room = (1.0 - _LEAST_SHARE) * min(p, 1.0 - p)
            return max(-room, min(room, kept))
        return clip(p + kept) - p

    def likeliest(self, price: float) -> float:
        """The mean that is likeliest when each unit of it costs `price`: (mean - q) / (q (1 - q)) = price c / n_eff.

        >>> some = Shape.of(Addends.of([(1.0, 1.0)] * 8 + [(0.0, 1.0)] * 2))
        >>> some.likeliest(0.0), round(some.likeliest(10.0), 3), round(some.likeliest(-10.0), 3)
        (0.8, 0.553, 0.894)
        """
        return self._below(self.mean, price) if price >= 0.0 else 1.0 - self._below(1.0 - self.mean, -price)

    def _below(self, mean: float, price: float) -> float:
        slope = price * self.dispersion / self.n_eff
        return 2.0 * mean / (1.0 + slope + math.sqrt(max(0.0, (1.0 + slope) ** 2 - 4.0 * slope * mean)))


def _dispersion(mean: float, square: float, n: int) -> float:
    """Variance of a score over mean (1 - mean), a little more where few failures were seen; 1 where there is none.

    >>> round(_dispersion(0.5, 0.3, 1000), 3), _dispersion(0.5, 0.5, 10), _dispersion(0.3, 0.09, 10)
    (0.2, 1.0, 1.0)
    """
    most = mean * (1.0 - mean)
    spread = square - mean * mean
    if most <= _CRUMBS or spread <= _CRUMBS * most:
        return 1.0
    found = min(1.0, spread / most)
    return found + (1.0 - found) * _UNSEEN * math.sqrt(found) / (1.0 + n * most)


def interval(parts: Sequence[tuple[float, StratumSums]], confidence: float = 0.95) -> tuple[float, float]:
    """Both ends for the mean over strata of (share, shape); shares sum to 1. One stratum is the plain mean.

    >>> nine_of_ten = Shape.of(Addends.of([(1.0, 1.0)] * 90 + [(0.0, 1.0)] * 10))
    >>> [round(end, 3) for end in interval([(1.0, nine_of_ten)])]
    [0.827, 0.946]
    """
    whole = _AllStrata.of(parts, confidence)
    if whole.n_eff < A_FEW:  # so few do not tell how little scores scatter: as wide as for yes and no
        return clopper_pearson(whole.mean, whole.n_eff, confidence)
    mean, low, high = whole.mean, whole.end(1.0), whole.end(-1.0)
    if whole.n_eff * min(mean, 1.0 - mean) < A_FEW:
        exact = clopper_pearson(mean, whole.n_eff, confidence)
        low, high = max(low, exact[0]), min(high, exact[1])
    return min(low, mean), max(high, mean)


@dataclass(frozen=True, slots=True)
class _AllStrata:
    """All strata together, and what is asked of them.

    Attributes:
        parts: Share and shape of each stratum.
        confidence: Two-sided level.
        mean: The estimate.
        n_eff: Kish's effective number: with v the weights normalised to a sum of 1, 1 / sum(v^2).
        lump: By how much one more failure moves the estimate, most likely: sum(v^3) / sum(v^2), times dispersion.
        by_distance: How much of the error goes to the side that it can come from; the rest is split evenly.
    """

    parts: tuple[tuple[float, StratumSums], ...]
    confidence: float
    mean: float
    n_eff: float
    lump: float
    by_distance: float

    @classmethod
    def of(cls, parts: Sequence[tuple[float, StratumSums]], confidence: float) -> _AllStrata:
        squares = [share * share / each.n_eff for share, each in parts]
        total = math.fsum(squares)
        cubes = math.fsum(share**3 * each.cubes / each.n_eff**1.5 for share, each in parts)
        scatter = math.fsum(one * each.dispersion for one, (_, each) in zip(squares, parts, strict=True)) / total
        # Equal tails promise half of the error on either side, and where one side is out of reach they keep twice what
        # they promise. Ordering by distance gives all of it to the other side. The more weights differ the farther the
        # one side is out of reach: two thirds by distance with equal weights, nearly all with very unequal ones.
        return cls(
            parts=tuple(parts),
            confidence=confidence,
            mean=clip(math.fsum(share * each.mean for share, each in parts)),
            n_eff=1.0 / total,
            lump=scatter * cubes / total,
            by_distance=1.0 - 1.0 / (3.0 * max(1.0, cubes / total**2) ** 4),
        )

    def end(self, sign: float) -> float:
        """The farthest mean that is not contradicted: below with sign 1, above with -1."""
        if (self.mean if sign > 0.0 else 1.0 - self.mean) <= _NOTHING:
            return self.mean
        unit = sign * max(each.n_eff / (share * each.dispersion) for share, each in self.parts)

        def means(place: float) -> list[float]:
            price = unit * place / (1.0 - place)
            return [each.likeliest(price * share) for share, each in self.parts]

        # Probabilities fall off like those of a normal variable: on this scale nearly along a line.
        least = math.sqrt(-math.log(1.0 - self.confidence))

        def room(place: float) -> float:
            found = means(place)
            return least - math.sqrt(-math.log(min(1.0, max(self.chance(self._mean(found), found), _NO_CHANCE))))

        return clip(self._mean(means(crossing(room, least))))

    def _mean(self, means: Sequence[float]) -> float:
        return math.fsum(share * p for (share, _), p in zip(self.parts, means, strict=True))

    def chance(self, tested: float, means: Sequence[float]) -> float:
        """Of an estimate so far off, if `tested` is the mean, and these are the means of the strata."""
        variance = third = joint = known = 0.0
        for (share, each), p in zip(self.parts, means, strict=True):
            found, square = each.at(p, each.mean - p), share * share
            variance += square * found.variance
            third += square * share * found.third
            joint += square * share * found.joint
            known += (square * found.variance * (1.0 - each.dispersion)) ** 2 / max(each.degrees, 3.0)
        away = self.mean - tested
        if variance <= _NOTHING:
            return float(abs(away) <= _CRUMBS)
        # A lump weighs half on either side of where it falls (a continuity correction), where so few are expected
        # that nothing smooths them.
        lump = 0.5 * self.lump / (1.0 + self.n_eff * min(tested, 1.0 - tested)) ** 2
        error = math.sqrt(variance)
        off = math.copysign(max(0.0, abs(away) - lump), away) / error + joint / error**3 / 2.0
        if known > 0.0:
            off *= quantile(self.confidence, math.inf) / quantile(self.confidence, variance * variance / known)
        skewness = (third - 3.0 * joint) / error**3
        above, below = _tail(-_straight(abs(off), skewness)), _tail(_straight(-abs(off), skewness))
        near = 2.0 * (above if off > 0.0 else below)
        return self.by_distance * (above + below) + (1.0 - self.by_distance) * near


def _tail(z: float) -> float:
    """Share of a normal variable below z.

    >>> round(_tail(-1.96), 3)
    0.025
    """
    return 0.5 * math.erfc(-z / math.sqrt(2.0))


def _straight(x: float, skewness: float) -> float:
    """The normal score of a Pearson III variable of mean 0 and variance 1 (Wilson and Hilferty 1931).

    >>> round(_straight(1.96, 0.0), 2), round(_straight(2.0, 0.5), 2), _straight(-2.0, 1.5)
    (1.96, 1.82, -inf)
    """
    if abs(skewness) < 1e-5:
        return x
    inner = 1.0 + skewness * x / 2.0
    if inner <= 0.0:
        return math.copysign(math.inf, -skewness)
    return 6.0 / skewness * (math.cbrt(inner) - 1.0) + skewness / 6.0
