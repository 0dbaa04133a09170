"""Rejections: an alert names the first record of the spell that it is about."""

from __future__ import annotations

from ragwatch.core.tally import SPELL_SECONDS, Rejections


def test_the_first_record_of_a_spell_is_kept_until_the_spell_ends() -> None:
    """By source and reason; an hour without any ends it, and the next one is first again."""
    rejections = Rejections()
    for line, now in enumerate((0.0, 10.0, SPELL_SECONDS), start=1):
        rejections.add("app", "missing_field", "answer", f"a.jsonl:{line}", now)
    rejections.add("app", "torn_json", "", "a\n.jsonl:9", 20.0)
    assert list(rejections.first(SPELL_SECONDS + 30.0)) == [("app", "missing_field", "answer", "a.jsonl:1")]
    assert ("app", "torn_json", "", "a?.jsonl:9") in rejections.first(30.0)
    rejections.add("app", "missing_field", "question", "a.jsonl:7", 2 * SPELL_SECONDS + 10.0)
    assert list(rejections.first(2 * SPELL_SECONDS + 20.0)) == [("app", "missing_field", "question", "a.jsonl:7")]


def test_texts_of_any_length_fit_a_label() -> None:
    """The end is kept, where the line number is."""
    rejections = Rejections()
    rejections.add("app", "torn_json", "x" * 500, f"{'d/' * 300}a.jsonl:12", 0.0)
    ((_, _, field, place),) = rejections.first(1.0)
    assert max(map(len, (field, place))) < 130
    assert place.endswith("a.jsonl:12")
