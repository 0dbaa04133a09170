"""A Sample, one answered question, and a Draw, a sample that was selected for judging."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple, NotRequired, TypedDict

NO_METADATA: Mapping[str, object] = MappingProxyType({})
OTHER = "other"


class RejectReason(StrEnum):
    """Why a record was rejected. The values are label values of a series."""

    TORN_JSON = "torn_json"
    NOT_AN_OBJECT = "not_an_object"
    NOT_FINITE = "not_finite"
    NUMBER_TOO_LARGE = "number_too_large"
    TOO_DEEP = "too_deep"
    MISSING_FIELD = "missing_field"
    WRONG_TYPE = "wrong_type"
    UNKNOWN_FORMAT = "unknown_format"
    LINE_TOO_LONG = "line_too_long"
    PARTIAL_AT_ROTATION = "partial_at_rotation"
    BINARY = "binary"
    DUPLICATE_ID = "duplicate_id"
    NO_CONTENT = "no_content"
    TRUNCATED = "truncated"
    UNDELIVERABLE = "undeliverable"
    IMPLAUSIBLE_TIME = "implausible_time"
    FUTURE_TIME = "future_time"
    CONTEXT_IDS = "context_ids"


class SkipReason(StrEnum):
    """Why a line of a mixed log is no record of an answer. The values are label values of a series.

    WHERE: the condition of the source is false; WHERE_FAILED: it cannot be evaluated; NO_JSON: the line has no object;
    NO_RECORDS: the expression `records` finds none in it.
    """

    WHERE = "where"
    WHERE_FAILED = "where_failed"
    NO_JSON = "no_json"
    NO_RECORDS = "no_records"


class SuspectReason(StrEnum):
    """Why a sample was probably read wrongly. The values are label values of a series."""

    CONTEXT_NAMES = "context_names"  # ids, files, links or titles instead of texts
    CONTEXT_PROMPT = "context_prompt"  # a whole prompt instead of the passages in it
    QUESTION_PROMPT = "question_prompt"
    TIMES_SHIFTED = "times_shifted"  # whole hours or half hours behind, as local times that are read as UTC


class LossReason(StrEnum):
    """Why records of a stream were lost before they were stored. The values are label values of a series."""

    TRIMMED = "trimmed"  # the broker removed them before they were read: the stream has a limit
    DELETED = "deleted"  # removed after they were read, before they were stored


class Context(NamedTuple):
    """One passage that the retriever returned. A named tuple is cheap to create: intake makes about five a request."""

    text: str
    id: str | None = None
    score: float | None = None  # of the retriever, if logged; scale unknown, only the order is used
    step: str | None = None
    updated_at: float | None = None  # when its document was changed last, in seconds since the epoch


class RelevantContext(NamedTuple):
    """A relevance judgement: a context that is relevant, known by id or else by text; its grade is 1 or more."""

    id: str | None = None
    text: str | None = None
    grade: int = 1


class Role(StrEnum):
    """Who wrote a turn of a conversation. OTHER: neither of the two, such as the system prompt or a tool."""

    USER = "user"
    ASSISTANT = "assistant"
    OTHER = "other"


class Turn(NamedTuple):
    """One message of the conversation before the question."""

    role: Role
    text: str


class ContextFields(TypedDict):
    """A context as JSON values."""

    id: str | None
    text: str
    score: float | None
    step: NotRequired[str]
    updated_at: NotRequired[float]


def _context_fields(context: Context) -> ContextFields:
    fields: ContextFields = {"id": context.id, "text": context.text, "score": context.score}
    if context.step is not None:
        fields["step"] = context.step
    if context.updated_at is not None:
        fields["updated_at"] = context.updated_at
    return fields


class TurnFields(TypedDict):
    """A turn as JSON values."""

    role: str
    text: str


class RelevantId(TypedDict):
    """A relevant context, known by its id, as JSON values."""

    id: str
    grade: int


class RelevantText(TypedDict):
    """A relevant context, known by its text, as JSON values."""

    text: str | None
    grade: int


class SampleRecord(TypedDict, total=False):
    """A sample as JSON values in the canonical shape. Excerpts and records of older versions lack fields."""

    id: str
    at: float | None
    question: str | None
    contexts: list[ContextFields]
    answer: str
    route: str
    metadata: dict[str, object]
    reference: str | None
    history: list[TurnFields]
    relevant_ids: list[RelevantId]
    relevant_texts: list[RelevantText]


class Sample(NamedTuple):
    """One answered question. A named tuple is cheap to create: intake creates one per request."""

    id: str  # request id of the service, or the position of the record if it has none
    question: str | None
    contexts: tuple[Context, ...]  # passages in the order of the retriever, best first
    answer: str
    at: float | None = None  # time of the answer, in seconds since the epoch; None if the log does not contain it
    route: str = ""
    metadata: Mapping[str, object] = NO_METADATA  # other fields of the record (`trace_id` becomes the exemplar)
    reference: str | None = None
    history: tuple[Turn, ...] = ()  # the conversation before the question, oldest turn first
    relevant: tuple[RelevantContext, ...] | None = None  # empty if none is known to be; None if unknown

    def to_record(self) -> SampleRecord:
        """Return the sample as JSON values in the canonical shape."""
        record: SampleRecord = {
            "id": self.id,
            "at": self.at,
            "question": self.question,
            "contexts": list(map(_context_fields, self.contexts)),
            "answer": self.answer,
            "route": self.route,
            "metadata": dict(self.metadata),
            "reference": self.reference,
            "history": [{"role": str(turn.role), "text": turn.text} for turn in self.history],
        }
        if self.relevant is not None:
            record["relevant_ids"] = [{"id": one.id, "grade": one.grade} for one in self.relevant if one.id]
            record["relevant_texts"] = [{"text": one.text, "grade": one.grade} for one in self.relevant if not one.id]
        return record

    @property
    def chars(self) -> int:
        """Number of characters in question, answer, contexts and history."""
        texts = sum(len(context.text) for context in self.contexts) + sum(len(turn.text) for turn in self.history)
        return len(self.question or "") + len(self.answer) + texts

    @property
    def user_turns(self) -> tuple[str, ...]:
        """Texts of the user's turns before the question, oldest first."""
        return tuple(turn.text for turn in self.history if turn.role is Role.USER)

    @property
    def trace_id(self) -> str | None:
        """Trace id of the answer, if it was logged."""
        trace_id = self.metadata.get("trace_id")
        return trace_id if isinstance(trace_id, str) and trace_id else None


@dataclass(frozen=True, slots=True)
class Draw:
    """A sample that was selected for judging."""

    key: str  # identity in the store: a hash of source and sample id, in hex
    sample: Sample
    source: str
    route: str  # one of the configured routes, or `other`
    probability: float  # of inclusion, in (0, 1]: that of the time of the draw, whatever the rate is later
    at: float  # time of the answer (or, if unknown, of reading it), in seconds since the epoch
    damage: str | None = None  # why the stored text cannot be read, in which case the sample is empty; None if it can
    segments: tuple[tuple[str, str | None], ...] = ()  # key and value of each; None if the metadata lack the key

    def __post_init__(self) -> None:
        if not 0.0 < self.probability <= 1.0:
            raise ValueError(f"probability must be in (0, 1], not {self.probability}")


def value_at(metadata: Mapping[str, object], path: str) -> object:
    """Return the value under a key, or else under a path of keys; None if there is none.

    >>> [value_at(metadata, "user.id") for metadata in ({"user": {"id": 7}}, {"user.id": 8}, {"user": "x"})]
    [7, 8, None]
    """
    if path in metadata:
        return metadata[path]
    value: object = metadata
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value
