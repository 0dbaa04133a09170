"""How answers are worded: courtesy, citations and offers, none of which is a claim."""

from __future__ import annotations

import re
from itertools import product

import pytest

from ragwatch.core.phrases import is_abstention
from ragwatch.demo.answerer import Quote
from ragwatch.demo.questions import ROUTES
from ragwatch.demo.talk import ABSTENTION, CLOSINGS, OFFERS, OPENINGS, declined, spoken
from ragwatch.judges.claims.claims import claims_of

QUOTE = Quote(1, "teapot.brew", ("Brew leaves in hot water.", "The lid stays closed meanwhile."))
QUESTIONS = [f"How do I brew tea number {number}?" for number in range(200)]


@pytest.mark.parametrize(("opening", "closing"), [*product(OPENINGS, CLOSINGS)])
def test_courtesy_is_no_claim(opening: str, closing: str) -> None:
    """What the judge reads are the sentences of the passage only."""
    answer = f"{opening} teapot.brew: Brew leaves in hot water [1]. {closing}"
    (claim,) = claims_of(answer).claims
    assert answer[claim.start : claim.end] == "teapot.brew: Brew leaves in hot water [1]."


@pytest.mark.parametrize(("route", "mark"), [*zip(ROUTES, ("[2]", "(source 2)"), strict=True)])
def test_each_route_cites_in_one_style(route: str, mark: str) -> None:
    """The passage is cited at the end of each sentence."""
    for question in QUESTIONS:
        answer = spoken(question, QUOTE, route)
        assert re.findall(r"\[\d+\]|\(source \d+\)", answer) == [mark] * 2
        assert f"teapot.brew: Brew leaves in hot water {mark}. The lid stays closed meanwhile {mark}." in answer


def test_a_sentence_before_an_example_is_a_claim() -> None:
    """Without the example that follows in the documentation, its colon would make it a heading."""
    answer = spoken("How?", Quote(0, "teapot.brew", ("Brew leaves in hot water for five minutes:",)), ROUTES[0])
    assert "teapot.brew: Brew leaves in hot water for five minutes [1]." in answer
    assert len(claims_of(answer).claims) == 1


@pytest.mark.parametrize("route", ROUTES)
def test_a_share_of_the_answers_has_courtesy(route: str) -> None:
    """Each phrase is used, but not by every answer; the same question gets the same answer."""
    answers = [spoken(question, QUOTE, route) for question in QUESTIONS]
    assert answers == [spoken(question, QUOTE, route) for question in QUESTIONS]
    plain = sum(answer.startswith("teapot") and answer.endswith(").") + answer.endswith("].") for answer in answers)
    assert 0 < plain < len(answers)
    for phrase in (*OPENINGS, *CLOSINGS):
        assert any(phrase in answer for answer in answers), phrase


def test_an_abstention_has_an_offer() -> None:
    """It stays an abstention for the judge and for the signals of traffic."""
    answers = {declined(question) for question in QUESTIONS}
    assert answers == {f"{ABSTENTION} {offer}" for offer in OFFERS}
    for answer in answers:
        assert claims_of(answer).abstained
        assert is_abstention(answer)
