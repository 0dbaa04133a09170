"""Ports: every door between rooms. Rooms know these Protocols and core values, never one another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel

from ragwatch.core.evidence import Evidence
from ragwatch.core.sample import Draw, RejectReason, Sample
from ragwatch.core.scores import Quantity
from ragwatch.core.snapshot import Lag
from ragwatch.core.tally import Tallies
from ragwatch.core.verdict import Usage, Verdict

Made_co = TypeVar("Made_co", covariant=True)


class Kind(Protocol[Made_co]):
    """What a module that is a kind offers. A room lists its kinds in a literal dict `KINDS`."""

    @property
    def Options(self) -> type[BaseModel]:  # noqa: N802 - it is a class
        """The kind's configuration: a frozen model that refuses unknown keys. Defaults live here and nowhere else."""
        ...

    @property
    def build(self) -> Callable[..., Made_co]:
        """Options (and what the room's `__init__` names beside them) to the thing itself."""
        ...


@dataclass(frozen=True, slots=True)
class Rejection:
    """A record that was not read as a Sample, with what a person needs to find and mend it.

    Attributes:
        reason: What is counted.
        file: Name of the file (or stream) as the person knows it.
        line: 1-based number of the line, 0 when unknown.
        field: Path of the field at fault, empty when the whole record is.
        detail: What is wrong.
    """

    reason: RejectReason
    file: str
    line: int
    field: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive records of one stream, and the cursor behind the last of them.

    Attributes:
        stream: Identity of the stream inside its source (a file, a partition).
        file: Its name for people.
        lines: Raw records without their line ends; empty lines are left out.
        offsets: For each line, where it starts in the stream. Makes the id of records that have none.
        numbers: For each line, its 1-based number.
        cursor: Opaque state that resumes behind the last line.
        rejections: Records that never became a line (too long, binary ...).
        resets: Why a stream was started over, as counted by reason (`truncated`, `replaced` ...).
    """

    stream: str
    file: str
    lines: Sequence[bytes]
    offsets: Sequence[int]
    numbers: Sequence[int]
    cursor: str
    rejections: Sequence[Rejection] = ()
    resets: Mapping[str, int] = field(default_factory=dict)


class Source(Protocol):
    """A transport that yields records. Methods are called from one thread at a time, and may block on a disk."""

    name: str

    def resume(self, cursors: Mapping[str, str]) -> None:
        """Continue behind these stored cursors, by stream. Called once, before the first read."""
        ...

    def read(self) -> Batch | None:
        """The next records, None when there is nothing new. Repeats the same records until they are committed.

        Raises:
            SourceError: The source cannot be read at present.
        """
        ...

    def commit(self, batch: Batch) -> None:
        """The store holds this batch: move on."""
        ...

    def lag(self) -> Lag:
        """How far behind the writer this source is."""
        ...

    def close(self) -> None:
        """Release files and connections."""
        ...


class Judge(Protocol):
    """Reads one sample. It never scores."""

    name: str
    kind: str
    version: str
    concurrency: int

    async def read(self, sample: Sample) -> tuple[Evidence, Usage]:
        """What the judge sees in the sample.

        Raises:
            JudgeError: It could not read it; the reason is counted.
        """
        ...

    async def close(self) -> None:
        """Release clients."""
        ...


@dataclass(frozen=True, slots=True)
class Assignment:
    """A judge that is to read a draw, and the probability with which that pair came about."""

    judge: str
    probability: float


@dataclass(frozen=True, slots=True)
class Admission:
    """Everything one intake step writes, in one transaction.

    Attributes:
        source: Name of the source.
        stream: Stream of the cursor.
        cursor: Resumes behind the last record of this batch.
        draws: What was sampled, each with the judges that are to read it.
        tallies: What was counted on the way (seen, rejected, traffic signals).
    """

    source: str
    stream: str
    cursor: str
    draws: Sequence[tuple[Draw, tuple[Assignment, ...]]]
    tallies: Tallies


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """The little of a verdict that estimates need.

    Attributes:
        seq: Order in which verdicts were settled.
        scores: By quantity; None for an unjudged draw.
        reason: Why it is unjudged, None for a judged one.
    """

    seq: int
    key: str
    at: float
    route: str
    judge: str
    version: str
    probability: float
    scores: Mapping[Quantity, float | None] | None
    reason: str | None
    trace_id: str | None


@dataclass(frozen=True, slots=True)
class Query:
    """Which verdicts to find. Every field that is set narrows the search; newest first."""

    key: str | None = None
    route: str | None = None
    judge: str | None = None
    stage: str | None = None
    outcome: str | None = None
    quantity: Quantity | None = None
    below: float | None = None
    since: float | None = None
    until: float | None = None
    limit: int = 50


@dataclass(frozen=True, slots=True)
class Found:
    """A stored verdict, whole.

    Attributes:
        verdict: The verdict line of the public contract, plus `route`, `at`, `probability` and `trace_id`.
        sample: The (redacted) sample in canonical form; None once retention has taken it.
    """

    verdict: Mapping[str, Any]
    sample: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to ragwatch or its service, kept beside the verdicts for pages and annotations."""

    at: float
    kind: str
    detail: str


@dataclass(frozen=True, slots=True)
class Retention:
    """How long verdicts stay.

    Attributes:
        days: Age at which a verdict goes.
        failing_days: Age at which a verdict that names a faulty stage, or an unjudged one, goes: they outlive others.
        bytes: Size of the store above which the oldest go early, successes first.
    """

    days: float
    failing_days: float
    bytes: int


class Store(Protocol):
    """Durable memory: the only place where two flows meet. Thread-safe; every method may block on a disk.

    Every writing method is one transaction and raises `StoreError` when it could not be written; then nothing was.
    """

    def cursors(self, source: str) -> dict[str, str]:
        """Stored cursors of a source, by stream."""
        ...

    def admit(self, admission: Admission) -> int:
        """Draws, cursor and tallies in one transaction. Known keys are a no-op. Returns the number of new draws."""
        ...

    def lease(self, judge: str, limit: int, *, now: float, seconds: float) -> list[Draw]:
        """Up to `limit` pending draws for a judge, oldest first, held for `seconds`; probability is that judge's."""
        ...

    def settle(self, verdicts: Sequence[Verdict]) -> int:
        """Write verdicts and their tallies. A draw settled before is a no-op. Returns how many were new."""
        ...

    def record(self, event: Event) -> None:
        """Keep an event."""
        ...

    def events(self, since: float) -> list[Event]:
        """Events since an instant, oldest first."""
        ...

    def window(self, after: int, since: float, limit: int) -> list[ScoreRow]:
        """Score rows settled behind `after` whose answers are not older than `since`, in order of settling."""
        ...

    def find(self, query: Query) -> list[Found]:
        """Stored verdicts, newest first."""
        ...

    def prune(self, retention: Retention, *, now: float) -> int:
        """Forget what is older or larger than allowed, failures last. Returns the number of verdicts gone."""
        ...

    def tallies(self) -> Tallies:
        """All counts."""
        ...

    def pending(self) -> dict[str, int]:
        """Draws not settled yet, by judge."""
        ...

    def books(self) -> tuple[Tallies, dict[str, int]]:
        """`tallies` and `pending` at one instant: only together do they balance."""
        ...

    def close(self) -> None:
        """Release the state directory."""
        ...
