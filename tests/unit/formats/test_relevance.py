"""Relevance judgements in records and in qrels files."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwatch.errors import ConfigError
from ragwatch.formats import build
from ragwatch.formats.relevance import parse_qrels, relevant_contexts
from ragwatch.model.sample import RelevantContext

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
