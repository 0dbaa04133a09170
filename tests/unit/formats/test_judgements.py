"""What people say in records: relevance judgements, in qrels files too, and feedback on answers."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwatch.errors import ConfigError, FormatError
from ragwatch.formats import build
from ragwatch.formats.feedback import FeedbackReader, FeedbackRecord, as_format_error
from ragwatch.formats.relevance import parse_qrels, relevant_contexts
from ragwatch.model.sample import RelevantContext, Sample
from ragwatch.statistics.feedback import FeedbackOutcome, Scale, UnreadFeedbackError

ROW = {"question": "why?", "contexts": [{"id": "c3", "text": "Because."}], "answer": "So."}
TREC = "q1 0 c1 1\nq1 0 c2 3\nq1 0 c3 0\n\nq2 Q0 c9 -1\n"
BEIR = "query-id\tcorpus-id\tscore\nq1\tc1\t1\nq1\tc2\t3\nq1\tc3\t0\nq2\tc9\t-1\n"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (["c1", 7], [("c1", 1), ("7", 1)]),
        ([{"id": "c1", "grade": 2}, {"id": "c2"}, {"id": "c3", "grade": 0}], [("c1", 2), ("c2", 1)]),
        ({"c1": 1, "c2": 3, "c3": 0}, [("c1", 1), ("c2", 3)]),
        (["c1", {"id": "c1", "grade": 2}, "c1"], [("c1", 2)]),
        ([], []),
    ],
)
def test_ids_in_every_spelling(value: Any, expected: list[tuple[str, int]]) -> None:
    """A list of ids or of objects, or an object; grade 0 is not relevant, and of two grades the higher one counts."""
    sample = build("canonical").read({**ROW, "relevant_ids": value}, "log:1")
    assert sample.relevant == tuple(RelevantContext(name, None, grade) for name, grade in expected)


def test_texts_and_ids_stand_together() -> None:
    """What is known by its text has no id."""
    relevant = relevant_contexts({"relevant_ids": ["c1"], "relevant_texts": ["One.", {"text": "Two.", "grade": 2}]})
    assert relevant == (RelevantContext("c1"), RelevantContext(None, "One."), RelevantContext(None, "Two.", 2))


def test_unknown_is_not_empty() -> None:
    """Without a key nothing is known; an empty list says that nothing is relevant."""
    reader = build("auto")
    assert reader.read(ROW, "log:1").relevant is None
    assert reader.read({**ROW, "relevant_ids": None, "relevant_texts": None}, "log:1").relevant is None
    assert reader.read({**ROW, "relevant_texts": []}, "log:1").relevant == ()


@pytest.mark.parametrize("text", [TREC, BEIR, "\ufeff" + BEIR.replace("\n", "\r\n"), TREC.replace(" ", "\t")])
def test_both_formats_of_qrels(text: str) -> None:
    """TREC and BEIR give the same judgements; grades of 0 and below are not relevant."""
    assert parse_qrels(text, "qrels.tsv") == {
        "q1": (RelevantContext("c1", None, 1), RelevantContext("c2", None, 3)),
        "q2": (),
    }


def test_qrels_without_a_header_and_with_decimal_grades() -> None:
    """BEIR without its header, and grades that a data frame wrote."""
    assert parse_qrels("q1\tdoc 1\t1.0\n", "q")["q1"] == (RelevantContext("doc 1", None, 1),)
    assert parse_qrels("", "q") == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q1 c1\n", "q line 1: has 2 columns"),
        ("q1 0 c1 1\nq1 c2 1\n", "q line 2: has 3 columns, the first line 4"),
        ("q1 0 c1 high\n", "q line 1: the grade 'high' is not a whole number"),
        ("q1 0 c1 1\nq1 0 c1 2\n", "q line 2: 'c1' has the grade 2 for 'q1', and 1 before"),
        ("q1\t\t1\n", "q line 1: has an empty id"),
        ("q1 0 c1 1.5\n", "is not a whole number"),
        ("q1 0 c1 1234567\n", "is not a whole number"),
        ("a\tb\tscore\na\tb\tscore\n", "q line 2: the grade 'score' is not"),
    ],
)
def test_qrels_errors_name_the_line(text: str, message: str) -> None:
    """What is wrong, and where."""
    with pytest.raises(ConfigError, match=message.replace("(", r"\(")):
        parse_qrels(text, "q")


@pytest.mark.costly
@given(st.text(max_size=60))
def test_any_text_is_qrels_or_an_error(text: str) -> None:
    """Hostile files end with a ConfigError, never with another one."""
    try:
        parsed = parse_qrels(text, "q")
    except ConfigError:
        return
    assert all(one.grade >= 1 and one.id for relevant in parsed.values() for one in relevant)


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
def test_feedback_of_an_answer(
    reader: FeedbackReader, record: dict[str, object], sample: Sample, score: float | None
) -> None:
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
def test_feedback_of_its_own(record: dict[str, object], read: FeedbackRecord) -> None:
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
def test_feedback_that_names_no_answer(record: dict[str, object], field: str) -> None:
    """A record without a usable id or source is refused, with the field."""
    with pytest.raises(FormatError) as raised:
        READER.read(record)
    assert raised.value.field == field


def test_feedback_that_holds_no_score() -> None:
    """A record without a value, or with one that cannot be read, is refused with a reason."""
    with pytest.raises(UnreadFeedbackError) as missing:
        READER.read({"feedback_for": "r1"})
    with pytest.raises(UnreadFeedbackError) as unknown:
        READER.read({"feedback_for": "r1", "score": "meh"})
    assert (missing.value.outcome, unknown.value.outcome) == (FeedbackOutcome.MISSING, FeedbackOutcome.UNKNOWN_TEXT)
    assert [as_format_error(one.value).reason for one in (missing, unknown)] == ["missing_field", "wrong_type"]
