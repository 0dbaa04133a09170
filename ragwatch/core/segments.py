"""Segments: values of metadata keys by which estimates are split, such as a release or a tier of customers.

Keys and values come from the configuration, never from a log, so the number of segments is bounded. Another value
counts as `other`; an answer whose metadata do not have the key is in no segment of it, and is counted as left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from ragwatch.core.metadata import value_at
from ragwatch.core.sample import OTHER


class Segment(NamedTuple):
    """A metadata key, and a value of it.

    Attributes:
        key: Name of the segment: a key of the metadata.
        value: One of the configured values, or `other`; None if the metadata do not have the key.
    """

    key: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Segments:
    """The configured segments.

    Attributes:
        values: Allowed values by metadata key; a key may be a path such as `user.tier`.
    """

    values: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))

    def of(self, metadata: Mapping[str, object]) -> tuple[Segment, ...]:
        """Return the segment of each key that a sample with these metadata belongs to.

        >>> segments = Segments({"release": ("v1", "v2"), "tier": ("free",), "beta": ("true",)})
        >>> [segment.value for segment in segments.of({"release": "v2", "tier": "trial", "beta": True})]
        ['v2', 'other', 'true']
        >>> segments.of({"release": ["v1"]})[0]
        Segment(key='release', value=None)
        """
        return tuple(Segment(key, _value(metadata, key, allowed)) for key, allowed in self.values.items())

    @property
    def pairs(self) -> frozenset[tuple[str, str]]:
        """Every key with each of its values, `other` included.

        >>> sorted(Segments({"tier": ("free",)}).pairs)
        [('tier', 'free'), ('tier', 'other')]
        """
        return frozenset(self._pairs())

    def _pairs(self) -> Iterator[tuple[str, str]]:
        for key, allowed in self.values.items():
            for value in (*allowed, OTHER):
                yield key, value


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

    For each cohort (a route with a judge) and value: per quantity five gauges of each window, the time of the last
    sample and five counters; and two counters of answers. For each cohort and key, a counter of answers left out.

    >>> series_of_segments(3, 1, quantities=9, windows=3, cohorts=2)
    1148
    """
    of_value = quantities * (GAUGES * windows + 1 + COUNTERS) + 2
    return cohorts * (pairs * of_value + keys)


GAUGES = 5  # per window: mean, both limits of its interval, number of scores, effective number
COUNTERS = 5  # the addends of a mean and its variance
