"""How answers are worded: courtesy, citations and offers, none of which is a claim; and inventions."""

from __future__ import annotations

import pytest

from ragwatch.demo.answerer import ABSTENTION, CLOSINGS, OFFERS, OPENINGS, Quote, declined, spoken, with_inventions
from ragwatch.demo.questions import ROUTES
from ragwatch.judges.claims.claims import claims_of
from ragwatch.statistics.text.phrases import is_abstention


@pytest.mark.parametrize(
    ("sentence", "changed"),
    [
        ("It waits up to 5 seconds.", "It waits up to 16 seconds."),
        ("Return the first line.", "Return the last line."),
        ("Raise KeyError if the key is missing.", "Raise KeyError."),
        ("It does not close the file.", "It does close the file."),
        ("Join all threads.", "Join all threads, "),
    ],
)
def test_one_sentence_is_changed_and_one_is_added(sentence: str, changed: str) -> None:
    """A number, a word, a condition, a negation, else a clause; others stay, and the same question gets the same."""
    answer = with_inventions("Why?", [sentence])
    assert (answer[0][: len(changed)], len(answer)) == (changed, 2)
    three = [sentence, "Close it.", "Open it."]
    longer = with_inventions("Why?", three)
    assert sum(one != other for one, other in zip(longer, three, strict=False)) == 1
    assert with_inventions("Why?", three) == longer


QUOTE = Quote(1, "teapot.brew", ("Brew leaves in hot water:", "The lid stays closed meanwhile."))
QUESTIONS = [f"How do I brew tea number {number}?" for number in range(200)]


@pytest.mark.parametrize(("route", "mark"), [*zip(ROUTES, ("[2]", "(source 2)"), strict=True)])
def test_courtesy_is_no_claim(route: str, mark: str) -> None:
    """What the judge reads are the cited sentences of the passage; each phrase is used, but not by every answer."""
    answers = [spoken(question, QUOTE, route) for question in QUESTIONS]
    assert answers == [spoken(question, QUOTE, route) for question in QUESTIONS]
    for answer in answers:
        assert [answer[claim.start : claim.end] for claim in claims_of(answer).claims] == [
            f"teapot.brew: Brew leaves in hot water {mark}.",
            f"The lid stays closed meanwhile {mark}.",
        ]
    for phrase in (*OPENINGS, *CLOSINGS):
        assert 0 < sum(phrase in answer for answer in answers) < len(answers), phrase


def test_an_abstention_has_an_offer() -> None:
    """It stays an abstention for the judge and for the signals of traffic."""
    answers = {declined(question) for question in QUESTIONS}
    assert answers == {f"{ABSTENTION} {offer}" for offer in OFFERS}
    for answer in answers:
        assert claims_of(answer).abstained
        assert is_abstention(answer)
