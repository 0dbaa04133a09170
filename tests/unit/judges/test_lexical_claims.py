"""Claims: what of an answer is a claim, and where it stands."""

from __future__ import annotations

import pytest

from ragwatch.core.phrases import _any_of, without_leads
from ragwatch.judges.reading.claims import claims_of
from ragwatch.judges.reading.sentences import spans
from ragwatch.judges.reading.tables import parse
from ragwatch.judges.reading.words import fold, identifiers, term, terms


def claims(answer: str, question: str | None = None) -> list[str]:
    """The claims as they stand in the answer."""
    return [answer[claim.start : claim.end] for claim in claims_of(answer, question).claims]


@pytest.mark.parametrize(
    "whole",
    [
        "Dr. Ito met Mrs. Lund in St. Gallen at 5 p.m. on a Monday.",
        "It holds, e.g. tea, i.e. a drink, vs. coffee, etc. and so on.",
        "The U.S. Army moved to the U.K. border with J. R. Smith Jr. in May.",
        "See No. 5 and Fig. 3 of vol. 2 for 3.14 and 1,000.50 dollars.",
        "Open https://docs.example.org/a.b/c.html?x=1.2 or config.yaml with textwrap.dedent now.",
        "He waited ... and then he left for good.",
        "Version 2.0.1 of the tool, approx. five years old, is used by Acme Inc. in Oslo.",
        "She asked him 'why not?' and he left the room.",
        "Call `a.b(). C` never without `x = 1.5` in the same line",
    ],
)
def test_a_sentence_stays_whole(whole: str) -> None:
    """No abbreviation, initial, decimal, address, file name, ellipsis or quote ends a sentence."""
    assert claims(whole) == [whole]


@pytest.mark.parametrize(
    ("answer", "parts"),
    [
        ("Tea is a green leaf. It grows in hills!", ["Tea is a green leaf.", "It grows in hills!"]),
        ("They live in the U.S. The law is old there.", ["They live in the U.S.", "The law is old there."]),
        ("It holds much vitamin C. The rest is water.", ["It holds much vitamin C.", "The rest is water."]),
        ('He said: "Tea is a leaf." Then he left us.', ['He said: "Tea is a leaf."', "Then he left us."]),
        ("Tea is a leaf.[1] It grows in hills [2][3].", ["Tea is a leaf.[1]", "It grows in hills [2][3]."]),
        ("Tea is a leaf. [1] It grows in hills.", ["Tea is a leaf. [1]", "It grows in hills."]),
        ("1. Boil the water.\n2. Add the tea.\n   Stir it well.", ["Boil the water.", "Add the tea.", "Stir it well."]),
        ("- Green tea\n* Black tea\n• White tea", ["Green tea", "Black tea", "White tea"]),
        ("Tea grows in\nthe green hills. It likes rain.", ["Tea grows in\nthe green hills.", "It likes rain."]),
        (
            "Use str.strip first of all. str.split() cuts the rest.",
            ["Use str.strip first of all.", "str.split() cuts the rest."],
        ),
        ("茶は緑です。水は熱い。", ["茶は緑です。", "水は熱い。"]),
        ("# Tea\n\n**Kinds:**\n\nSteps:\n1. Boil the water", ["Boil the water"]),
        (
            "Run this code in a new shell first:\n```python\nprint('a. B')\n\nx = 1\n```\nIt prints a letter.",
            ["Run this code in a new shell first:", "It prints a letter."],
        ),
        ("Call it from a new shell like this:\n```\nnever closed. Never.", ["Call it from a new shell like this:"]),
        ("No. Tea is not black.", ["No. Tea is not black."]),
        ("Tea is a green leaf. Really.", ["Tea is a green leaf. Really."]),
        ("George Two", ["George Two"]),
        ("1.\nBoil the water well", ["Boil the water well"]),
        ("42.", ["42."]),
    ],
)
def test_an_answer_is_cut_where_its_claims_end(answer: str, parts: list[str]) -> None:
    """Sentences and list items are claims; labels, headings and code are not; fragments join their neighbour."""
    assert claims(answer) == parts


@pytest.mark.parametrize(
    "answer",
    [
        "I don't know.",
        "I do not have that information.",
        "I'm sorry, but I couldn't find an answer to that.",
        "I could not find anything about moving medians in the documentation.",
        "The context does not contain the answer.",
        "The provided passages do not mention her age.",
        "Based on the given context, it is not possible to answer this question.",
        "Unable to answer based on the given passages.",
        "There is no information about that in the documents provided.",
        "No relevant documents were found.",
        "None of the sources mention it.",
        "The answer cannot be determined from the passages.",
        "Not mentioned in the text.",
        "Sorry, no answer.",
        "Unfortunately, the search results provide no details. I hope this helps!",
        "I have no idea.",
    ],
)
def test_an_abstention_is_recognised(answer: str) -> None:
    """However it is phrased, an answer that only says it does not know abstains and claims nothing."""
    found = claims_of(answer)
    assert found.abstained
    assert found.claims == ()


@pytest.mark.parametrize(
    "answer",
    [
        "The dictionary does not contain the key.",
        "The function does not return a value.",
        "She does not have any technical skills.",
        "The passages do not mention her age. She lives in Oslo with two cats.",
        "I don't know the year, but the tower was built by monks.",
        "The library has no documentation.",
    ],
)
def test_an_answer_with_a_claim_is_no_abstention(answer: str) -> None:
    """A negative statement about the world, or an abstention followed by a claim, is an answer."""
    found = claims_of(answer)
    assert not found.abstained
    assert len(found.claims) == 1


@pytest.mark.parametrize(
    "answer",
    [
        ":",
        "Thought process:",
        "I hope this helps!",
        "Based on the context, here are the steps you asked for:",
        "",
        " \n",
        "...",
    ],
)
def test_meta_text_claims_nothing(answer: str) -> None:
    """Labels, leads and politeness are neither claims nor abstentions."""
    found = claims_of(answer)
    assert found.claims == ()
    assert not found.abstained


def test_what_follows_a_but_is_read_alone() -> None:
    """Of "the passage does not say, but ..." only the rest gives words to look for."""
    (claim,) = claims_of("The passage does not say when, but monks built the tower.").claims
    assert terms(claim.words) == terms("monks built the tower")


def test_a_lead_is_blanked_and_offsets_stay() -> None:
    """The claim keeps its lead in the text, and loses it among its words."""
    answer = "According to passage 2, tea is green (passage 1)."
    (claim,) = claims_of(answer).claims
    assert answer[claim.start : claim.end] == answer
    assert terms(claim.words) == ["tea", "green"]


def test_a_yes_without_a_question_claims_nothing() -> None:
    """Where the question is unknown, a bare yes says nothing that could be looked up."""
    assert claims("Yes.") == []
    assert claims("Yes.", "Is tea green?") == ["Yes."]


def test_words_meet_across_forms() -> None:
    """Accents, possessives, commas in numbers, number words and plural endings do not part equal words."""
    assert terms("São Paulo's 2,000 studies, 3.50 boxes") == terms("sao paulo 2000 study 3.5 box")
    assert term("seven") == term("7")
    assert term("running") == term("runs")
    assert term("x") == ""
    assert fold("ÉTÉ") == "ete"
    assert term("1.2.3") == "1.2.3"
    assert term("5.0") == "5"
    assert identifiers("plain words only") == set()


def test_items_are_marked() -> None:
    """A list item knows that it is one, its second sentence does not."""
    assert [span.item for span in spans("- One thing here. Two things.\nThree.")] == [True, False, False]


def test_a_misspelt_fragment_is_an_error() -> None:
    """A table of phrases that names an unknown fragment must not silently match nothing."""
    with pytest.raises(ValueError, match="unknown fragment"):
        _any_of("<PASAGES> say")
    assert without_leads("plain") == "plain"


def test_tables_are_read_as_written() -> None:
    """Levels are hundredths; the version follows the content."""
    weights = '{"support": {"bias": 1, "weights": {"a": 2}}, "relevance": {"bias": 0, "weights": {}}}'
    tables = parse(weights, '{"levels": {"25": "tea leaf", "90": "kettle"}}')
    assert tables.rarity == {"tea": 0.25, "leaf": 0.25, "kettle": 0.9}
    assert tables.support.weights == (2.0,)
    assert tables.version != parse(weights, '{"levels": {}}').version
