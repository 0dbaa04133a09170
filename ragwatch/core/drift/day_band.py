"""Day band: where a mean lies today, as a band that holds at every look.

A confidence sequence (see `bands`) is about a mean that stays the same while it runs. So it begins anew with each day
(UTC), and on a day whose mean moves: when the mean of its own scores lies outside of the band, the scores of now are
not those from which the band was drawn. That band has done its work, and the next score begins another one.

Answers of an earlier day that are judged late count to the day on which they are judged: which answers come late is not
up to their score, but leaving scores out would be a choice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ragwatch.core.drift import bands
from ragwatch.core.drift.bands import HedgedBand

DAY = 86400.0


@dataclass(frozen=True, slots=True)
class DayBand:
    """The band that runs.

    Attributes:
        band: The confidence sequence so far.
        since: When its first answer was given, in seconds since the epoch; None before.
    """

    band: HedgedBand
    since: float | None = None

    @property
    def mean(self) -> float | None:
        """Weighted mean of its scores; None before the first."""
        spread = self.band.spread
        return spread.wx / spread.w if spread.n else None

    def after(self, at: float, score: float, weight: float = 1.0) -> DayBand:
        """The band after one more score.

        >>> band = DayBand(Hedged()).after(0.0, 1.0).after(60.0, 0.5)
        >>> band.mean, band.after(DAY + 1.0, 0.0).mean, band.after(DAY + 1.0, 0.0).since
        (0.75, 0.0, 86401.0)
        """
        if self.since is None or at // DAY > self.since // DAY:
            return DayBand(self._fresh.after(score, weight), at)
        found = replace(self, band=self.band.after(score, weight))
        mean = found.mean
        moved = mean is not None and not found.band.low <= mean <= found.band.high
        return DayBand(self._fresh) if moved else found

    @property
    def _fresh(self) -> HedgedBand:
        return HedgedBand(self.band.risk, self.band.heaviest)


def to_dict(found: DayBand) -> dict[str, Any]:
    """The band as plain values, to be kept as JSON."""
    return {"since": found.since, "band": bands.to_dict(found.band)}


def from_dict(fresh: DayBand, kept: Mapping[str, Any]) -> DayBand:
    """The band that `to_dict` gave; `fresh` where it was for another risk or other weights.

    Raises:
        KeyError: Something is missing.
        TypeError: Something does not belong.
        ValueError: A number is none.
    """
    band = bands.from_dict(kept["band"])
    if not isinstance(band, HedgedBand) or (band.risk, band.heaviest) != (fresh.band.risk, fresh.band.heaviest):
        return fresh
    return DayBand(band, None if kept["since"] is None else float(kept["since"]))
