"""Confidence sequences for a mean: intervals that are valid after every score, at all times at once.

A 95 % confidence interval that is checked at every score from 30 to 2,000 misses the true mean at some time in half of
all runs. A 95 % confidence sequence misses it in at most 5 %. Source: Waudby-Smith and Ramdas, "Estimating means of
bounded random variables by betting" (JRSS-B 2024).

With m the mean of the traffic and w = 1 / inclusion probability, z = (w / w_max) (x - m) lies in [-1, 1] and has mean
0. A weight above `max_weight` counts as `max_weight`. The size l of the bet on a score depends only on earlier scores:
l = sqrt(2 ln(2/a) / (v t ln(1 + t))), where v is the running variance of z, cut off at 1/2 of what m allows. A
confidence sequence assumes a constant mean: start a new one for every period.

The band of a day: a confidence sequence restarts with each day (UTC), and when the mean of its own scores has left the
band: then the current scores do not come from what narrowed it. Answers that are judged late count to the day of
judging: which are late does not depend on their scores, and dropping them would be a selection.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

_MAX_BET = 0.5
_STEPS = 200
_KIND = "hedged"


class RunningVariance(NamedTuple):
    """Running variance of z, from which the size of the next bet is computed."""

    n: int = 0
    w: float = 0.0  # sum of w / max_weight
    wx: float = 0.0  # sum of w / max_weight * x
    squares: float = 0.0  # sum of squared z, each about the running mean at that score

    def bet(self, risk: float) -> float:
        """Return the size of the next bet, before it is cut off."""
        variance = (0.25 + self.squares) / (self.n + 1)
        turn = self.n + 1
        return math.sqrt(2.0 * math.log(2.0 / risk) / (variance * turn * math.log1p(turn)))

    def after(self, share: float, score: float) -> RunningVariance:
        """Return the variance with one more score added; it starts with a prior score of 1/2."""
        w, wx = self.w + share, self.wx + share * score
        mean = (0.5 + wx) / (1.0 + w)
        return RunningVariance(self.n + 1, w, wx, self.squares + (share * (score - mean)) ** 2)


class HedgedBand(NamedTuple):
    """Hedged betting confidence sequence, evaluated on a grid of 200 means.

    For every grid point m that is still possible, one gambler bets that the true mean is higher, with capital
    prod(1 + l z) and l <= 1 / (2 m), and another that it is lower, with l <= 1 / (2 (1 - m)). A point is excluded for
    good when the capital of either reaches 2 / risk. Excluded points are no longer computed, so the cost falls as the
    band narrows.
    """

    risk: float = 0.05
    max_weight: float = 1.0
    first: int = 0
    up: tuple[float, ...] = (0.0,) * (_STEPS + 1)  # log capital of the bets on a higher mean, by possible point
    down: tuple[float, ...] = (0.0,) * (_STEPS + 1)  # log capital of the bets on a lower mean
    spread: RunningVariance = RunningVariance()

    @property
    def low(self) -> float:
        """Lower end: the highest excluded grid point below the band."""
        return max(0, self.first - 1) / _STEPS

    @property
    def high(self) -> float:
        """Upper end: the lowest excluded grid point above the band."""
        return min(_STEPS, self.first + len(self.up)) / _STEPS

    def after(self, score: float, weight: float = 1.0) -> HedgedBand:
        """Return the band after one more score.

        >>> band = HedgedBand()
        >>> for _ in range(100):
        ...     band = band.after(1.0)
        >>> band.low, band.high
        (0.93, 1.0)
        """
        share = min(1.0, weight / self.max_weight)
        bet = self.spread.bet(self.risk)
        up, down = [], []
        for index, (high, low) in enumerate(zip(self.up, self.down, strict=True), start=self.first):
            mean = index / _STEPS
            z = share * (score - mean)
            up.append(high + math.log1p(min(bet, _MAX_BET / mean if mean else bet) * z))
            down.append(low + math.log1p(-min(bet, _MAX_BET / (1.0 - mean) if mean < 1.0 else bet) * z))
        limit = math.log(2.0 / self.risk)
        possible = [index for index in range(len(up)) if max(up[index], down[index]) < limit]
        if not possible:  # the mean has moved: the point with the least evidence against it remains
            possible = [min(range(len(up)), key=lambda index: max(up[index], down[index]))]
        first, end = possible[0], possible[-1] + 1  # with the points between two that remain: the band is one interval
        spread = self.spread.after(share, score)
        kept_up, kept_down = tuple(up[first:end]), tuple(down[first:end])
        return self._replace(first=self.first + first, up=kept_up, down=kept_down, spread=spread)


DAY = 86400.0


class DayBand(NamedTuple):
    """The band of the current day."""

    band: HedgedBand
    since: float | None = None

    @property
    def mean(self) -> float | None:
        """Weighted mean of its scores; None before the first."""
        spread = self.band.spread
        return spread.wx / spread.w if spread.n else None

    def after(self, at: float, score: float, weight: float = 1.0) -> DayBand:
        """Return the band after one more score."""
        if self.since is None or at // DAY > self.since // DAY:
            return DayBand(self._fresh.after(score, weight), at)
        extended = self._replace(band=self.band.after(score, weight))
        mean = extended.mean
        moved = mean is not None and not extended.band.low <= mean <= extended.band.high
        return DayBand(self._fresh) if moved else extended

    @property
    def _fresh(self) -> HedgedBand:
        return HedgedBand(self.band.risk, self.band.max_weight)


def to_dict(day_band: DayBand) -> dict[str, Any]:
    """Return the band as plain values for JSON."""
    band = day_band.band
    stored = {
        "risk": band.risk,
        "heaviest": band.max_weight,
        "spread": band.spread,
        "kind": _KIND,
        "first": band.first,
        "up": band.up,
        "down": band.down,
    }
    return {"since": day_band.since, "band": stored}


def from_dict(fresh: DayBand, stored: Mapping[str, Any]) -> DayBand:
    """Return what `to_dict` stored, `fresh` if of another design; KeyError, TypeError or ValueError if none."""
    band = stored["band"]
    if band["kind"] != _KIND:
        raise ValueError(f"a band of kind {band['kind']!r} instead of {_KIND!r}")
    design = float(band["risk"]), float(band["heaviest"])
    up, down = (tuple(map(float, band[name])) for name in ("up", "down"))
    n, w, wx, squares = band["spread"]
    spread = RunningVariance(int(n), w, wx, squares)
    restored = HedgedBand(*design, first=int(band["first"]), up=up, down=down, spread=spread)
    if design != (fresh.band.risk, fresh.band.max_weight):
        return fresh
    return DayBand(restored, None if stored["since"] is None else float(stored["since"]))
