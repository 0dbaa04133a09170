"""Rows: what passes through the door of the store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ragwatch.core.sample import Draw
from ragwatch.core.scores import Quantity
from ragwatch.core.tally import Tallies


@dataclass(frozen=True, slots=True)
class Assignment:
    """A judge that is to read a draw, and the probability with which that pair came about."""

    judge: str
    probability: float


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A further judge that is to read a draw because of the verdict that was just reached on it.

    Attributes:
        key: The draw.
        after: The judge whose verdict brings it.
        assignment: Who is to read it, with which probability (of draw and follow-up together).
        at: When, in seconds since the epoch.
    """

    key: str
    after: str
    assignment: Assignment
    at: float


@dataclass(frozen=True, slots=True)
class OpenBatch:
    """A message batch under way.

    Attributes:
        id: Our number for it.
        provider_id: The provider's name for it; None when it is not known whether the provider has it.
        prepared: When it was put together, seconds since the epoch.
        seed: Seed of the ids in its prompts, needed to understand the replies.
    """

    id: int
    provider_id: str | None
    prepared: float
    seed: str


@dataclass(frozen=True, slots=True)
class Admission:
    """Everything one intake step writes, in one transaction.

    Attributes:
        source: Name of the source.
        stream: Stream of the cursor.
        cursor: Resumes behind the last record of this batch.
        draws: What was sampled, each with the judges that are to read it.
        tallies: What was counted on the way (seen, rejected, traffic signals).
        at: When, in seconds since the epoch: draws wait since then. None for since they were answered.
        of_draws: By key of a draw, what is counted on top if it is new: a repeated one is not stored.
    """

    source: str
    stream: str
    cursor: str
    draws: Sequence[tuple[Draw, tuple[Assignment, ...]]]
    tallies: Tallies
    at: float | None = None
    of_draws: Mapping[str, Tallies] = field(default_factory=dict)


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
    """Which verdicts to find. Every field that is set narrows the search; newest first.

    Attributes:
        after: `at` and `seq` of the last row of the page before: what follows it.
        texts: False leaves the samples unread.
    """

    key: str | None = None
    route: str | None = None
    judge: str | None = None
    stage: str | None = None
    outcome: str | None = None
    quantity: Quantity | None = None
    below: float | None = None
    above: float | None = None
    since: float | None = None
    until: float | None = None
    limit: int = 50
    after: tuple[float, int] | None = None
    texts: bool = True


@dataclass(frozen=True, slots=True)
class StoredVerdict:
    """A stored verdict, whole or (see `Store.summaries`) as lists show it.

    Attributes:
        verdict: The verdict line of the public contract, plus `route`, `at`, `probability` and `trace_id`.
        sample: The (redacted) sample in canonical form; None once retention has taken it.
        damage: Why the line or the sample cannot be read; then the verdict is what its figures tell, and the sample
            None. None where nothing is wrong.
    """

    verdict: Mapping[str, Any]
    sample: Mapping[str, Any] | None
    damage: str | None = None


class StoredText(Protocol):
    """One JSON object, as the store keeps it: unpacked only as far as is asked for."""

    def size(self) -> int:
        """Bytes of its JSON. Reads all of it, and raises `StoreError` where it is damaged."""
        ...

    def pieces(self) -> Iterator[bytes]:
        """Its JSON, in pieces. Raises `StoreError` where it is damaged."""
        ...

    def beginning(self, most: int) -> tuple[dict[str, Any], bool]:
        """The fields in its first bytes, and whether that is all of them. Raises `StoreError` where it is damaged."""
        ...


@dataclass(frozen=True, slots=True)
class PackedVerdict:
    """A stored verdict with its texts still packed.

    Attributes:
        seq: Order in which verdicts were settled.
        place: What stands beside the verdict line: `key`, `judge_name`, `route`, `at`, `probability`, `trace_id`.
        bare: The verdict as its figures tell it, with `place`, for where the line cannot be read.
        line: The verdict line of the public contract.
        sample: The (redacted) sample in canonical form; None once retention has taken it.
    """

    seq: int
    place: Mapping[str, Any]
    bare: Mapping[str, Any]
    line: StoredText
    sample: StoredText | None


@dataclass(frozen=True, slots=True)
class RecordedEvent:
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


@dataclass(frozen=True, slots=True)
class StoredRun:
    """Something that was tried at one instant: a suite of canaries, an anchor set.

    Attributes:
        kind: What was tried (`canary`, `anchor`).
        name: Which one.
        at: When, in seconds since the epoch.
        failing: Whether it came out badly; such runs are kept for longer.
        body: All that is known of it, as JSON values.
    """

    kind: str
    name: str
    at: float
    failing: bool
    body: Mapping[str, Any]
