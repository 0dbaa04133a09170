"""Reads the feedback of users that records carry, and names the answers that it may be about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ragwatch.core.feedback import UnreadFeedbackError
from ragwatch.core.sample import Draw
from ragwatch.core.sampling import key_of
from ragwatch.core.tally import Tallies, Tally
from ragwatch.formats.feedback import FeedbackReader, as_format_error
from ragwatch.ports import Feedback


@dataclass(frozen=True, slots=True)
class FeedbackRules:
    """How feedback is read.

    Attributes:
        reader: Reads it from a record.
        sources: Names of all configured sources: feedback may come from another one than its answer.
    """

    reader: FeedbackReader = field(default_factory=FeedbackReader)
    sources: tuple[str, ...] = ()

    def of_record(self, record: Mapping[str, object], source: str, now: float, tallies: Tallies) -> Feedback:
        """Return the feedback in a record of its own.

        Args:
            record: A record with `feedback_for`.
            source: Name of the source that delivered it.
            now: Seconds since the epoch, for a record without a time.
            tallies: Counts feedback that cannot be read.

        Raises:
            FormatError: The record is not valid feedback.
        """
        try:
            one = self.reader.read(record)
        except UnreadFeedbackError as error:
            tallies[Tally.FEEDBACK, (source, error.outcome)] += 1
            raise as_format_error(error) from error
        names = dict.fromkeys((source, *self.sources) if one.source is None else (one.source,))
        keys = tuple(key_of(name, one.id) for name in names)
        return Feedback(keys, one.score, now if one.at is None else min(one.at, now), source)

    def of_draw(self, record: Mapping[str, object], draw: Draw, tallies: Tallies) -> Feedback | None:
        """Return the feedback in the record of a drawn answer; None if it has none that can be read."""
        try:
            score = self.reader.of_answer(record, draw.sample)
        except UnreadFeedbackError as error:
            tallies[Tally.FEEDBACK, (draw.source, error.outcome)] += 1
            return None
        return None if score is None else Feedback((draw.key,), score, draw.at, draw.source)
