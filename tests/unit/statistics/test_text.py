"""Texts: characters that every Python reads alike, words of searches, and words of questions, strange if never seen."""

import random
import sys
import time
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.patience import cpu_limit

from ragwatch.statistics.text.alphabet import visible_text
from ragwatch.statistics.text.search_words import MAX_CHARS, MAX_WORD_CHARS, MAX_WORDS, phrases_of
from ragwatch.statistics.text.search_words import words_of as searched_words
from ragwatch.statistics.text.vocabulary import SLOTS, NoveltyMeter, Vocabulary, learn, words_of

LATE = "\U0001e4d0\U00011f04\U00031350\u2ffc\u1c89"  # of Unicode 15.0, 15.0, 15.0, 15.1 and 16.0
TOPICS = {
    "billing": ["invoice", "refund", "payment", "card", "charge", "subscription", "price", "tax", "receipt", "cancel"],
    "network": ["router", "wifi", "signal", "cable", "modem", "reset", "connection", "drop", "slow", "cable"],
}
ASKED = ["how", "do", "i", "get", "my", "when", "is", "the", "why", "does", "can", "you", "please", "what"]


def test_what_came_later_is_no_letter() -> None:
    """Each such character becomes one that no version takes for a letter; the text keeps its length."""
    assert visible_text(f"naïve {LATE} 水") == "naïve \ufffd\ufffd\ufffd\ufffd\ufffd 水"
    assert not "\ufffd".isalnum()


@pytest.mark.parametrize("text", ["", "plain", "naïve “quotes” – 日本語 ١٩٣٢ पुल \U0001f600", "\ud800 \x00"])
def test_everything_else_stays(text: str) -> None:
    """Letters, digits, emoji and even half characters of that age stay as they are."""
    assert visible_text(text) == text


@pytest.mark.parametrize("hidden", ["\u00ad", "\u200b", "\u2060", "\ufeff", "\ufe0f", "\U000e0041"])
def test_what_is_not_shown_is_in_no_word(hidden: str) -> None:
    """It stands before the word; the text keeps its length, and a second time nothing changes."""
    text = visible_text(f"The war{hidden}ran{hidden}ty.")
    assert text == f"The {2 * hidden}warranty."
    assert visible_text(text) == text


@pytest.mark.costly
def test_the_table_is_that_of_unicode_14() -> None:
    """Nothing that this Python's tables do not know is left; with the tables of 14.0, nothing else is taken.

    Planes that hold one kind of code alone are looked at here and there.
    """
    edges = (0, 0x40000, 0xE0000, 0xE1000, sys.maxunicode + 1)
    codes = [
        code for (low, high), step in zip(pairwise(edges), (1, 251) * 2, strict=True) for code in range(low, high, step)
    ]
    every = visible_text(" ".join(map(chr, codes)))[::2]
    taken = {code for code, character in zip(codes, every, strict=True) if character != chr(code)}
    unassigned = {code for code in codes if unicodedata.category(chr(code)) == "Cn"}
    assert unassigned <= taken
    assert unicodedata.unidata_version != "14.0.0" or taken == unassigned


@pytest.mark.parametrize(
    ("search", "phrases"),
    [
        ("", ()),
        ('"" " - "', ()),
        ("tea Tea TEA", (("tea",),)),
        ('"green tea" is "hot', (("green", "tea"), ("is",), ("hot",))),
        ("e-mail l'hôtel", (("e", "mail"), ("l", "hotel"))),
        ("snake_case a*b", (("snake", "case"), ("a", "b"))),
        ("将陈述", (("将", "陈", "述"),)),
        ("Straße ﬁne", (("strasse",), ("fine",))),
    ],
)
def test_searches_are_words_and_phrases(search: str, phrases: tuple[tuple[str, ...], ...]) -> None:
    """Quotes make a phrase, also without the last one; case, accents and repetitions do not count."""
    assert phrases_of(search) == phrases


@given(st.text())
def test_words_are_letters_and_digits(text: str) -> None:
    """No character that means something to a search engine is left, and words divide into themselves.

    A vowel sign of a script without spaces is a word, as each of its letters is.
    """
    words = searched_words(text)
    assert all(word.isalnum() or unicodedata.category(word)[0] == "M" for word in words)
    assert searched_words(" ".join(words)) == words


@pytest.mark.parametrize("symbol", ["\u0e3f", "\u0e4f", "\u3040", "\u30fb", "\u104a"])
def test_symbols_of_scripts_without_spaces_are_no_words(symbol: str) -> None:
    """A currency sign, ends of paragraphs and an unassigned code point divide words, as `$` and `.` do."""
    assert searched_words(f"a{symbol}b") == ["a", "b"]
    assert searched_words("\u0e01\u0e31\u0e19") == ["\u0e01", "\u0e31", "\u0e19"]


def test_long_texts_are_cut() -> None:
    """Time and size are bounded: a word, the words of a text, and the text."""
    assert searched_words("x" * (MAX_WORD_CHARS + 1)) == ["x" * MAX_WORD_CHARS]
    assert len(searched_words("a " * 2 * MAX_WORDS)) == MAX_WORDS
    assert searched_words("-" * MAX_CHARS + "late") == []


def question(topic: str, rng: random.Random) -> str:
    """Five ordinary words and three of a topic."""
    return " ".join([*rng.sample(ASKED, 5), *rng.sample(TOPICS[topic], 3)]) + "?"


@given(st.text(max_size=300))
def test_any_text_is_between_0_and_1(text: str) -> None:
    """Whatever is asked; and what was learnt often enough is not strange at all."""
    words = words_of(text)
    assert NoveltyMeter(Vocabulary()).strangeness([text]) == [1.0] * bool(words)
    assert NoveltyMeter(learn(Vocabulary(), [text] * 300)).strangeness([text]) == [0.0] * bool(words)


@given(st.text(st.characters(max_codepoint=127), max_size=100))
def test_plain_text_is_read_as_any_other(text: str) -> None:
    """The quick way for ASCII finds the words that the other one does; half a surrogate pair is no word."""
    assert [*words_of(text), "\u00e9".encode()] == words_of(f"{text} \u00e9 \ud800")


def test_a_hash_is_the_same_on_every_machine() -> None:
    """What one process has learnt another one reads; a vocabulary has one size, and a mark of its own."""
    known = learn(Vocabulary(), ["How do I open a file?"])
    assert (len(known.counts), known.questions) == (SLOTS, 1)
    assert learn(known, ["more"]).mark != known.mark != Vocabulary().mark
    assert [slot for slot, count in enumerate(known.counts) if count] == [932, 13840, 13937, 15939, 16533, 20605]


def test_each_more_makes_it_less_strange() -> None:
    """A word that was seen twice is stranger than one that was seen ten times."""
    known = NoveltyMeter(learn(Vocabulary(), ["river"] * 2 + ["mill"] * 10))
    mill, river, unheard = known.strangeness(["mill", "river", "unheard"])
    assert mill < river < unheard == 1.0
    assert known.strangeness(["mill unheard"]) == [(mill + unheard) / 2]


def test_long_questions_cost_no_more() -> None:
    """A megabyte that somebody pasted is read as far as a question goes."""
    huge = "word " * 200_000
    start = time.process_time()
    assert len(words_of(huge)) == 400
    assert time.process_time() - start < cpu_limit(0.5)


def test_another_mix_of_known_topics_is_seen() -> None:
    """All words are known, and yet: where one topic was rare, its questions are stranger."""
    rng = random.Random(2)
    asked = (question("network" if rng.random() < 0.05 else "billing", rng) for _ in range(2000))
    known = NoveltyMeter(learn(Vocabulary(), asked))
    usual, other = (known.strangeness([question(topic, rng) for _ in range(200)]) for topic in ("billing", "network"))
    assert sum(other) / 200 > sum(usual) / 200 + 0.05


def test_what_is_at_hand_is_bounded() -> None:
    """A meter that has measured many words, and long ones, measures as a fresh one does."""
    rng, known = random.Random(3), learn(Vocabulary(), ["river mill"] * 5)
    meter = NoveltyMeter(known)
    for _ in range(30):
        asked = " ".join(f"{rng.random():.17f}".replace("0.", "w") + "x" * rng.choice((0, 60)) for _ in range(20))
        assert meter.strangeness([asked + " river"]) == NoveltyMeter(known).strangeness([asked + " river"])


@given(st.lists(st.text(st.characters(max_codepoint=300), max_size=30), max_size=8))
def test_many_at_once_are_as_one_by_one(questions: list[str]) -> None:
    """Whatever stands in them, a NUL too: none takes a word from another."""
    meter = NoveltyMeter(learn(Vocabulary(), ["a b c d", "x y z a"]))
    one_by_one = [each for question in questions for each in meter.strangeness([question])]
    assert sorted(meter.strangeness(questions)) == sorted(one_by_one)
