"""A wrong optional field costs that field, which is counted with its reason; a wrong required one costs the answer."""

from __future__ import annotations

from typing import Any

import pytest

from ragwatch.errors import FormatError
from ragwatch.formats.log_reader import LogReader, RecordRules
from ragwatch.formats.optional import FIELDS

CONTEXT = {"id": "c1", "text": "The mill was built in 1820.", "score": 0.5}
RECORD = {
    "id": "r1",
    "at": 1_777_885_800,
    "question": "When?",
    "contexts": [CONTEXT, CONTEXT],
    "answer": "In 1820.",
    "route": "faq",
    "metadata": {"tenant": "a"},
    "reference": "1820",
    "history": [{"role": "user", "text": "Hello"}],
}
AUTO = LogReader(RecordRules())


@pytest.mark.parametrize(
    ("changes", "name", "reason"),
    [
        ({"at": 0}, "at", "implausible_time"),
        ({"at": "0001-01-01T00:00:00Z"}, "at", "wrong_type"),
        ({"at": 12_345}, "at", "implausible_time"),
        ({"at": "yesterday"}, "at", "wrong_type"),
        ({"at": None, "timestamp": {"s": 1}}, "at", "wrong_type"),
        ({"id": 1e20}, "id", "wrong_type"),
        ({"route": ["faq"]}, "route", "wrong_type"),
        ({"metadata": "a=1"}, "metadata", "wrong_type"),
        ({"reference": 7}, "reference", "wrong_type"),
        ({"history": 3}, "history", "wrong_type"),
        ({"history": [3]}, "history", "wrong_type"),
        ({"contexts": [CONTEXT, {**CONTEXT, "score": "high"}]}, "score", "wrong_type"),
        ({"contexts": [CONTEXT, {"text": CONTEXT["text"], "doc_id": 1.5}]}, "context_id", "wrong_type"),
        ({"contexts": [CONTEXT, {**CONTEXT, "updated_at": "lately"}]}, "updated_at", "wrong_type"),
        ({"contexts": [CONTEXT, {**CONTEXT, "modified_at": 0}]}, "updated_at", "implausible_time"),
        ({"contexts": [CONTEXT, {**CONTEXT, "version": "2026-13-01"}]}, "updated_at", "wrong_type"),
    ],
)
def test_one_wrong_optional_field(changes: dict[str, Any], name: str, reason: str) -> None:
    """All else is read."""
    sample, lost = AUTO.read_without_wrong_fields({**RECORD, **changes}, "log:1")
    whole = AUTO.read(RECORD, "log:1")
    assert [(one.name, str(one.reason)) for one in lost] == [(name, reason)]
    assert name in FIELDS
    assert (sample.answer, sample.question, len(sample.contexts)) == (whole.answer, whole.question, 2)
    assert (sample.at == whole.at) is (name != "at")
    assert (sample.id == whole.id) is (name != "id")
    assert [context.score for context in sample.contexts if name == "score"] in ([], [0.5, None])


def test_several_are_counted_one_by_one() -> None:
    """In records of any format that names the field."""
    scores = [{**CONTEXT, "score": word} for word in ("high", "low")]
    sample, lost = AUTO.read_without_wrong_fields({**RECORD, "at": -1, "contexts": scores}, "log:1")
    assert sorted(one.name for one in lost) == ["at", "score", "score"]
    assert [context.score for context in sample.contexts] == [None, None]


def test_expressions_of_a_mapping() -> None:
    """What an optional expression extracts may be wrong, and it may fail; that of the answer may not."""
    mapping = {"answer": "a", "contexts": "c", "at": "t", "metadata.n": "abs(n)", "id": "join('-', i)"}
    reader = LogReader(RecordRules("custom", mapping))
    record = {"a": "In 1820.", "c": ["The mill was built in 1820."], "t": 0, "n": "x", "i": 3}
    sample, lost = reader.read_without_wrong_fields(record, "log:1")
    assert (sample.id, sample.at, sample.answer) == ("log:1", None, "In 1820.")
    assert sorted(one.name for one in lost) == ["at", "id", "metadata"]
    with pytest.raises(FormatError):
        LogReader(RecordRules("custom", {**mapping, "answer": "abs(a)"})).read_without_wrong_fields(record, "log:1")


@pytest.mark.parametrize("changes", [{"answer": None}, {"contexts": 7}, {"contexts": [{"text": 3}]}, {"question": []}])
def test_a_wrong_required_field(changes: dict[str, Any]) -> None:
    """There is no answer to read then."""
    with pytest.raises(FormatError):
        AUTO.read_without_wrong_fields({**RECORD, **changes}, "log:1")
