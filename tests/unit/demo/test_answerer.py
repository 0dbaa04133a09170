"""The answerer: quotes whole sentences of a passage, or nothing."""

from __future__ import annotations

import pytest

from ragwatch.demo.answerer import MAX_SENTENCES, Answerer, Quote
from ragwatch.demo.corpus import Passage

TEA = Passage(
    "teapot.brew#0",
    "teapot.brew",
    "teapot",
    "teapot.brew: Brew leaves in hot water. The lid stays closed meanwhile. Green leaves need cooler water. "
    "Raises Spill.",
)
COFFEE = Passage("press.push#0", "press.push", "press", "press.push: Push the plunger down slowly. Grounds stay below.")


@pytest.fixture
def answerer() -> Answerer:
    """An answerer that knows two passages."""
    return Answerer((TEA, COFFEE))


def test_an_answer_is_made_of_its_passage_only(answerer: Answerer) -> None:
    """Sentences as they stand: nothing a judge could call invented."""
    answer = answerer.answer("How do I brew leaves in water?", [TEA, COFFEE])
    assert answer == Quote(0, "teapot.brew", ("Brew leaves in hot water.",))


def test_a_further_sentence_joins_when_it_adds_to_the_answer(answerer: Answerer) -> None:
    """Words the first sentence leaves open are answered by another, in the order of the passage."""
    answer = answerer.answer("Is green tea in teapot.brew ready when the lid stays closed?", [TEA])
    assert answer is not None
    assert answer.sentences == ("The lid stays closed meanwhile.", "Green leaves need cooler water.")


def test_an_answer_has_at_most_three_sentences(answerer: Answerer) -> None:
    """However much is asked, the answer stays short."""
    answer = answerer.quote("brew leaves hot lid closed green cooler raises spill", [TEA], 0)
    assert len(answer.sentences) == MAX_SENTENCES


def test_the_better_passage_wins_whatever_its_rank(answerer: Answerer) -> None:
    """The retriever's order is trusted only as far as the words go."""
    answer = answerer.answer("push the plunger slowly", [TEA, COFFEE])
    assert answer == Quote(1, "press.push", ("Push the plunger down slowly.",))


@pytest.mark.parametrize(
    ("question", "passages"),
    [("How do I brew green leaves?", []), ("How do I brew green leaves?", [COFFEE]), ("", [TEA])],
)
def test_what_no_passage_covers_is_not_answered(answerer: Answerer, question: str, passages: list[Passage]) -> None:
    """Nothing is quoted rather than a guess; nothing asked is nothing covered."""
    assert answerer.answer(question, passages) is None


def test_coverage_weighs_rare_words_more(answerer: Answerer) -> None:
    """A word nobody documents counts most: it decides that the answer is unknown."""
    assert answerer.coverage("brew kubernetes", TEA.text) < 0.5
    assert answerer.coverage("brew water", TEA.text) == 1.0
