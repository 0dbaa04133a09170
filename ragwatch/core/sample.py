"""What was asked and answered: Sample, and the Draw the sampler makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

NOTHING: Mapping[str, Any] = MappingProxyType({})
OTHER = "other"


class RejectReason(StrEnum):
    """Why a record was not read as a Sample. The values are label values of a series."""

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


class Context(NamedTuple):
    """One passage that the retriever handed to the generator. A tuple, because intake makes five for every request.

    Attributes:
        text: The passage as the generator saw it.
        id: The retriever's own name for it, if it was logged.
        score: The retriever's score, if it was logged. Direction and scale are unknown: only the order counts.
    """

    text: str
    id: str | None = None
    score: float | None = None


class Sample(NamedTuple):
    """One answered question. A tuple, because intake makes one for every request.

    Attributes:
        id: The service's name for the request, or the position of the record where it has none.
        question: What was asked; None when the log does not hold it.
        contexts: Passages in the retriever's order, best first.
        answer: What the service answered.
        at: When it was answered, in seconds since the epoch; None when the log does not say.
        route: Name of the part of the service that answered, as logged.
        metadata: Everything else worth keeping (`trace_id` becomes the exemplar).
        reference: A known good answer, where there is one.
    """

    id: str
    question: str | None
    contexts: tuple[Context, ...]
    answer: str
    at: float | None = None
    route: str = ""
    metadata: Mapping[str, Any] = NOTHING
    reference: str | None = None

    def to_record(self) -> dict[str, Any]:
        """The sample in the canonical shape of the public contract."""
        return {
            "id": self.id,
            "at": self.at,
            "question": self.question,
            "contexts": [{"id": each.id, "text": each.text, "score": each.score} for each in self.contexts],
            "answer": self.answer,
            "route": self.route,
            "metadata": dict(self.metadata),
            "reference": self.reference,
        }

    @property
    def chars(self) -> int:
        """Characters of its texts, which is what makes one large."""
        return len(self.question or "") + len(self.answer) + sum(len(each.text) for each in self.contexts)

    @property
    def trace_id(self) -> str | None:
        """The trace this answer belongs to, if the log names it."""
        found = self.metadata.get("trace_id")
        return found if isinstance(found, str) and found else None


@dataclass(frozen=True, slots=True)
class Draw:
    """A Sample the sampler kept.

    Attributes:
        key: Identity in the store: a hash of source and sample id, in hex.
        sample: The sample, already redacted.
        source: Name of the configured source it came from.
        route: One of the configured routes, or `other`.
        probability: Inclusion probability, in (0, 1]; stored with the row because a later rate must not reweight it.
        at: When the question was answered (or, unknown, read), in seconds since the epoch.
        damage: Why its stored text cannot be read any more, and the sample is empty; None where it can.
    """

    key: str
    sample: Sample
    source: str
    route: str
    probability: float
    at: float
    damage: str | None = None

    def __post_init__(self) -> None:
        if not 0.0 < self.probability <= 1.0:
            raise ValueError(f"probability must be in (0, 1], not {self.probability}")
