"""Confidence sequence of one day: the range of today's mean, valid after every score.

A confidence sequence (see `bands`) assumes a constant mean. It therefore restarts with each day (UTC), and when the
mean of its own scores has left the band: then the current scores do not come from what narrowed it.

Answers that are judged late count to the day of judging: which are late does not depend on their scores, and dropping
them would be a selection.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypedDict

from ragwatch.core.drift import bands
from ragwatch.core.drift.bands import BandRecord, HedgedBand

DAY = 86400.0


@dataclass(frozen=True, slots=True)
class DayBand:
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
        extended = replace(self, band=self.band.after(score, weight))
        mean = extended.mean
        moved = mean is not None and not extended.band.low <= mean <= extended.band.high
        return DayBand(self._fresh) if moved else extended

    @property
    def _fresh(self) -> HedgedBand:
        return HedgedBand(self.band.risk, self.band.max_weight)


class DayBandRecord(TypedDict):
    """The band of a day as JSON values."""

    since: float | None
    band: BandRecord


def to_dict(day_band: DayBand) -> DayBandRecord:
    """Return the band as plain values for JSON."""
    return {"since": day_band.since, "band": bands.to_dict(day_band.band)}


def from_dict(fresh: DayBand, stored: DayBandRecord) -> DayBand:
    """Return the band that `to_dict` stored, or `fresh` if it was for another confidence or largest weight.

    KeyError, TypeError and ValueError tell that it is none, or is of another kind.
    """
    band = bands.from_dict(stored["band"])
    if (band.risk, band.max_weight) != (fresh.band.risk, fresh.band.max_weight):
        return fresh
    return DayBand(band, None if stored["since"] is None else float(stored["since"]))
