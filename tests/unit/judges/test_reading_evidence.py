"""The window of evidence: which sentences a model is shown beside a claim, and how long they may be."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.draws import draws

from ragwatch.judges.lexical.features import claim_words
from ragwatch.judges.lexical.passages import passage
from ragwatch.judges.local.cross_encoder import BUDGET, MAX_SENTENCE_WORDS, MAX_SENTENCES, window


def shown(claim: str, *texts: str, rarity: dict[str, float] | None = None, budget: int = BUDGET) -> str:
    """The window of a claim over these contexts."""
    return window(claim_words(claim, rarity or {}), [passage(text) for text in texts], texts, budget=budget)


@pytest.mark.parametrize(
    ("claim", "texts", "budget", "evidence"),
    [
        pytest.param(
            "The kettle boils water and the lamp dims.",
            ["A kettle boils water. This kettle boils much water. It is blue. A lamp of ours dims."],
            10,
            "A kettle boils water. A lamp of ours dims.",
            id="a claim of two facts brings both sentences, not the one that repeats the first",
        ),
        pytest.param(
            "Lions hunt zebras at night.",
            ["They hunt.", "Night falls. Lions hunt zebras."],
            BUDGET,
            "They hunt. Night falls. Lions hunt zebras.",
            id="sentences stand in the order of the documents, contexts by rank",
        ),
        pytest.param(
            "Tea is green.", ["Green tea here. Green tea there."], 3, "Green tea here.", id="of equals the earlier one"
        ),
        pytest.param(
            "Black coffee and milk and tea.",
            ["Black coffee, milk. Tea it is. Tea with milk."],
            6,
            "Black coffee, milk. Tea with milk.",
            id="of equal gains the fuller sentence",
        ),
        pytest.param(
            "Tea is green.",
            ["Green tea. Rain falls. Some tea. Tea, so green."],
            BUDGET,
            "Green tea. Some tea. Tea, so green.",
            id="room that is left goes to the sentences that say most, never to one without a term",
        ),
        pytest.param("Tea is green.", ["Lions sleep."], BUDGET, "", id="nothing of the claim"),
        pytest.param("Tea is green.", [], BUDGET, "", id="no context"),
        pytest.param("It is.", ["It is."], BUDGET, "", id="a claim without terms"),
        pytest.param("Tea is green.", [""], BUDGET, "", id="an empty context"),
        pytest.param(
            "Tea is green.",
            ["Green tea.", "Green tea.", "Some tea."],
            BUDGET,
            "Green tea. Some tea.",
            id="a passage that comes twice is shown once",
        ),
        pytest.param(
            "Green tea and coffee.",
            [f"Green tea is all they have. Coffee {'so ' * 30}. Their tea."],
            11,
            "Green tea is all they have. Their tea.",
            id="a scrap of a sentence is left out for the short one behind it",
        ),
    ],
)
def test_which_sentences_are_shown(claim: str, texts: list[str], budget: int, evidence: str) -> None:
    """What each of these claims brings from its contexts."""
    assert shown(claim, *texts, budget=budget) == evidence


def test_rare_words_weigh_more() -> None:
    """With room for one sentence it is the one with the rare word, though the other holds two common ones."""
    common = {"big": 0.1, "hous": 0.1}
    text = "A very big house, a big one indeed. The axolotl is a most curious kind of beast."
    assert shown("The axolotl has a big house.", text, rarity=common, budget=9).startswith("The axolotl")


def test_six_sentences_at_most() -> None:
    """However short they are."""
    found = shown("Tea is green.", " ".join(f"Tea number {index}." for index in range(20)))
    assert found.count("Tea") == MAX_SENTENCES


@pytest.mark.parametrize(
    ("claim", "text", "budget", "words", "kept"),
    [
        *(
            ("Tea is green.", f"{'so ' * before}green tea{' so' * behind}", BUDGET, before + behind + 2, "green tea")
            for before in (0, 3, 500)
            for behind in (0, 3, 500)
        ),
        # Not at its first term, but where the terms that are still missing stand together.
        (
            "Green tea grows.",
            f"tea {'so ' * 200}green tea grows here {'so ' * 200}green",
            BUDGET,
            999,
            "tea grows here so",
        ),
        # To the room that is left behind another sentence.
        (
            "Green tea and coffee.",
            f"Green tea is what they all have in the hills. So {'so ' * 30} coffee {'so ' * 30}.",
            20,
            20,
            "coffee",
        ),
    ],
)
def test_a_long_sentence_is_cut_around_what_matters(claim: str, text: str, budget: int, words: int, kept: str) -> None:
    """The words of the claim are kept wherever they stand, with text around them."""
    found = shown(claim, text, budget=budget)
    assert kept in found
    assert len(found.split()) == min(MAX_SENTENCE_WORDS, words)


def test_a_run_without_spaces_counts_as_several_words() -> None:
    """A megabyte of base64 in one "word" does not get through."""
    assert len(shown("Tea is green.", f"tea {'x' * 100_000} green")) <= MAX_SENTENCE_WORDS * 25


@pytest.mark.costly
@given(
    st.text(alphabet="tea gr\n.n-é中 1", max_size=60),
    st.lists(st.text(alphabet="tea gr\n.n-é中 1", max_size=200), max_size=4),
    st.integers(min_value=1, max_value=BUDGET),
)
@settings(max_examples=draws(50), deadline=None)
def test_any_text_stays_within_its_budget(claim: str, texts: list[str], budget: int) -> None:
    """Whatever the text, there are never more words than allowed."""
    assert len(shown(claim, *texts, budget=budget).split()) <= budget
