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

Clock = Callable[[], float]  # returns seconds since the epoch


@dataclass(frozen=True, slots=True)
class Assignment:
    """A judge to which a draw is assigned, with the probability of that assignment."""

    judge: str
    probability: float


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A draw that is assigned to a further judge because of the verdict of an earlier one."""

    key: str
    after: str  # the judge whose verdict causes the follow-up
    assignment: Assignment  # the further judge, with the joint probability of draw and follow-up
    at: float


@dataclass(frozen=True, slots=True)
class OpenBatch:
    """A message batch that is not closed."""

    id: int  # our number of the batch
    provider_id: str | None  # the provider's; None while it is unknown whether the provider accepted it
    prepared: float  # when it was prepared
    seed: str  # seed of the ids in its prompts, needed to parse the replies


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a sample that waits for the others: a span of a trace, one half of a request."""

    group: str  # what the parts of one sample have in common: a trace id, a request id
    name: str  # identifies the part within its group; a part whose name is stored already is ignored
    payload: bytes  # its content, in a form that its source can read again
    at: float  # when it arrived


@dataclass(frozen=True, slots=True)
class Feedback:
    """What a user says of an answer."""

    keys: tuple[str, ...]  # keys that the sample may have: one for each source that it may come from
    score: float  # in [0, 1]
    at: float  # when it was given
    source: str  # name of the source that delivered it, for counts


@dataclass(frozen=True, slots=True)
class VersionValue:
    """A value of a metadata key that names a version of the service, such as `release`."""

    field: str
    value: str  # its value, redacted
    at: float  # when the first answer with it was given


@dataclass(frozen=True, slots=True)
class Admission:
    """Everything that one intake step writes in one transaction."""

    source: str
    stream: str
    cursor: str  # resumes after the last record of this batch
    draws: Sequence[tuple[Draw, tuple[Assignment, ...]]]  # sampled draws, each with the judges it is assigned to
    tallies: Tallies  # counters to increment (seen, rejected, traffic signals)
    # since when the draws are pending, in seconds since the epoch; None for since they were answered
    at: float | None = None
    # further counters by key of a draw, counted only if the draw is new
    of_draws: Mapping[str, Tallies] = field(default_factory=dict)
    hold: Sequence[Part] = ()  # parts to store until their group is released
    release: Collection[str] = ()  # groups whose parts are deleted
    # ids of records to remember for a day, so that they are recognised when they are sent again
    received: Collection[str] = ()
    feedback: Sequence[Feedback] = ()  # what users say of answers, of this batch or earlier ones
    # versions that records name; one that is not known yet becomes an event, once
    versions: Sequence[VersionValue] = ()


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """The part of a verdict that estimates are computed from."""

    seq: int  # sequence number in the order of settlement
    key: str
    at: float
    route: str
    judge: str
    version: str
    probability: float
    scores: Mapping[Quantity, float | None] | None  # by quantity; None for an unjudged draw
    reason: str | None  # why the draw is unjudged; None for a judged one
    trace_id: str | None
    stage: Stage | None = None  # stage at fault; None where it is not known
    # value of each segment key that the answer has; empty for an unjudged draw
    segments: Mapping[str, str] = field(default_factory=dict)
    # the language that was read, where the judge's accuracy in it is not known; None for any other
    language: str | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """Filters for stored verdicts: every field that is set narrows the result. Sorted newest first."""

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
    labelled: bool | None = None  # whether the sample has a label by a person, counted or taken back
    disputed: bool | None = None  # whether another judge names another stage at fault for the same sample
    # keys of metadata (one level down: a path) with the values that the sample has
    metadata: tuple[tuple[str, str], ...] = ()
    context: str | None = None  # id of a context that was retrieved
    top_context: str | None = None  # id of the context that was ranked first
    # phrases that question or answer contain, each in one of them; see `statistics/text/search_words.py`
    words: tuple[tuple[str, ...], ...] = ()
    worst: bool = False  # whether the worst scores of `quantity` come first instead
    limit: int = 50
    after: tuple[float, int] | None = None  # `at` and `seq` of the last row of the previous page, for keyset pagination
    texts: bool = True  # whether samples are loaded


@dataclass(frozen=True, slots=True)
class AnswerQuery:
    """Filters for judged answers with their traits, newest first. None for all routes, and all judges."""

    since: float  # the oldest time of an answer
    until: float  # answers are older than this
    route: str | None = None
    judge: str | None = None
    before: tuple[float, int] | None = None  # `at` and `seq` of the last row of the previous page
    limit: int = 1000  # number of rows of a page


@dataclass(frozen=True, slots=True)
class StoredVerdict:
    """A stored verdict, complete or (see `Store.summaries`) shortened for lists."""

    verdict: VerdictRecord
    # the verdict line of the public contract, plus `key`, `judge_name`, `route`, `at`, `probability` and `trace_id`:
    # JSON for the HTTP API and for commands that print it
    line: Mapping[str, Any]
    sample: SampleRecord | None  # the (redacted) sample in canonical form; None once retention has deleted it
    # why line or sample cannot be decoded, None if both are intact; else the verdict is rebuilt from its columns and
    # the sample is None
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
    """A stored verdict with compressed texts."""

    seq: int
    verdict: VerdictRecord  # the verdict as far as its columns contain it, without claims and contexts
    # columns beyond the verdict line, as JSON: `key`, `judge_name`, `route`, `at`, `probability`, `trace_id`
    place: Mapping[str, object]
    # the verdict line rebuilt from its columns, with `place`, for use if the line cannot be decoded
    bare: Mapping[str, object]
    line: StoredText  # the verdict line of the public contract
    sample: StoredText | None  # the (redacted) sample in canonical form; None once retention has deleted it


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """An event in ragwatch or the monitored service, stored for status pages and annotations."""

    at: float
    kind: str
    detail: str


@dataclass(frozen=True, slots=True)
class Erasure:
    """What to erase: the answers that any of these selects."""

    ids: frozenset[str] = frozenset()  # ids of samples in their log, or keys in the store
    metadata: frozenset[tuple[str, str]] = frozenset()  # pairs of key and value; a key may be a path such as `user.id`
    with_scores: bool = False  # whether scores and labels are deleted, too, and not only texts, notes and ids

    def redacted(self, redact: Callable[[str], str]) -> Erasure:
        """Also select what redaction leaves of ids and values, because that is stored."""
        names = self.ids | {redact(name) for name in self.ids}
        pairs = self.metadata | {(key, redact(value)) for key, value in self.metadata}
        return replace(self, ids=names, metadata=pairs)


@dataclass(frozen=True, slots=True)
class Erased:
    """How much was erased, or would be."""

    keys: tuple[str, ...] = ()  # keys of the answers
    texts: frozenset[str] = frozenset()  # texts of the answers, to search for copies outside of the store
    pending: int = 0  # draws that no judge has read; they become unjudged
    verdicts: int = 0
    labels: int = 0
    feedback: int = 0  # answers with feedback of a user, which is erased
    others: int = 0  # further rows that contained a text: runs, states and events
    batched: int = 0  # draws that are in a message batch at a provider
    # whether nothing remains in the free space of the database; False while a reader is in the way
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Retention:
    """Limits of what is kept."""

    days: float  # age at which verdicts are deleted
    failing_days: float  # age at which verdicts with a faulty stage, and unjudged ones, are deleted
    bytes: int  # size of the store above which the oldest verdicts are deleted early, those without a fault first
    trend_days: float = 90.0  # age at which the sums that charts are drawn from are deleted


@dataclass(frozen=True, slots=True)
class StoredRun:
    """The result of a run (a canary suite, an anchor set) or of a drift check, at one instant."""

    kind: str  # what was run: `canary`, `anchor` ..
    name: str  # name of the suite, judge or series
    at: float
    failing: bool  # whether it failed; failed runs are kept longer
    body: Mapping[str, Any]  # full result, as JSON values
