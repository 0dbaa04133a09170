"""Value classes that are passed to and returned by the store. Times are seconds since the epoch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from ragwatch.model.quantities import Quantity
from ragwatch.model.sample import Draw, SampleRecord
from ragwatch.model.stages import Stage
from ragwatch.statistics.tally import Tallies
from ragwatch.statistics.verdict_line import VerdictRecord

Clock = Callable[[], float]
"""Returns seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """A judge to which a draw is assigned, with the probability of that assignment."""

    judge: str
    probability: float


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A draw that is assigned to a further judge because of the verdict of an earlier one.

    Attributes:
        after: The judge whose verdict causes the follow-up.
        assignment: The further judge, with the joint probability of draw and follow-up.
    """

    key: str
    after: str
    assignment: Assignment
    at: float


@dataclass(frozen=True, slots=True)
class OpenBatch:
    """A message batch that is not closed.

    Attributes:
        id: Our number of the batch.
        provider_id: The provider's; None while it is unknown whether the provider accepted it.
        prepared: When it was prepared.
        seed: Seed of the ids in its prompts, needed to parse the replies.
    """

    id: int
    provider_id: str | None
    prepared: float
    seed: str


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a sample that waits for the others: a span of a trace, one half of a request.

    Attributes:
        group: What the parts of one sample have in common: a trace id, a request id.
        name: Identifies the part within its group. A part whose name is stored already is ignored.
        payload: Its content, in a form that its source can read again.
        at: When it arrived.
    """

    group: str
    name: str
    payload: bytes
    at: float


@dataclass(frozen=True, slots=True)
class Feedback:
    """What a user says of an answer.

    Attributes:
        keys: Keys that the sample may have: one for each source that it may come from.
        score: In [0, 1].
        at: When it was given.
        source: Name of the source that delivered it, for counts.
    """

    keys: tuple[str, ...]
    score: float
    at: float
    source: str


@dataclass(frozen=True, slots=True)
class VersionValue:
    """A value of a metadata key that names a version of the service, such as `release`.

    Attributes:
        field: The metadata key.
        value: Its value, redacted.
        at: When the first answer with it was given.
    """

    field: str
    value: str
    at: float


@dataclass(frozen=True, slots=True)
class Admission:
    """Everything that one intake step writes in one transaction.

    Attributes:
        stream: Stream of the cursor.
        cursor: Resumes after the last record of this batch.
        draws: Sampled draws, each with the judges it is assigned to.
        tallies: Counters to increment (seen, rejected, traffic signals).
        at: Since when the draws are pending, in seconds since the epoch; None for since they were answered.
        of_draws: Further counters by key of a draw, counted only if the draw is new.
        hold: Parts to store until their group is released.
        release: Groups whose parts are deleted.
        received: Ids of records to remember for a day, so that they are recognised when they are sent again.
        feedback: What users say of answers, of this batch or earlier ones.
        versions: Versions that records name. One that is not known yet becomes an event, once.
    """

    source: str
    stream: str
    cursor: str
    draws: Sequence[tuple[Draw, tuple[Assignment, ...]]]
    tallies: Tallies
    at: float | None = None
    of_draws: Mapping[str, Tallies] = field(default_factory=dict)
    hold: Sequence[Part] = ()
    release: Collection[str] = ()
    received: Collection[str] = ()
    feedback: Sequence[Feedback] = ()
    versions: Sequence[VersionValue] = ()


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """The part of a verdict that estimates are computed from.

    Attributes:
        seq: Sequence number in the order of settlement.
        scores: By quantity; None for an unjudged draw.
        reason: Why the draw is unjudged; None for a judged one.
        stage: Stage at fault; None where it is not known.
        segments: Value of each segment key that the answer has; empty for an unjudged draw.
        language: The language that was read, where the judge's accuracy in it is not known; None for any other.
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
    stage: Stage | None = None
    segments: Mapping[str, str] = field(default_factory=dict)
    language: str | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """Filters for stored verdicts: every field that is set narrows the result. Sorted newest first.

    Attributes:
        labelled: Whether the sample has a label by a person, counted or taken back.
        disputed: Whether another judge names another stage at fault for the same sample.
        metadata: Keys of metadata (one level down: a path) with the values that the sample has.
        context: Id of a context that was retrieved.
        top_context: Id of the context that was ranked first.
        words: Phrases that question or answer contain, each in one of them; see `statistics/text/search_words.py`.
        worst: Whether the worst scores of `quantity` come first instead.
        after: `at` and `seq` of the last row of the previous page, for keyset pagination.
        texts: Whether samples are loaded.
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
    labelled: bool | None = None
    disputed: bool | None = None
    metadata: tuple[tuple[str, str], ...] = ()
    context: str | None = None
    top_context: str | None = None
    words: tuple[tuple[str, ...], ...] = ()
    worst: bool = False
    limit: int = 50
    after: tuple[float, int] | None = None
    texts: bool = True


@dataclass(frozen=True, slots=True)
class AnswerQuery:
    """Filters for judged answers with their traits, newest first. None for all routes, and all judges.

    Attributes:
        since: The oldest time of an answer.
        until: Answers are older than this.
        before: `at` and `seq` of the last row of the previous page.
        limit: Number of rows of a page.
    """

    since: float
    until: float
    route: str | None = None
    judge: str | None = None
    before: tuple[float, int] | None = None
    limit: int = 1000


@dataclass(frozen=True, slots=True)
class StoredVerdict:
    """A stored verdict, complete or (see `Store.summaries`) shortened for lists.

    Attributes:
        line: The verdict line of the public contract, plus `key`, `judge_name`, `route`, `at`, `probability` and
            `trace_id`: JSON for the HTTP API and for commands that print it.
        sample: The (redacted) sample in canonical form; None once retention has deleted it.
        damage: Why line or sample cannot be decoded; the verdict is then rebuilt from its columns and the sample is
            None. None if both are intact.
    """

    verdict: VerdictRecord
    line: Mapping[str, Any]
    sample: SampleRecord | None
    damage: str | None = None


class StoredText(Protocol):
    """One JSON object as the store keeps it, decompressed on demand."""

    def size(self) -> int:
        """Return the length of the JSON in bytes. Decompresses all of it; raises `StoreError` if it is damaged."""

    def pieces(self) -> Iterator[bytes]:
        """Yield the JSON in chunks. Raises `StoreError` if it is damaged."""

    def beginning(self, max_bytes: int) -> tuple[Any, bool]:
        """Return the fields in the first `max_bytes`, and whether these are all. Raises `StoreError` if damaged."""


@dataclass(frozen=True, slots=True)
class PackedVerdict:
    """A stored verdict with compressed texts.

    Attributes:
        verdict: The verdict as far as its columns contain it, without claims and contexts.
        place: Columns beyond the verdict line, as JSON: `key`, `judge_name`, `route`, `at`, `probability`, `trace_id`.
        bare: The verdict line rebuilt from its columns, with `place`, for use if the line cannot be decoded.
        line: The verdict line of the public contract.
        sample: The (redacted) sample in canonical form; None once retention has deleted it.
    """

    seq: int
    verdict: VerdictRecord
    place: Mapping[str, object]
    bare: Mapping[str, object]
    line: StoredText
    sample: StoredText | None


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """An event in ragwatch or the monitored service, stored for status pages and annotations."""

    at: float
    kind: str
    detail: str


@dataclass(frozen=True, slots=True)
class Erasure:
    """What to erase: the answers that any of these selects.

    Attributes:
        ids: Ids of samples in their log, or keys in the store.
        metadata: Pairs of key and value. A key may be a path such as `user.id`.
        with_scores: Whether scores and labels are deleted, too, and not only texts, notes and ids.
    """

    ids: frozenset[str] = frozenset()
    metadata: frozenset[tuple[str, str]] = frozenset()
    with_scores: bool = False

    def redacted(self, redact: Callable[[str], str]) -> Erasure:
        """Also select what redaction leaves of ids and values, because that is stored."""
        names = self.ids | {redact(name) for name in self.ids}
        pairs = self.metadata | {(key, redact(value)) for key, value in self.metadata}
        return replace(self, ids=names, metadata=pairs)


@dataclass(frozen=True, slots=True)
class Erased:
    """How much was erased, or would be.

    Attributes:
        keys: Keys of the answers.
        texts: Texts of the answers, to search for copies outside of the store.
        pending: Draws that no judge has read; they become unjudged.
        feedback: Answers with feedback of a user, which is erased.
        others: Further rows that contained a text: runs, states and events.
        batched: Draws that are in a message batch at a provider.
        complete: Whether nothing remains in the free space of the database; False while a reader is in the way.
    """

    keys: tuple[str, ...] = ()
    texts: frozenset[str] = frozenset()
    pending: int = 0
    verdicts: int = 0
    labels: int = 0
    feedback: int = 0
    others: int = 0
    batched: int = 0
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Retention:
    """Limits of what is kept.

    Attributes:
        days: Age at which verdicts are deleted.
        failing_days: Age at which verdicts with a faulty stage, and unjudged ones, are deleted.
        bytes: Size of the store above which the oldest verdicts are deleted early, those without a fault first.
        trend_days: Age at which the sums that charts are drawn from are deleted.
    """

    days: float
    failing_days: float
    bytes: int
    trend_days: float = 90.0


@dataclass(frozen=True, slots=True)
class StoredRun:
    """The result of a run (a canary suite, an anchor set) or of a drift check, at one instant.

    Attributes:
        kind: What was run: `canary`, `anchor` ...
        name: Name of the suite, judge or series.
        failing: Whether it failed; failed runs are kept longer.
        body: Full result, as JSON values.
    """

    kind: str
    name: str
    at: float
    failing: bool
    body: Mapping[str, Any]
