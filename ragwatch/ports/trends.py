"""Protocol of the part of the store that keeps trends, and its value classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ragwatch.core.estimate import Addends
from ragwatch.core.trends import TrendKey, TrendKind


@dataclass(frozen=True, slots=True)
class TrendQuery:
    """What to read of the trends of one place.

    Attributes:
        kind: What the series are about.
        place: Route, or canary suite.
        span: Length of the stored buckets to read.
        step: Length of the buckets to merge them into, a multiple of `span`.
        since: Start of the first stored bucket, in seconds since the epoch.
        until: Where the last one ends.
    """

    kind: TrendKind
    place: str
    span: int
    step: int
    since: int
    until: int


class TrendSums(NamedTuple):
    """Sums of one series over one bucket."""

    series: TrendKey
    start: int
    sums: Addends


class Peak(NamedTuple):
    """The highest evidence of a drift detector within a bucket, and the threshold of its alarm."""

    series: TrendKey
    span: int
    start: int
    value: float
    threshold: float | None


class TrendStore(Protocol):
    """Sums of scores and peaks of evidence by bucket. `Store.settle` and `NoteStore.record_run` write the sums."""

    def trends(self, query: TrendQuery) -> list[TrendSums]:
        """Return the sums of all series of a place, by series and time. Buckets without a score are left out."""
        ...

    def add_peaks(self, peaks: Sequence[Peak]) -> None:
        """Store peaks; a stored one of the same bucket stays where it is higher. The newest threshold counts."""
        ...

    def peaks(self, query: TrendQuery) -> list[Peak]:
        """Return the highest peaks of all series of a place, by series and time; `span` is the step of the query."""
        ...
