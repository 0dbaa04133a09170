"""Canaries as values: what one may expect, and what it is called."""

from __future__ import annotations

import pytest
from support.canaries import a_canary, a_text

from ragwatch.core.canary.definition import MAX_NAME_CHARS, Canary, Category, Expected, Grade, name_of


def test_a_context_is_known_by_something() -> None:
    """Without id and text nothing could ever meet it."""
    with pytest.raises(ValueError, match="needs an id or a text"):
        Expected(grade=Grade.HIGHLY_RELEVANT)


def test_labels_are_short() -> None:
    """An id is its own label; a text lends its beginning."""
    assert [item.label for item in (Expected("d1", "Long text."), a_text("x" * 500))] == [
        "d1",
        "x" * MAX_NAME_CHARS,
    ]


def test_a_negative_canary_expects_nothing() -> None:
    """It would contradict itself."""
    with pytest.raises(ValueError, match="a negative canary expects nothing"):
        a_canary("d1", category=Category.NEGATIVE)


def test_any_other_canary_expects_something() -> None:
    """Else it could not fail."""
    with pytest.raises(ValueError, match="expects nothing; give `expected`"):
        a_canary()


@pytest.mark.parametrize("expected", [("d1", "d1"), (a_text("One."), a_text("One.", 2))])
def test_a_context_is_expected_once(expected: tuple[object, ...]) -> None:
    """Twice, it would weigh double in recall and never reach the ideal NDCG."""
    with pytest.raises(ValueError, match="expects one context twice"):
        a_canary(*expected)


@pytest.mark.parametrize("share", [0.0, -1.0, 1.01])
def test_min_recall_is_a_share(share: float) -> None:
    """0 would never fail, more than 1 always."""
    with pytest.raises(ValueError, match="min_recall must be above 0 and at most 1"):
        a_canary("d1", min_recall=share)


def test_names_are_labels() -> None:
    """Short whatever the question, readable where it can be, different for different long questions."""
    long = [name_of("why is the sky " * 30 + end) for end in ("blue?", "red?")]
    assert name_of("  What's   up? ") == "what-s-up"
    assert len(set(long)) == 2
    assert all(len(name) <= MAX_NAME_CHARS and name.startswith("why-is-the-sky") for name in long)


@pytest.mark.parametrize("query", ["?!", "", "\ud800"])
def test_a_question_without_words_has_a_name(query: str) -> None:
    """A hash stands in."""
    assert name_of(query).startswith("canary-")


def test_names_are_stable() -> None:
    """A series must not change its label with a restart."""
    assert name_of("?!") == name_of("?!") != name_of("!?")


def test_a_canary_is_a_value() -> None:
    """Equal by content, and usable as a key."""
    assert {Canary("a", "a?", (Expected("d"),))} == {Canary("a", "a?", (Expected("d"),))}


@pytest.mark.parametrize(
    ("category", "usual"),
    [
        ("simple_factual", {1, 2}),
        ("complex_factual", {3, 4, 5}),
        ("procedural", {5, 6, 7, 8, 9, 10}),
        ("entity_centric", {3, 4, 5}),
        ("comparative", {2, 3, 4}),
        ("negative", {0}),
        ("temporal", {0}),
    ],
)
def test_each_category_has_its_usual_number_of_contexts(category: str, usual: set[int]) -> None:
    """Requirements item 47: 1-2, 3-5, 5-10, 3-5, 2-4, none, and none yet for what is not indexed."""
    numbers = set()
    for number in range(12):
        try:
            canary = a_canary(*(f"d{each}" for each in range(number)), category=Category(category))
        except ValueError:
            continue
        if canary.unusual_number is None:
            numbers.add(number)
        else:
            assert f"expects {number}, {category} queries" in canary.unusual_number
    assert numbers == usual


def test_a_temporal_canary_expects_nothing_until_its_answer_is_indexed() -> None:
    """Until then it is one whose retriever must return nothing relevant."""
    assert a_canary(category=Category.TEMPORAL).negative
    indexed = a_canary("d1", category=Category.TEMPORAL)
    assert not indexed.negative
    assert indexed.unusual_number == "expects 1, temporal queries none: their answers are not indexed yet"
