"""Canaries out of judged traffic: what is proposed, and what never is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from support.kit import a_record

from ragwatch.config.suites import canaries, read_suite
from ragwatch.config.text import parse_text
from ragwatch.core.canary.definition import Canary, Category, Expected
from ragwatch.core.suggest import TAG, CanarySuggestion, suggest, suite_text
from ragwatch.core.verdict_line import VerdictRecord

Row = tuple[VerdictRecord, dict[str, Any] | None]


def a_row(question: Any = "Where is the mill?", used: tuple[str, ...] = ("d1",), **parts: Any) -> Row:
    """A stored verdict on an answer from three contexts, of which these were used, with its sample."""
    given = {"faithfulness": 1.0, "relevancy": 1.0, "probability": 1.0, "contexts": None} | parts
    contexts = given["contexts"] or [{"id": name, "text": f"Text of {name}."} for name in ("d1", "d2", "d3")]
    verdict = a_record(
        scores={"faithfulness": given["faithfulness"], "answer_relevancy": given["relevancy"]},
        contexts=[{"used": context["id"] in used or context["id"] is None} for context in contexts],
        probability=given["probability"],
    )
    return verdict, {"question": question, "contexts": contexts}


def test_frequent_questions_come_first() -> None:
    """Frequency is estimated from the sampling probability, ties are in order of the question; others are cut off."""
    rows = [a_row("b?"), a_row("a?"), a_row("c?"), a_row("C? "), a_row("rare?", probability=0.1)]
    suggestions = suggest(rows)
    assert [(suggestion.canary.query, suggestion.weight, suggestion.answers) for suggestion in suggestions] == [
        ("rare?", 10.0, 1),
        ("C?", 2.0, 2),
        ("a?", 1.0, 1),
        ("b?", 1.0, 1),
    ]
    assert [suggestion.canary.query for suggestion in suggest(rows, limit=1)] == ["rare?"]
    assert suggest(reversed(rows)) == suggestions


def test_what_most_good_answers_used_is_expected() -> None:
    """A context that fewer than half of the answers used is left out; many make a complex question."""
    (suggestion,) = suggest([a_row(used=("d1", "d2")), a_row(used=("d1",)), a_row(used=("d1", "d3"))])
    assert suggestion.canary.expected == (Expected("d1"),)
    assert (suggestion.canary.category, suggestion.canary.tags) == (Category.SIMPLE_FACTUAL, (TAG,))
    (wide,) = suggest([a_row(used=("d3", "d2", "d1"))])
    assert [context.id for context in wide.canary.expected] == ["d1", "d2", "d3"]
    assert wide.canary.category is Category.COMPLEX_FACTUAL
    assert suggest([a_row(used=(name,)) for name in ("d1", "d2", "d3")]) == []


def test_only_good_answers_teach() -> None:
    """Unfaithful, off the point, unread, without used contexts, without a sample or a question: nothing."""
    lost = a_row()[0], None
    rows = [
        a_row(faithfulness=0.9),
        a_row(faithfulness=None),
        a_row(relevancy=0.5),
        a_row(relevancy=None),
        a_row(used=()),
        a_row(None),
        a_row("  "),
        lost,
        (a_record(scores=None), {"question": "Why?"}),
    ]
    assert suggest(rows) == []


def test_redacted_texts_are_never_expected_or_asked() -> None:
    """A token is not what a person asked, nor what a retriever returns; an id beside a redacted text will do."""
    redacted = "[EMAIL:3f2a9c]"
    assert suggest([a_row(f"Who is {redacted}?")]) == []
    nameless = [
        {"id": None, "text": f"Write to {redacted}."},
        {"id": None, "text": " "},
        {"id": None, "text": "Plain."},
    ]
    (suggestion,) = suggest([a_row(contexts=nameless)])
    assert suggestion.canary.expected == (Expected(None, "Plain."),)
    assert suggest([a_row(contexts=nameless[:2])]) == []
    (named,) = suggest([a_row(contexts=[{"id": "d1", "text": redacted}])])
    assert named.canary.expected == (Expected("d1"),)


def test_follow_up_questions_are_left_out() -> None:
    """A canary has no conversation before it: only first questions are suggested."""
    verdict, sample = a_row("And for students?")
    assert sample is not None
    turns = [{"role": "user", "text": "How much is a ticket?"}]
    assert suggest([(verdict, sample | {"history": turns})]) == []
    assert len(suggest([(verdict, sample | {"history": []})])) == 1


def test_questions_that_are_canaries_already_are_left_out() -> None:
    """However they are written."""
    assert suggest([a_row("Where is  the mill?")], known=["where is the Mill?"]) == []


@given(
    st.lists(st.text(st.characters(codec="utf-8"), min_size=1).filter(str.strip), min_size=1, max_size=4, unique=True)
)
def test_any_text_survives_the_file(texts: list[str]) -> None:
    """Whatever a question or a context holds, the file says it and no more: quotes, line ends, YAML's own signs."""
    made = [
        CanarySuggestion(Canary(f"n{number}", text, (Expected(None, text),), tags=(TAG,)), 1.0, 1, 1.0)
        for number, text in enumerate(texts)
    ]
    read = canaries(parse_text(suite_text(made), "suite")["items"], "items")
    assert read == tuple(suggestion.canary for suggestion in made)


def test_the_file_is_a_suite(tmp_path: Path) -> None:
    """What is written can be read as it is."""
    path = tmp_path / "suggested.yaml"
    made = suggest([a_row(), a_row("Who built it?", contexts=[{"id": None, "text": "Anna built it."}])])
    path.write_text(suite_text(made), encoding="utf-8")
    assert read_suite(path) == tuple(suggestion.canary for suggestion in made)


def test_names_differ_where_questions_do(tmp_path: Path) -> None:
    """Questions that differ in signs alone would share a name, and no suite can be read that has a name twice."""
    suggestions = suggest([a_row("Is it on?"), a_row("Is it on!"), a_row("Is it off?")])
    names = [suggestion.canary.name for suggestion in suggestions]
    assert "is-it-on" in names
    assert len(set(names)) == len(names) == 3
    (tmp_path / "suite.yaml").write_text(suite_text(suggestions))
    assert [canary.name for canary in read_suite(tmp_path / "suite.yaml")] == names
