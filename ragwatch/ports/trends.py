"""Protocol of the part of the store that keeps trends, and its value classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ragwatch.model.estimate import Addends
from ragwatch.statistics.trends import TrendKey, TrendKind


@dataclass(frozen=True, slots=True)
class TrendQuery:
    """What to read of the trends of one place.

    Attributes:
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


@dataclass(frozen=True, slots=True)
class SegmentQuery:
    """Which answers to add up by segment.

    Attributes:
        key: Key of the segment, or `statistics.segments.STEP`: the retrieval step that returned a context.
        quantity: Name of the score; of retrieval steps a `statistics.segments.StepMeasure`.
        since: The oldest time of an answer, in seconds since the epoch.
        until: Answers are older than this.
        steps: Number of steps of equal length between the two.
        limit: Answers at most, the newest ones.
    """

    key: str
    quantity: str
    route: str
    judge: str
    version: str
    since: float
    until: float
    steps: int
    limit: int


class SegmentSums(NamedTuple):
    """Sums over the answers of a value of a segment in a step of time.

    Attributes:
        value: The value; None for answers that have none.
        step: Number of the step, from 0.
        scores: Sums over those with a score.
        answers: Number of judged answers.
        weight: Their weight: an estimate of how many there were before sampling.
        staged: Weight of those of which is known whether a stage is at fault.
        failing: Weight of those with a stage at fault.
        faults: Number of answers with each stage at fault.
    """

    value: str | None
    step: int
    scores: Addends
    answers: int
    weight: float
    staged: float
    failing: float
    faults: Mapping[str, int]


class TrendStore(Protocol):
    """Sums of scores and peaks of evidence by bucket. `Store.settle` and `NoteStore.record_run` write the sums."""

    def trends(self, query: TrendQuery) -> list[TrendSums]:
        """Return the sums of all series of a place, by series and time. Buckets without a score are left out."""

    def segments(self, query: SegmentQuery) -> list[SegmentSums]:
        """Return the sums of the newest judged answers by value of a segment and step of time.

        Answers without a value have None. Left out are the same verdicts as in `Store.window`.
        """

    def add_peaks(self, peaks: Sequence[Peak]) -> None:
        """Store peaks; a stored one of the same bucket stays where it is higher. The newest threshold counts."""

    def peaks(self, query: TrendQuery) -> list[Peak]:
        """Return the highest peaks of all series of a place, by series and time; `span` is the step of the query."""
