"""Bands: confidence sequences, which may be looked at after every score. They hold at all times at once.

A 95 % interval watched from 30 to 2,000 scores misses the truth at some time in half of all runs; these do in 5 % at
most. Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting" (JRSS-B 2024).

Both rest on z = (w / w_max) (x - m), which lies in [-1, 1] and has mean 0 at the traffic's mean m, with w = 1 /
inclusion probability. A weight above `heaviest` counts as `heaviest`. How much is bet on a score, l, depends on those
before it only: l = sqrt(2 ln(2/a) / (v t ln(1 + t))), cut off at 1/2 (of what m allows), where v is the variance of z
so far. The band is for a mean that stays the same while the band runs: begin a new one with every window.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_CUT = 0.5
_STEPS = 200


@dataclass(frozen=True, slots=True)
class RunningVariance:
    """Running variance of z, so that each score is bet on without having been seen.

    Attributes:
        n: Scores so far.
        w: Sum of w / heaviest.
        wx: Sum of w / heaviest * x.
        squares: Sum of squared z, each about the mean as it then was.
    """

    n: int = 0
    w: float = 0.0
    wx: float = 0.0
    squares: float = 0.0

    def bet(self, risk: float) -> float:
        """The size of the next bet, before any cut.

        >>> round(Spread().bet(0.05), 4)                                      # sqrt(2 ln 40 / (1/4 ln 2))
        6.525
        """
        variance = (0.25 + self.squares) / (self.n + 1)
        turn = self.n + 1
        return math.sqrt(2.0 * math.log(2.0 / risk) / (variance * turn * math.log1p(turn)))

    def after(self, share: float, score: float) -> RunningVariance:
        """With one more score; a score of 1/2 is there from the start.

        >>> Spread().after(1.0, 1.0)                                     # mean (.5 + 1) / 2 = .75, square (1 - .75)^2
        Spread(n=1, w=1.0, wx=1.0, squares=0.0625)
        """
        w, wx = self.w + share, self.wx + share * score
        mean = (0.5 + wx) / (1.0 + w)
        return RunningVariance(self.n + 1, w, wx, self.squares + (share * (score - mean)) ** 2)


@dataclass(frozen=True, slots=True)
class BernsteinBand:
    """Empirical-Bernstein confidence sequence: seven sums, ends in closed form. Wider than `Betting` by a half or more.

    m is too low when sum(l z) - sum(psi(l) z^2) >= ln(2 / risk) with psi(l) = -ln(1 - l) - l (Fan, Grama and Liu 2015):
    a quadratic in m, for either end. Squares are taken about m, not about the mean so far, because with unequal
    weights only m is known to be the middle.

    Attributes:
        risk: 1 - confidence.
        heaviest: Largest weight.
        low: Highest lower end so far.
        high: Lowest upper end so far.
        spread: What sizes the next bet.
        sums: Sums of l u, l u x, psi u^2, psi u^2 x and psi u^2 x^2, with u = w / heaviest.
    """

    risk: float = 0.05
    heaviest: float = 1.0
    low: float = 0.0
    high: float = 1.0
    spread: RunningVariance = RunningVariance()
    sums: tuple[float, float, float, float, float] = (0.0, 0.0, 0.0, 0.0, 0.0)

    def after(self, score: float, weight: float = 1.0) -> BernsteinBand:
        """The band after one more score.

        >>> band = Bernstein()
        >>> for _ in range(100):
        ...     band = band.after(1.0)
        >>> round(band.low, 2), band.high
        (0.92, 1.0)
        """
        share = min(1.0, weight / self.heaviest)
        bet = min(_CUT, self.spread.bet(self.risk))
        psi = (-math.log1p(-bet) - bet) * share * share
        more = (bet * share, bet * share * score, psi, psi * score, psi * score * score)
        a, b, c, d, e = (one + other for one, other in zip(self.sums, more, strict=True))
        limit = math.log(2.0 / self.risk)
        return BernsteinBand(
            self.risk,
            self.heaviest,
            max(self.low, _end(a, b, (c, d, e), limit)),
            min(self.high, 1.0 - _end(a, a - b, (c, c - d, c - 2.0 * d + e), limit)),
            self.spread.after(share, score),
            (a, b, c, d, e),
        )


def _end(bets: float, scored: float, squares: tuple[float, float, float], limit: float) -> float:
    """The m up to which (scored - m bets) - (c2 - 2 m c1 + m^2 c0) >= limit; 0 where none is."""
    c0, c1, c2 = squares
    slope, rest = bets - 2.0 * c1, scored - c2 - limit
    if rest <= 0.0:
        return 0.0
    return 2.0 * rest / (slope + math.sqrt(slope * slope + 4.0 * c0 * rest))


@dataclass(frozen=True, slots=True)
class HedgedBand:
    """Hedged betting confidence sequence on a grid of 200 means: the band to draw.

    Every m that is still possible is played against: one gambler bets that the mean is higher, with capital
    prod(1 + l z) and l <= 1 / (2 m), one that it is lower, with l <= 1 / (2 (1 - m)). m is out for good when either
    holds 2 / risk. What is out is played no more, so that a narrow band costs little.

    Attributes:
        risk: 1 - confidence.
        heaviest: Largest weight.
        first: Lowest grid point still possible.
        up: Log capital of those who bet on higher, for the points still possible, lowest first.
        down: Log capital of those who bet on lower.
        spread: What sizes the next bet.
    """

    risk: float = 0.05
    heaviest: float = 1.0
    first: int = 0
    up: tuple[float, ...] = (0.0,) * (_STEPS + 1)
    down: tuple[float, ...] = (0.0,) * (_STEPS + 1)
    spread: RunningVariance = RunningVariance()

    @property
    def low(self) -> float:
        """Lower end: the last grid point that is out."""
        return max(0, self.first - 1) / _STEPS

    @property
    def high(self) -> float:
        """Upper end: the next grid point that is out."""
        return min(_STEPS, self.first + len(self.up)) / _STEPS

    def after(self, score: float, weight: float = 1.0) -> HedgedBand:
        """The band after one more score.

        >>> band = Hedged()
        >>> for _ in range(100):
        ...     band = band.after(1.0)
        >>> band.low, band.high
        (0.93, 1.0)
        """
        share = min(1.0, weight / self.heaviest)
        bet = self.spread.bet(self.risk)
        up, down = [], []
        for index, (high, low) in enumerate(zip(self.up, self.down, strict=True), start=self.first):
            mean = index / _STEPS
            z = share * (score - mean)
            up.append(high + math.log1p(min(bet, _CUT / mean if mean else bet) * z))
            down.append(low + math.log1p(-min(bet, _CUT / (1.0 - mean) if mean < 1.0 else bet) * z))
        return self._cut(up, down, self.spread.after(share, score))

    def _cut(self, up: list[float], down: list[float], spread: RunningVariance) -> HedgedBand:
        """Without the means that are out. Should all be, the truth moved, and the likeliest one stays."""
        limit = math.log(2.0 / self.risk)
        kept = [index for index in range(len(up)) if max(up[index], down[index]) < limit]
        if not kept:
            kept = [min(range(len(up)), key=lambda index: max(up[index], down[index]))]
        first, last = kept[0], kept[-1] + 1
        return HedgedBand(
            self.risk, self.heaviest, self.first + first, tuple(up[first:last]), tuple(down[first:last]), spread
        )


def to_dict(band: BernsteinBand | HedgedBand) -> dict[str, Any]:
    """The band as plain values, to be kept as JSON.

    >>> band = Bernstein().after(1.0).after(0.5)
    >>> from_dict(to_dict(band)) == band
    True
    """
    spread = [band.spread.n, band.spread.w, band.spread.wx, band.spread.squares]
    both = {"risk": band.risk, "heaviest": band.heaviest, "spread": spread}
    if isinstance(band, BernsteinBand):
        return {**both, "kind": "bernstein", "low": band.low, "high": band.high, "sums": list(band.sums)}
    return {**both, "kind": "hedged", "first": band.first, "up": list(band.up), "down": list(band.down)}


def from_dict(kept: Mapping[str, Any]) -> BernsteinBand | HedgedBand:
    """The band that `to_dict` gave.

    Raises:
        KeyError: Something is missing.
        TypeError: Something does not belong.
        ValueError: A number is none.
    """
    n, w, wx, squares = kept["spread"]
    risk, heaviest, spread = float(kept["risk"]), float(kept["heaviest"]), RunningVariance(int(n), w, wx, squares)
    if kept["kind"] == "bernstein":
        a, b, c, d, e = map(float, kept["sums"])
        return BernsteinBand(risk, heaviest, float(kept["low"]), float(kept["high"]), spread, (a, b, c, d, e))
    up, down = tuple(map(float, kept["up"])), tuple(map(float, kept["down"]))
    return HedgedBand(risk, heaviest, int(kept["first"]), up, down, spread)
