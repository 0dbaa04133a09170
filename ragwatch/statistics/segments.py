"""Segments: values of metadata keys by which estimates are split, such as a release or a tier of customers.

Keys and values come from the configuration, never from a log, so the number of segments is bounded. Another value
counts as `other`; an answer whose metadata do not have the key is in no segment of it, and is counted as left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from ragwatch.model.sample import OTHER, value_at

STEP = "step"
"""Key of the segment of retrieval steps: which one returned what was used. Its values come from records."""
NO_STEP = "(no step)"
_MINUTE, _QUARTER, _MAX_BY_MINUTE = 60.0, 900.0, 7200.0
"""Sums of windows of segments are kept by the minute; of those longer than the last, by the quarter of an hour."""


class StepMeasure(StrEnum):
    """What is measured of a retrieval step: its share of the used contexts, and the unused part of its own."""

    USED = "used"
    IGNORED = "ignored"


def period_of(now: float, span: float) -> tuple[float, float]:
    """Return begin and end of the answers that a window of segments holds, in seconds since the epoch.

    >>> period_of(10_000.0, 3600.0), period_of(10_000.0, 86400.0)
    ((6420.0, 10020.0), (-75600.0, 10800.0))
    """
    step = step_of(span)
    return (int((now - span) // step) + 1) * step, (int(now // step) + 1) * step


def step_of(span: float) -> float:
    """Return the length of the parts that a window of this length is added up from."""
    return _MINUTE if span <= _MAX_BY_MINUTE else _QUARTER


class Segment(NamedTuple):
    """A metadata key, and a configured value of it or `other`; None if the metadata do not have the key."""

    key: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Segments:
    """The configured values by metadata key; a key may be a path such as `user.tier`."""

    values: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))

    def of(self, metadata: Mapping[str, object]) -> tuple[Segment, ...]:
        """Return the segment of each key that a sample with these metadata belongs to."""
        return tuple(Segment(key, _value(metadata, key, allowed)) for key, allowed in self.values.items())

    @property
    def pairs(self) -> frozenset[tuple[str, str]]:
        """Every key with each of its values, `other` included."""
        return frozenset((key, value) for key, allowed in self.values.items() for value in (*allowed, OTHER))


def _value(metadata: Mapping[str, object], key: str, allowed: tuple[str, ...]) -> str | None:
    value = value_at(metadata, key)
    if not isinstance(value, str | int | float):  # a list or an object is no value of a segment
        return None
    text = str(value).lower() if isinstance(value, bool) else str(value)  # as JSON writes it
    if not text:
        return None
    return text if text in allowed else OTHER


def series_of_segments(pairs: int, keys: int, *, quantities: int, windows: int, cohorts: int) -> int:
    """Return the number of series that segments are exported as.

    For each cohort (a route with a judge) and value: per quantity five gauges of each window (mean, both limits of its
    interval, number of scores, effective number), the time of the last sample and five counters (the addends of mean
    and variance); and two counters of answers. For each cohort and key, a counter of answers left out.

    >>> series_of_segments(3, 1, quantities=9, windows=3, cohorts=2)
    1148
    """
    return cohorts * (pairs * (quantities * (5 * windows + 1 + 5) + 2) + keys)
