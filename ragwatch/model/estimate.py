"""Estimate of a mean with its interval, and the sums that it is computed from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import reduce
from operator import add, attrgetter


@dataclass(frozen=True, slots=True)
class Addends:
    """Sums over n scores x of weight w = 1 / inclusion probability, which add up over time and replicas.

    These are of w, w x, w^2, w^2 x, w^2 x^2, w^3 and w^4; the last two, for skewness and the precision of the variance,
    are None if they were not stored.
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
        """Return the sums over (score, inclusion probability) pairs."""
        total = cls()
        for score, probability in pairs:
            total = total + cls.one(score, probability)
        return total

    @classmethod
    def total(cls, parts: Sequence[Addends]) -> Addends:
        """Return the total of `parts`, added up in order; empty parts are skipped."""
        filled = [part for part in parts if part.n]
        if not filled:
            return cls()
        # Adding column by column is many times as fast as part by part.
        n, w, wx, w2, w2x, w2x2, w3, w4 = zip(*map(_COLUMNS, filled), strict=True)
        return cls(
            n=sum(n),
            w=_sum(w),
            wx=_sum(wx),
            w2=_sum(w2),
            w2x=_sum(w2x),
            w2x2=_sum(w2x2),
            w3=None if None in w3 else _sum(w3),
            w4=None if None in w4 else _sum(w4),
        )

    @classmethod
    def one(cls, score: float, probability: float) -> Addends:
        """Return the sums over a single score."""
        weight = 1.0 / probability
        square = weight * weight
        return cls(
            n=1,
            w=weight,
            wx=weight * score,
            w2=square,
            w2x=square * score,
            w2x2=square * score * score,
            w3=square * weight,
            w4=square * square,
        )

    def __add__(self, other: Addends) -> Addends:
        if not self.n or not other.n:
            return self if self.n else other
        return Addends(
            n=self.n + other.n,
            w=self.w + other.w,
            wx=self.wx + other.wx,
            w2=self.w2 + other.w2,
            w2x=self.w2x + other.w2x,
            w2x2=self.w2x2 + other.w2x2,
            w3=None if self.w3 is None or other.w3 is None else self.w3 + other.w3,
            w4=None if self.w4 is None or other.w4 is None else self.w4 + other.w4,
        )


def _sum(column: Iterable[float]) -> float:
    """Add numbers in order without compensation: the built-in `sum` compensates since Python 3.12, and not before."""
    return reduce(add, column)


_COLUMNS = attrgetter(*(field.name for field in fields(Addends)))


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate of the mean score of a population in [0, 1], with its interval, from n scores."""

    value: float
    low: float
    high: float
    n: int
    n_eff: float  # Kish's effective sample size, (sum w)^2 / sum w^2
    coverage: float
    bound_low: float  # worst case (Manski): the mean if every unjudged draw scored 0
    bound_high: float  # worst case (Manski): the mean if every unjudged draw scored 1
    interval: str
