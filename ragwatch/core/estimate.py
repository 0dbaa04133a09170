"""Estimate: a number about a population, with its interval; and the addends it is made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import reduce
from operator import add, attrgetter
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Addends:
    """Sums from which a weighted mean, its standard error and its interval follow. They add up over time and replicas.

    Attributes:
        n: Number of scores.
        w: Sum of weights, w = 1 / inclusion probability.
        wx: Sum of w * x.
        w2: Sum of w^2.
        w2x: Sum of w^2 * x.
        w2x2: Sum of w^2 * x^2.
        w3: Sum of w^3, which tells how lopsided the mean is; None where it was not kept.
        w4: Sum of w^4, which tells how well its variance is known; None where it was not kept.
    """

    n: int = 0
    w: float = 0.0
    wx: float = 0.0
    w2: float = 0.0
    w2x: float = 0.0
    w2x2: float = 0.0
    w3: float | None = None
    w4: float | None = None

    @classmethod
    def of(cls, pairs: Iterable[tuple[float, float]]) -> Addends:
        """Addends of (score, inclusion probability) pairs.

        >>> Addends.of([(1.0, 0.5), (0.0, 1.0)])
        Addends(n=2, w=3.0, wx=2.0, w2=5.0, w2x=4.0, w2x2=4.0, w3=9.0, w4=17.0)
        """
        total = cls()
        for score, probability in pairs:
            total = total + cls.one(score, probability)
        return total

    @classmethod
    def total(cls, parts: Sequence[Addends]) -> Addends:
        """What `parts` come to, added up in their order; an empty part adds nothing.

        >>> Addends.total([Addends.one(1.0, 0.5), Addends(), Addends.one(0.0, 1.0)])
        Addends(n=2, w=3.0, wx=2.0, w2=5.0, w2x=4.0, w2x2=4.0, w3=9.0, w4=17.0)
        >>> Addends.total([])
        Addends(n=0, w=0.0, wx=0.0, w2=0.0, w2x=0.0, w2x2=0.0, w3=None, w4=None)
        """
        some = [part for part in parts if part.n]
        if not some:
            return cls()
        # Column by column: many times as fast as part by part.
        n, w, wx, w2, w2x, w2x2, w3, w4 = zip(*map(_COLUMNS, some), strict=True)
        known = [None if None in column else _added(column) for column in (w3, w4)]
        return cls(sum(n), *map(_added, (w, wx, w2, w2x, w2x2)), *known)

    @classmethod
    def one(cls, score: float, probability: float) -> Addends:
        """Addends of a single score.

        >>> Addends.one(0.5, 0.5)
        Addends(n=1, w=2.0, wx=1.0, w2=4.0, w2x=2.0, w2x2=1.0, w3=8.0, w4=16.0)
        """
        weight = 1.0 / probability
        square = weight * weight
        sums = (weight, weight * score, square, square * score, square * score * score)
        return cls(1, *sums, square * weight, square * square)

    def __add__(self, other: Addends) -> Addends:
        if not self.n or not other.n:
            return self if self.n else other
        return Addends(
            self.n + other.n,
            self.w + other.w,
            self.wx + other.wx,
            self.w2 + other.w2,
            self.w2x + other.w2x,
            self.w2x2 + other.w2x2,
            None if self.w3 is None or other.w3 is None else self.w3 + other.w3,
            None if self.w4 is None or other.w4 is None else self.w4 + other.w4,
        )


def _added(column: Iterable[float]) -> float:
    """The sum in order, as `+` rounds it: since Python 3.12 the built-in `sum` compensates, and earlier it does not."""
    return reduce(add, column)


_COLUMNS = attrgetter(*(each.name for each in fields(Addends)))


@dataclass(frozen=True, slots=True)
class Estimate:
    """What is known of the mean score of a population.

    Attributes:
        value: The estimate itself, in [0, 1].
        low: Lower end of the confidence interval.
        high: Upper end of the confidence interval.
        n: Scores behind it.
        n_eff: Kish's effective number, (sum w)^2 / sum w^2.
        coverage: Judged share of the drawn weight, in [0, 1].
        bound_low: Worst case: every draw that stayed unjudged scored 0 (Manski).
        bound_high: Worst case: every draw that stayed unjudged scored 1.
        interval: Name of the interval used.
    """

    value: float
    low: float
    high: float
    n: int
    n_eff: float
    coverage: float
    bound_low: float
    bound_high: float
    interval: str


class Estimator(Protocol):
    """Addends of judged scores, and the weight that stayed unjudged, to an Estimate."""

    def __call__(self, addends: Addends, *, unjudged_weight: float, confidence: float) -> Estimate | None:
        """The estimate, or None when no score stands behind it."""
        ...
