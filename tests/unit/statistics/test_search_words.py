"""Words and phrases of searches: whatever is typed becomes words of letters and digits."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwatch.statistics.text.search_words import MAX_CHARS, MAX_WORD_CHARS, MAX_WORDS, phrases_of, words_of


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
    words = words_of(text)
    assert all(word.isalnum() or unicodedata.category(word)[0] == "M" for word in words)
    assert words_of(" ".join(words)) == words


@pytest.mark.parametrize("symbol", ["\u0e3f", "\u0e4f", "\u3040", "\u30fb", "\u104a"])
def test_symbols_of_scripts_without_spaces_are_no_words(symbol: str) -> None:
    """A currency sign, ends of paragraphs and an unassigned code point divide words, as `$` and `.` do."""
    assert words_of(f"a{symbol}b") == ["a", "b"]
    assert words_of("\u0e01\u0e31\u0e19") == ["\u0e01", "\u0e31", "\u0e19"]


def test_long_texts_are_cut() -> None:
    """Time and size are bounded: a word, the words of a text, and the text."""
    assert words_of("x" * (MAX_WORD_CHARS + 1)) == ["x" * MAX_WORD_CHARS]
    assert len(words_of("a " * 2 * MAX_WORDS)) == MAX_WORDS
    assert words_of("-" * MAX_CHARS + "late") == []
