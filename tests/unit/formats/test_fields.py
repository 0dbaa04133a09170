"""Fields that all shapes share: ids, times, scores, metadata."""

from __future__ import annotations

import pytest

from ragwatch.core.sample import NO_METADATA, RejectReason, Sample
from ragwatch.errors import FormatError
from ragwatch.formats import canonical, fields
from ragwatch.formats.messages import content_text, question_text, with_role
from ragwatch.formats.times import epoch_seconds


def read(**more: object) -> Sample:
    """A canonical record with these fields more."""
    return canonical.read({"question": "q", "contexts": [], "answer": "a", **more}, "log:1")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2026-05-01T10:00:00Z", 1777629600.0),
        ("2026-05-01T12:00:00.500+02:00", 1777629600.5),
        ("2026-05-01 10:00:00", 1777629600.0),
        ("2026-05-01", 1777593600.0),
        (1777629600, 1777629600.0),
        (1777629600.25, 1777629600.25),
        (1777629600250, 1777629600.25),
        (1777629600250000, 1777629600.25),
        (1777629600250000000, 1777629600.25),
        ("1777629600.25", 1777629600.25),
        ("1777629600250000000", 1777629600.25),
        ("1794010112345", 1794010112.345),
        ("1794010112345.0", 1794010112.345),
        ("20260501", 1777593600.0),
        ("20260501100000", 1777629600.0),
        ("4102444799999", 4_102_444_799.999),
    ],
)
def test_times(value: object, expected: float) -> None:
    """ISO 8601 with Z, an offset or none (UTC), and numbers in any usual unit, are the same instant."""
    assert epoch_seconds(value, "at") == expected
    assert read(at=value).at == expected


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"id": "r1"}, "r1"),
        ({"id": 7}, "7"),
        ({"id": ""}, "log:1"),
        ({"id": None}, "log:1"),
        ({"request_id": 7}, "7"),
        ({"id": "", "request_id": 7}, "7"),
        ({"id": None, "request_id": "", "run_id": "r"}, "r"),
        ({}, "log:1"),
    ],
)
def test_ids(more: dict[str, object], expected: str) -> None:
    """A record without a name of its own bears that of its position."""
    assert read(**more).id == expected


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, NO_METADATA),
        ({"metadata": None}, NO_METADATA),
        ({"metadata": {"a": [{"b": 1}]}}, {"a": [{"b": 1}]}),
        ({"trace_id": "t"}, {"trace_id": "t"}),
        ({"trace_id": "t", "metadata": {"trace_id": "u", "a": 1}}, {"trace_id": "t", "a": 1}),
        ({"trace_id": 3, "metadata": {"trace_id": "u"}}, {"trace_id": "u"}),
        ({"model": "m", "label": {}}, NO_METADATA),
    ],
)
def test_metadata(more: dict[str, object], expected: dict[str, object]) -> None:
    """Metadata is kept, a trace id of the record is part of it, unknown keys are not."""
    assert read(**more).metadata == expected


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


@pytest.mark.parametrize("score", [10**400, -(10**400), float("nan"), float("inf")])
def test_x9_x10_scores_beyond_every_float(score: float) -> None:
    """A score that is no finite float is refused by name, however it came about."""
    with pytest.raises(FormatError) as caught:
        read(contexts=[{"text": "c", "score": score}])
    assert caught.value.field == "contexts[0].score"


@pytest.mark.parametrize("key", fields.TEXT_KEYS)
def test_text_aliases(key: str) -> None:
    """A passage's text goes by several names."""
    assert read(contexts=[{key: "c"}]).contexts[0].text == "c"


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


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        *(("a", "a"), (["a", {"text": "b"}, {"image": 1}], "ab"), ([], None), ([3], None), (None, None), ({}, None)),
        *((["a", 3], "a"), (3, None), ([{"type": "image_url"}, {"type": "output_text", "text": {"value": "a"}}], "a")),
    ],
)
def test_content_text(content: object, expected: str | None) -> None:
    """The texts of a message's parts are one text; a message without any has none."""
    assert content_text(content) == expected


@pytest.mark.parametrize("role", [[], ["user"], {}, {"user": 1}, 3, True, 1.5])
def test_roles_that_are_none(role: object) -> None:
    """A role may be any JSON value; one that is no text is nobody's."""
    said = [{"role": role, "content": "q"}, {"type": role, "content": "q"}]
    assert (with_role(said, "user"), question_text(said)) == ([], None)
