"""Protocols of sources, with the batches of records they deliver, and of the part of the store that keeps trends."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from ragwatch.formats.record import Line
from ragwatch.model.estimate import Addends
from ragwatch.model.sample import RejectReason
from ragwatch.ports.rows import Part
from ragwatch.statistics.snapshot import Lag
from ragwatch.statistics.tally import TallyKey
from ragwatch.statistics.trends import TrendKey, TrendKind


@dataclass(frozen=True, slots=True)
class Rejection:
    """A record that could not be read as a Sample, with what is needed to find and fix it.

    Attributes:
        reason: Reason that is counted.
        file: Display name of the file or stream.
        line: 1-based line number, 0 if unknown.
        field: Path of the invalid field, empty if the whole record is invalid.
    """

    reason: RejectReason
    file: str
    line: int
    field: str = ""
    detail: str = ""


@dataclass(slots=True)
class BatchReport:
    """What intake did with the records of a batch, for a source that has to answer its clients.

    Intake empties and fills it before the batch is committed.

    Attributes:
        rejections: Rejected records; `line` is the number of the record in the batch.
        resent: Numbers of the records that were received before.
    """

    rejections: list[Rejection] = field(default_factory=list)
    resent: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive records of one stream, and the cursor after the last of them.

    Attributes:
        stream: Identity of the stream inside its source (a file, a partition).
        file: Its display name.
        lines: Raw records without line ends, or decoded ones; empty lines are left out.
        offsets: Start offset of each line in the stream; part of the id of records without one, else not asked for.
        numbers: 1-based number of each line.
        cursor: Opaque state that resumes after the last line.
        rejections: Records that could not be read as a line (too long, binary ...).
        resets: Restarts of the stream, counted by reason (`truncated`, `replaced` ...).
        hold: Parts that wait for others; they are stored with the batch.
        release: Groups of parts that wait no longer.
        tallies: Counters of the source itself; they are added with the batch.
        report: To be filled with what intake did with the records.
    """

    stream: str
    file: str
    lines: Sequence[Line]
    offsets: Sequence[int]
    numbers: Sequence[int]
    cursor: str
    rejections: Sequence[Rejection] = ()
    resets: Mapping[str, int] = field(default_factory=dict)
    hold: Sequence[Part] = ()
    release: Collection[str] = ()
    tallies: Mapping[TallyKey, float] = field(default_factory=dict)
    report: BatchReport | None = None


class Source(Protocol):
    """A transport that delivers records. Called from one thread at a time; may block on disk I/O."""

    name: str

    def resume(self, cursors: Mapping[str, str]) -> None:
        """Continue after the stored cursors, by stream. Called once, before the first read."""

    def read(self) -> Batch | None:
        """Return the next records, None if there are none. Returns the same records until they are committed.

        Raises:
            SourceError: The source cannot be read at present.
        """

    def commit(self, batch: Batch) -> None:
        """Advance past a batch that the store has admitted."""

    def lag(self) -> Lag:
        """Return the age and size of the records that are not read yet."""

    def close(self) -> None:
        """Close files and connections."""


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
