"""Reads feedback of users: in a field of the record of an answer, or as a record of its own that names the answer.

A record of its own is `{"feedback_for": ID, "user_score": ...}`, with one of `statistics.feedback.FIELDS`, and
optionally `at` and `source`, the name of the source that the answer came from.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ragwatch.errors import FormatError
from ragwatch.formats import fields
from ragwatch.formats.fields import epoch_seconds
from ragwatch.formats.record import Record
from ragwatch.model.sample import RejectReason, Sample
from ragwatch.statistics.feedback import (
    FIELDS,
    NAME,
    FeedbackOutcome,
    Scale,
    UnreadFeedbackError,
    read_feedback,
    score_of,
)

FEEDBACK_FOR = "feedback_for"
_BARE = ("score", "value")  # names that say enough in a record of feedback, but not in one of an answer


def is_feedback(record: Mapping[str, object]) -> bool:
    """Return whether a record is feedback on an answer: where `feedback_for` is null, it is the answer itself."""
    return record.get(FEEDBACK_FOR) is not None


class FeedbackRecord(NamedTuple):
    """What a user says of an answer."""

    id: str  # id of the answer in its log
    score: float  # score in [0, 1]
    at: float | None = None  # when it was given, in seconds since the epoch; None if that is not logged, or is no time
    source: str | None = None  # name of the source of the answer; None if the record does not name it


@dataclass(frozen=True, slots=True)
class FeedbackReader:
    """Reads feedback as configured."""

    # path of the field with the feedback in the record of an answer, or in its metadata; empty for the first of
    # `statistics.feedback.FIELDS` that there is
    field: str = ""
    scale: Scale | None = None  # scale of ratings; None if none is configured

    def of_answer(self, record: Record, sample: Sample) -> float | None:
        """Return the score in the record of an answer; None if it has none, an `UnreadFeedbackError` if it is none."""
        if self.field:
            value = fields.at(record, self.field.split("."))
            if value is None:
                value = fields.at(sample.metadata, self.field.removeprefix("metadata.").split("."))
            return None if value is None else score_of(value, "rating" if self.scale else "feedback", self.scale)
        score = read_feedback(record, self.scale)
        return read_feedback(sample.metadata, self.scale) if score is None else score

    def read(self, record: Record) -> FeedbackRecord:
        """Return the feedback in a record with `feedback_for`; an `UnreadFeedbackError` if its value is no score."""
        identity = fields.identity(record.get(FEEDBACK_FOR), FEEDBACK_FOR)
        if identity is None:
            raise fields.missing(FEEDBACK_FOR, "is empty; it names the id of the answer")
        time_key, time = fields.first(record, fields.TIME_KEYS)
        try:
            at = None if time is None else epoch_seconds(time, time_key)
        except FormatError:  # a wrong time does not make an opinion worthless
            at = None
        source = fields.optional_text(record.get("source"), "source")
        score = read_feedback(record, self.scale)
        if score is None:
            name, value = fields.first(record, _BARE)
            if value is None:
                message = f"is missing (none of {', '.join(FIELDS)})"
                raise UnreadFeedbackError(FeedbackOutcome.MISSING, NAME, message)
            score = score_of(value, name, self.scale)
        return FeedbackRecord(identity, score, at, source or None)


def as_format_error(error: UnreadFeedbackError) -> FormatError:
    """Return the error of a record of feedback whose value cannot be read."""
    missing = error.outcome is FeedbackOutcome.MISSING
    reason = RejectReason.MISSING_FIELD if missing else RejectReason.WRONG_TYPE
    return FormatError(reason, error.field, str(error))
