"""The alphabet that every admitted Python reads alike: characters of Unicode 14.0, and no later ones."""

from __future__ import annotations

import sys
import unicodedata
from itertools import pairwise

import pytest

from ragwatch.statistics.text.alphabet import visible_text

pytestmark = pytest.mark.uncounted

LATE = "\U0001e4d0\U00011f04\U00031350\u2ffc\u1c89"  # of Unicode 15.0, 15.0, 15.0, 15.1 and 16.0


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
