"""Feedback in records: in a field of an answer, and in records of their own."""

from __future__ import annotations

import pytest

from ragwatch.errors import FormatError
from ragwatch.formats.feedback import FeedbackReader, FeedbackRecord, as_format_error
from ragwatch.model.sample import Sample
from ragwatch.statistics.feedback import FeedbackOutcome, Scale, UnreadFeedbackError

READER = FeedbackReader()


def a_sample(**metadata: object) -> Sample:
    """An answer with metadata."""
    return Sample("r1", "why?", (), "so", metadata=metadata)


@pytest.mark.parametrize(
    ("reader", "record", "sample", "score"),
    [
        (READER, {"thumbs": "up"}, a_sample(), 1.0),
        (READER, {}, a_sample(feedback="down"), 0.0),
        (READER, {"score": 0.9, "value": 1}, a_sample(), None),
        (FeedbackReader("ui.thumb"), {"ui": {"thumb": True}}, a_sample(), 1.0),
        (FeedbackReader("metadata.ui.thumb"), {}, a_sample(ui={"thumb": False}), 0.0),
        (FeedbackReader("csat", Scale(1, 5)), {"csat": 2}, a_sample(), 0.25),
        (FeedbackReader("csat"), {"thumbs": "up"}, a_sample(), None),
        (FeedbackReader("thumbs.up"), {"thumbs": "up"}, a_sample(), None),
    ],
)
def test_of_an_answer(reader: FeedbackReader, record: dict[str, object], sample: Sample, score: float | None) -> None:
    """The configured field, or else a field whose name says that it is feedback, in the record or its metadata."""
    assert reader.of_answer(record, sample) == score


@pytest.mark.parametrize(
    ("record", "read"),
    [
        ({"feedback_for": 7, "thumbs": "up"}, FeedbackRecord("7", 1.0)),
        ({"feedback_for": "r1", "score": 0.5, "at": 12, "source": "app"}, FeedbackRecord("r1", 0.5, 12.0, "app")),
        ({"feedback_for": "r1", "value": "no", "source": ""}, FeedbackRecord("r1", 0.0)),
        ({"feedback_for": "r1", "value": "no", "at": "today"}, FeedbackRecord("r1", 0.0)),
    ],
)
def test_of_its_own(record: dict[str, object], read: FeedbackRecord) -> None:
    """A record of feedback names its answer by id, and optionally the source and a time."""
    assert READER.read(record) == read


@pytest.mark.parametrize(
    ("record", "field"),
    [
        ({"feedback_for": "", "thumbs": "up"}, "feedback_for"),
        ({"feedback_for": None}, "feedback_for"),
        ({"feedback_for": 1.5}, "feedback_for"),
        ({"feedback_for": "r1", "thumbs": "up", "source": 4}, "source"),
    ],
)
def test_what_names_no_answer(record: dict[str, object], field: str) -> None:
    """A record without a usable id or source is refused, with the field."""
    with pytest.raises(FormatError) as raised:
        READER.read(record)
    assert raised.value.field == field


def test_what_holds_no_score() -> None:
    """A record without a value, or with one that cannot be read, is refused with a reason."""
    with pytest.raises(UnreadFeedbackError) as missing:
        READER.read({"feedback_for": "r1"})
    with pytest.raises(UnreadFeedbackError) as unknown:
        READER.read({"feedback_for": "r1", "score": "meh"})
    assert (missing.value.outcome, unknown.value.outcome) == (FeedbackOutcome.MISSING, FeedbackOutcome.UNKNOWN_TEXT)
    assert [as_format_error(one.value).reason for one in (missing, unknown)] == ["missing_field", "wrong_type"]
