"""Slices: which answers have what in common, how many are looked at, and that rare values cost no memory."""

from __future__ import annotations

from support.slices import an_answer

from ragwatch.core.causes import slices
from ragwatch.core.causes.slices import Attribute, candidates, places_by_attribute


def test_answers_are_cut_by_every_trait() -> None:
    """Documents by how they were used, counts, bands, judges, hours, words, pairs of words and metadata."""
    answers = [
        an_answer(number, contexts=["a", None, "a", "b"], cited=[3, 3, 9, 1], words=["what", "is", "cold", "tea"])
        for number in range(3)
    ]
    answers += [an_answer(3, retrieved=0, chars=7, score=0.5, metadata={"tier": "gold"}, judge="other 2")]
    found_places = places_by_attribute(answers)
    assert found_places[Attribute.CONTEXT] == {"a": [0, 1, 2], "b": [0, 1, 2]}
    assert found_places[Attribute.TOP_CONTEXT] == {"a": [0, 1, 2]}
    assert found_places[Attribute.CITED_CONTEXT] == {"b": [0, 1, 2]}
    assert found_places[Attribute.CONTEXTS] == {"0": [3]}
    assert found_places[Attribute.TOP_SCORE] == {"0.5": [3]}
    assert found_places[Attribute.ANSWER_LENGTH] == {"7": [3]}
    assert found_places[Attribute.JUDGE] == {"embedded 1": [0, 1, 2], "other 2": [3]}
    assert found_places[Attribute.TERM] == {term: [0, 1, 2] for term in ("is cold", "cold", "cold tea", "tea")}
    assert found_places["metadata.tier"] == {"gold": [3]}
    assert found_places[Attribute.HOUR] == {"22:00 to 23:00 UTC": [0, 1, 2, 3]}


def test_candidates_hold_and_leave_out_enough() -> None:
    """A slice of four answers, or of all but four, proves nothing; the most frequent come first."""
    by_attribute = {
        "metadata.release": {"v1": list(range(16)), "v2": [16, 17, 18, 19]},
        Attribute.CONTEXT: {"a": list(range(5)), "b": list(range(6)), "all": list(range(20))},
        Attribute.MISSING_CONTEXT: {"c": list(range(6))},
    }
    chosen = candidates(by_attribute, 20)
    assert [(one.attribute, one.value) for one in chosen] == [
        ("missing_context", "c"),
        ("context", "b"),
        ("context", "a"),
    ]
    assert [one.is_symptom for one in chosen] == [False] * 3


def test_rare_values_are_forgotten_when_there_are_too_many() -> None:
    """A hostile log with a new word in every question takes bounded memory; what is frequent stays."""
    words = [[f"word{number}x{place}" for place in range(20)] for number in range(2600)]
    answers = [an_answer(number, words=["tea", *words[number]]) for number in range(2600)]
    terms = places_by_attribute(answers)[Attribute.TERM]
    assert len(terms) <= slices._MAX_VALUES
    assert len(terms["tea"]) == 2600


def test_keys_of_metadata_are_capped() -> None:
    """The first keys are looked at; further ones are not, and their values cost nothing."""
    answers = [an_answer(number, metadata={f"key{number}": "x", "key0": "y"}) for number in range(200)]
    found_places = places_by_attribute(answers)
    keys = [name for name in found_places if name.startswith("metadata.")]
    assert len(keys) == slices._MAX_METADATA_KEYS
    assert len(found_places["metadata.key0"]["y"]) == 199 + 1
