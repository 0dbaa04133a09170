"""Protocol of the part of the store that keeps trends, and its value classes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ragwatch.model.estimate import Addends
from ragwatch.statistics.trends import TrendKey, TrendKind


@dataclass(frozen=True, slots=True)
class TrendQuery:
    """What to read of the trends of one place."""

    kind: TrendKind
    place: str  # route, or canary suite
    span: int  # length of the stored buckets to read
    step: int  # length of the buckets to merge them into, a multiple of `span`
    since: int  # start of the first stored bucket, in seconds since the epoch
    until: int  # where the last one ends


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
    """Which answers to add up by segment."""

    key: str  # key of the segment, or `statistics.segments.STEP`: the retrieval step that returned a context
    quantity: str  # name of the score; of retrieval steps a `statistics.segments.StepMeasure`
    route: str
    judge: str
    version: str
    since: float  # the oldest time of an answer, in seconds since the epoch
    until: float  # answers are older than this
    steps: int  # number of steps of equal length between the two
    limit: int  # answers at most, the newest ones


class SegmentSums(NamedTuple):
    """Sums over the answers of a value of a segment in a step of time."""

    value: str | None  # the value; None for answers that have none
    step: int  # number of the step, from 0
    scores: Addends  # sums over those with a score
    answers: int  # number of judged answers
    weight: float  # their weight: an estimate of how many there were before sampling
    staged: float  # weight of those of which is known whether a stage is at fault
    failing: float  # weight of those with a stage at fault
    faults: Mapping[str, int]  # number of answers with each stage at fault


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
