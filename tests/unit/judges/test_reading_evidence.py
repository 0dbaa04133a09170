"""The window of evidence: which sentences a model is shown beside a claim, and how long they may be."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.draws import draws
from support.patience import cpu_limit

from ragwatch.judges.lexical.evidence import BUDGET, MAX_SENTENCE_WORDS, MAX_SENTENCES, EvidenceWindow, window
from ragwatch.judges.lexical.features import claim_words
from ragwatch.judges.lexical.passages import passage

FILLER = "the of and a in to"


def shown(claim: str, *texts: str, rarity: dict[str, float] | None = None, budget: int = BUDGET) -> EvidenceWindow:
    """The window of a claim over these contexts."""
    return window(claim_words(claim, rarity or {}), [passage(text) for text in texts], texts, budget=budget)


def test_a_claim_of_two_facts_brings_both_sentences() -> None:
    """The second sentence is the one that holds what the first lacks, not the one that repeats it."""
    found = shown(
        "The kettle boils water and the lamp dims.",
        "A kettle boils water. This kettle boils much water. It is blue. A lamp of ours dims.",
        budget=10,
    )
    assert found == EvidenceWindow("A kettle boils water. A lamp of ours dims.", (0, 0))


def test_sentences_stand_in_the_order_of_the_documents() -> None:
    """However they were chosen, the reader sees them as they were written; contexts by rank."""
    found = shown("Lions hunt zebras at night.", "They hunt.", "Night falls. Lions hunt zebras.")
    assert found == EvidenceWindow("They hunt. Night falls. Lions hunt zebras.", (1, 1))


def test_of_equals_the_fuller_sentence_goes_first_then_the_earlier() -> None:
    """With room for one: same gain, so the one that holds more of the claim; same again, so the first."""
    assert shown("Tea is green.", "Green tea here. Green tea there.", budget=3).text == "Green tea here."
    found = shown("Black coffee and milk and tea.", "Black coffee, milk. Tea it is. Tea with milk.", budget=6)
    assert found.text == "Black coffee, milk. Tea with milk."


def test_room_that_is_left_goes_to_the_sentences_that_say_most() -> None:
    """Covered terms come again, fullest sentence first; a sentence without any term never does."""
    found = shown("Tea is green.", "Green tea. Rain falls. Some tea. Tea, so green.")
    assert found.text == "Green tea. Some tea. Tea, so green."


def test_rare_words_weigh_more() -> None:
    """With room for one sentence it is the one with the rare word, though the other holds two common ones."""
    common = {"big": 0.1, "hous": 0.1}
    text = "A very big house, a big one indeed. The axolotl is a most curious kind of beast."
    assert shown("The axolotl has a big house.", text, rarity=common, budget=9).best == (0, 1)
    assert shown("The axolotl has a big house.", text, rarity=common, budget=9).text.startswith("The axolotl")


def test_no_term_no_text() -> None:
    """Nothing of the claim in any context, no context, and a claim without terms: nothing to read."""
    assert shown("Tea is green.", "Lions sleep.") == EvidenceWindow("", None)
    assert shown("Tea is green.") == EvidenceWindow("", None)
    assert shown("It is.", "It is.") == EvidenceWindow("", None)
    assert shown("Tea is green.", "") == EvidenceWindow("", None)


def test_a_passage_that_comes_twice_is_shown_once() -> None:
    """Duplicates of a retriever take no room from others."""
    found = shown("Tea is green.", "Green tea.", "Green tea.", "Some tea.")
    assert found == EvidenceWindow("Green tea. Some tea.", (0, 0))


def test_six_sentences_at_most() -> None:
    """However short they are."""
    found = shown("Tea is green.", " ".join(f"Tea number {index}." for index in range(20)))
    assert found.text.count("Tea") == MAX_SENTENCES


@pytest.mark.parametrize("before", [0, 3, 40, 500])
@pytest.mark.parametrize("behind", [0, 3, 40, 500])
def test_a_long_sentence_is_cut_around_what_was_found(before: int, behind: int) -> None:
    """The words that matter are kept wherever they stand, with text around them."""
    text = f"{'so ' * before}green tea{' so' * behind}"
    found = shown("Tea is green.", text)
    assert "green tea" in found.text
    assert len(found.text.split()) == min(MAX_SENTENCE_WORDS, before + behind + 2)


def test_a_long_sentence_is_cut_where_most_is_found() -> None:
    """Not at its first term, but where the terms that are still missing stand together."""
    text = f"tea {'so ' * 200}green tea grows here {'so ' * 200}green"
    found = shown("Green tea grows.", text).text.split()
    assert "grows" in found
    middle = found.index("grows")
    assert 20 < middle < 40


def test_what_does_not_fit_is_cut_to_the_room_that_is_left() -> None:
    """Twenty words of room: the second sentence keeps the part that holds its terms."""
    text = f"Green tea is what they all have in the hills. So {'so ' * 30} coffee {'so ' * 30}."
    found = shown("Green tea and coffee.", text, budget=20)
    assert len(found.text.split()) == 20
    assert "coffee" in found.text


def test_a_scrap_of_a_sentence_is_left_out() -> None:
    """Five words of room: no part of the long sentence, but the short one behind it, whole."""
    text = f"Green tea is all they have. Coffee {'so ' * 30}. Their tea."
    assert shown("Green tea and coffee.", text, budget=11).text == "Green tea is all they have. Their tea."


def test_a_run_without_spaces_counts_as_several_words() -> None:
    """A megabyte of base64 in one "word" does not get through."""
    found = shown("Tea is green.", f"tea {'x' * 100_000} green")
    assert len(found.text) <= MAX_SENTENCE_WORDS * 25


@pytest.mark.costly
@given(
    st.text(alphabet="tea gr\n.n-é中 1", max_size=60),
    st.lists(st.text(alphabet="tea gr\n.n-é中 1", max_size=200), max_size=4),
    st.integers(min_value=1, max_value=BUDGET),
)
@settings(max_examples=draws(50), deadline=None)
def test_any_text_stays_within_its_budget(claim: str, texts: list[str], budget: int) -> None:
    """Whatever the text: never more words than allowed, the best sentence is named exactly when there is text."""
    passages = [passage(text) for text in texts]
    found = window(claim_words(claim, {}), passages, texts, budget=budget)
    assert len(found.text.split()) <= budget
    assert (found.best is None) == (found.text == "")
    if found.best is not None:
        rank, index = found.best
        assert 0 <= index < len(passages[rank].offsets)


@pytest.mark.costly
@pytest.mark.parametrize(
    "text",
    ["tea " * 30_000, "tea. " * 30_000, "Tea is green. " * 8_000, "x" * 120_000 + " tea", "green\t|tea|" * 12_000],
    ids=["one line", "stops", "sentences", "no space", "table"],
)
def test_a_hundred_thousand_characters_take_bounded_time(text: str) -> None:
    """A hostile context costs the time of its length."""
    read = [passage(text)]
    words = claim_words(f"Green tea grows here, {FILLER} there.", {})
    start = time.process_time()
    window(words, read, [text])
    assert time.process_time() - start < cpu_limit(5.0)
