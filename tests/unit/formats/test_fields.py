"""Fields that all shapes share; a wrong optional one costs that field, a wrong required one the answer."""

from typing import Any

import pytest

from ragwatch.errors import FormatError
from ragwatch.formats import canonical, fields
from ragwatch.formats.log_reader import LogReader, RecordRules
from ragwatch.model.sample import NO_METADATA, RejectReason, Sample


def read(**more: object) -> Sample:
    """A canonical record with these fields more."""
    return canonical.read({"question": "q", "contexts": [], "answer": "a", **more}, "log:1")


SAME_TIMES: dict[float, list[object]] = {
    1777629600.0: ["2026-05-01T10:00:00Z", "2026-05-01 10:00:00", 1777629600, "20260501100000"],
    1777629600.5: ["2026-05-01T12:00:00.500+02:00"],
    1777593600.0: ["2026-05-01", "20260501"],
    1777629600.25: [
        *(1777629600.25, 1777629600250, 1777629600250000, 1777629600250000000),
        *("1777629600.25", "1777629600250000000"),
    ],
    1794010112.345: ["1794010112345", "1794010112345.0"],
    4_102_444_799.999: ["4102444799999"],
}
"""By instant: ISO 8601 with Z, an offset or none (UTC), and numbers in any usual unit."""


@pytest.mark.parametrize(
    ("more", "field", "expected"),
    [
        *(({"at": value}, "at", at) for at, values in SAME_TIMES.items() for value in values),
        # A record without a name of its own bears that of its position.
        ({"id": "r1"}, "id", "r1"),
        ({"id": 7}, "id", "7"),
        ({"id": ""}, "id", "log:1"),
        ({"id": None}, "id", "log:1"),
        ({"request_id": 7}, "id", "7"),
        ({"id": "", "request_id": 7}, "id", "7"),
        ({"id": None, "request_id": "", "run_id": "r"}, "id", "r"),
        ({}, "id", "log:1"),
        # Metadata is kept, a trace id of the record is part of it, unknown keys are not.
        ({}, "metadata", NO_METADATA),
        ({"metadata": None}, "metadata", NO_METADATA),
        ({"metadata": {"a": [{"b": 1}]}}, "metadata", {"a": [{"b": 1}]}),
        ({"trace_id": "t"}, "metadata", {"trace_id": "t"}),
        ({"trace_id": "t", "metadata": {"trace_id": "u", "a": 1}}, "metadata", {"trace_id": "t", "a": 1}),
        ({"trace_id": 3, "metadata": {"trace_id": "u"}}, "metadata", {"trace_id": "u"}),
        ({"model": "m", "label": {}}, "metadata", NO_METADATA),
    ],
)
def test_times_ids_and_metadata(more: dict[str, object], field: str, expected: object) -> None:
    """However they are written."""
    assert getattr(read(**more), field) == expected


@pytest.mark.parametrize(("depth", "is_read"), [(31, True), (32, False)])
def test_x8_x15_deep_metadata(depth: int, *, is_read: bool) -> None:
    """Metadata that no JSON writer could write again is refused before anything is stored."""
    deep: object = "x"
    for _ in range(depth):
        deep = [deep]
    if is_read:
        assert read(metadata={"deep": deep}).metadata == {"deep": deep}
        return
    with pytest.raises(FormatError) as caught:
        read(metadata={"deep": deep})
    assert caught.value.reason == RejectReason.TOO_DEEP


@pytest.mark.parametrize("whole", [{}, {"id": "1", "score": 0.5}])
@pytest.mark.parametrize(
    ("date", "expected"),
    [
        ({"updated_at": "2026-05-01"}, 1777593600.0),
        ({"last_modified": "2026-05-01T10:00:00Z", "version": "2020-01-01"}, 1777629600.0),
        ({"indexed_at": 1777629600000}, 1777629600.0),
        ({"version": "20260501"}, 1777593600.0),
        ({"version": "2026.5", "updated_at": ""}, None),
        ({"version": 7}, None),
    ],
)
def test_the_date_of_a_document(whole: dict[str, object], date: dict[str, object], expected: float | None) -> None:
    """Under its names, the most telling first; a version is one only where it is a date."""
    (context,) = fields.contexts([{"text": "Tea is green.", **whole, **date}], "contexts")
    assert (context.updated_at, context.text) == (expected, "Tea is green.")


@pytest.mark.parametrize("more", [{}, {"id": "1", "score": 0.5}])
def test_an_empty_text_hides_no_other(more: dict[str, object]) -> None:
    """A column that is not filled is no passage, where another is; alone it is an empty passage."""
    assert [one.text for one in read(contexts=[{"text": "", "content": "c", **more}]).contexts] == ["c"]
    assert [one.text for one in read(contexts=[{"text": "", **more}]).contexts] == [""]


@pytest.mark.parametrize("escape", [r"\u0000", r"\ud83d", r"\udc00"])
def test_characters_that_cannot_be_stored_are_replaced_in_embedded_json(escape: str) -> None:
    """JSON in a text is decoded as the record around it is: no store takes NUL, and half a pair is no character."""
    assert fields.embedded(f'[{{"text": "a{escape}b\\u00e9"}}]') == [{"text": "a\ufffdbé"}]
    assert fields.embedded(r'["\\u0000 \ud83d\ude00"]') == ["\\u0000 \U0001f600"]
    assert fields.embedded(f"[{escape}") == f"[{escape}"


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
UNTIMED = {"at": None}
OPTIONAL: list[tuple[dict[str, Any], str, str]] = [
    *(({"id": value}, "id", "id") for value in (1e20, True)),
    ({"route": ["faq"]}, "route", "route"),
    ({"reference": 7}, "reference", "reference"),
    *(({"metadata": value}, "metadata", "metadata") for value in ("a=1", [])),
    *(({"history": value}, "history", "history") for value in (3, {})),
    *(({"history": [value]}, "history[0]", "history") for value in (3, ["q", None])),
    ({"history": [{"role": "user", "text": "q"}, 3]}, "history[1]", "history"),
    # A time that cannot be read is refused, never guessed.
    ({"at": "0001-01-01T00:00:00Z"}, "at", "at"),
    *((UNTIMED | {"timestamp": value}, "timestamp", "at") for value in ("yesterday", "", "inf", "nan", "1066-10-14")),
    *((UNTIMED | {"timestamp": value}, "timestamp", "at") for value in ("9" * 400, -1, True, [], {"s": 1}, 10**400)),
    (UNTIMED | {"timestamp": float("nan")}, "timestamp", "at"),
    *(
        ({"contexts": [CONTEXT, {**CONTEXT, "score": value}]}, "contexts[1].score", "score")
        for value in ("high", True, 10**400, -(10**400), float("nan"), float("inf"))
    ),
    ({"contexts": [CONTEXT, {"text": CONTEXT["text"], "doc_id": 1.5}]}, "contexts[1].doc_id", "context_id"),
    ({"contexts": [CONTEXT, {**CONTEXT, "id": []}]}, "contexts[1].id", "context_id"),
    *(
        ({"contexts": [CONTEXT, {**CONTEXT, name: value}]}, f"contexts[1].{name}", "updated_at")
        for name, value in (("updated_at", "lately"), ("version", "2026-13-01"))
    ),
]
"""Optional fields of a wrong type, the path that names each, and the name under which it is counted."""
IMPLAUSIBLE: list[tuple[dict[str, Any], str, str]] = [
    *(({"at": value}, "at", "at") for value in (0, 12_345)),
    ({"contexts": [CONTEXT, {**CONTEXT, "modified_at": 0}]}, "contexts[1].modified_at", "updated_at"),
]
REQUIRED: list[tuple[dict[str, Any], str]] = [
    *(({"question": value}, "question") for value in (3, [])),
    ({"answer": None}, "answer"),
    *(({"contexts": value}, "contexts") for value in (None, 3, {"d1": "c"})),
    ({"contexts": ["c", 3]}, "contexts[1]"),
    ({"contexts": [{"body": 3}]}, "contexts[0].body"),
    # Relevance judgements of another shape.
    ({"relevant_ids": "c1"}, "relevant_ids"),
    *(({"relevant_ids": ["c1", value]}, "relevant_ids[1]") for value in (1.5, [])),
    *(({"relevant_ids": {"c1": value}}, "relevant_ids.c1") for value in (True, -1)),
    ({"relevant_ids": [{"id": "c1", "grade": 1001}]}, "relevant_ids[0].grade"),
    ({"relevant_texts": {"One.": 1}}, "relevant_texts"),
    ({"relevant_texts": [7]}, "relevant_texts[0]"),
]
"""Fields of a wrong type without which nothing is read."""
MISSING: list[tuple[dict[str, Any], str]] = [
    ({"contexts": ["c", {"id": "1"}]}, "contexts[1].text"),
    *(({"relevant_ids": ["c1", value]}, "relevant_ids[1]") for value in (None, {"grade": 1})),
    ({"relevant_texts": ["  "]}, "relevant_texts[0]"),
]


def refuses(changes: dict[str, Any], path: str, reason: RejectReason) -> None:
    """A record with a wrong field is refused, and the field is named by its path."""
    with pytest.raises(FormatError) as caught:
        AUTO.read({**RECORD, **changes}, "log:1")
    assert (caught.value.field, caught.value.reason) == (path, reason)
    assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize(("changes", "path", "name"), OPTIONAL + IMPLAUSIBLE)
def test_x9_x10_one_wrong_optional_field(changes: dict[str, Any], path: str, name: str) -> None:
    """It is named by its path; for a reader that leaves it out, all else is read."""
    reason = RejectReason.WRONG_TYPE if (changes, path, name) in OPTIONAL else RejectReason.IMPLAUSIBLE_TIME
    refuses(changes, path, reason)
    sample, lost = AUTO.read_without_wrong_fields({**RECORD, **changes}, "log:1")
    whole = AUTO.read(RECORD, "log:1")
    assert [(one.name, one.reason) for one in lost] == [(name, reason)]
    assert (sample.answer, sample.question, len(sample.contexts)) == (whole.answer, whole.question, 2)
    assert (sample.at == whole.at) is (name != "at")
    assert (sample.id == whole.id) is (name != "id")
    assert [context.score for context in sample.contexts if name == "score"] in ([], [0.5, None])


@pytest.mark.parametrize(("changes", "path"), REQUIRED + MISSING)
def test_a_wrong_required_field(changes: dict[str, Any], path: str) -> None:
    """It is named by its path, and there is no answer to read then."""
    refuses(changes, path, RejectReason.WRONG_TYPE if (changes, path) in REQUIRED else RejectReason.MISSING_FIELD)
    with pytest.raises(FormatError):
        AUTO.read_without_wrong_fields({**RECORD, **changes}, "log:1")


@pytest.mark.parametrize("name", ["question", "contexts", "answer"])
def test_a_missing_required_field(name: str) -> None:
    """It is named, too."""
    with pytest.raises(FormatError) as caught:
        canonical.read({key: value for key, value in RECORD.items() if key != name}, "log:1")
    assert (caught.value.reason, caught.value.field) == (RejectReason.MISSING_FIELD, name)


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
