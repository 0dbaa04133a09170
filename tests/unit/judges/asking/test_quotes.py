"""A quote counts only where its words stand in the context, whole, in order, and are enough to say something."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwatch.judges.llm.escaping import escape
from ragwatch.judges.llm.prompt.quotes import folded, is_verbatim, quoted_text

CONTEXT = "Refunds take “five” days—or so.\nThe heart of\u200b the matter: it is not free. Äpfel kosten 3 €. ¤ tea|milk"


@pytest.mark.parametrize(
    "quote",
    [
        "Refunds take",
        'refunds TAKE "five" days-or so',
        "so. The heart",
        "so.¤nThe heart of¤200b; the matter",
        "the heart of the matter",
        "  'heart of the matter' ",
        "äpfel kosten 3 €",
        "not free.",
        "kqv.12| heart of the matter",
        "€. ¤¤ tea¤bmilk",
        "tea|milk",
        "heart of the matter...",
    ],
)
def test_verbatim(quote: str) -> None:
    """Case, space, typography, escapes and marks of the page, signs at the ends are folded; the words are its own."""
    assert is_verbatim(quote, folded(CONTEXT))


@pytest.mark.parametrize(
    "quote",
    [
        "",
        " . ",
        "refunds take six days",
        "art of the matter",
        "heart of the matt",
        "refunds ... days",
        "the matter is free",
        "refunds",
        "it is",
        "it is not",
        "¤¤¤",
        CONTEXT + CONTEXT,
    ],
)
def test_not_verbatim(quote: str) -> None:
    """Changed, cut inside a word, patched, one word, or function words that stand everywhere."""
    assert not is_verbatim(quote, folded(CONTEXT))


def test_a_quote_of_a_whole_page_is_none() -> None:
    """More than twenty words are a copy, not a quote; the whole of a short context is one, be it a single word."""
    words = " ".join(f"word{number}" for number in range(30))
    assert is_verbatim(" ".join(words.split()[:20]), folded(words))
    assert not is_verbatim(" ".join(words.split()[:21]), folded(words))
    assert is_verbatim("Yes", folded("Yes."))
    assert not is_verbatim("Yes", folded("Yes, it is so."))


def test_scripts_without_spaces() -> None:
    """Two characters count as a word where words are not set apart."""
    context = folded("退款需要五天。运费是免费的，周末也一样。")
    assert is_verbatim("退款需要五天", context)
    assert not is_verbatim("退款", context)
    assert not is_verbatim("退款需要六天", context)
    assert not is_verbatim("退" * 60, folded("退" * 100))


@given(st.lists(st.from_regex(r"[a-zäß]{5,9}[¤|\u200b]?", fullmatch=True), min_size=13, max_size=16), st.data())
def test_any_run_of_words_is_found(words: list[str], data: st.DataObject) -> None:
    """Three to twelve words in a row are a quote, as they stand and as the page shows them."""
    first = data.draw(st.integers(0, len(words) - 12))
    quote = " ".join(words[first : first + data.draw(st.integers(3, 12))])
    context = folded("\n".join(words))
    assert is_verbatim(escape(quote), context)


@given(st.text(), st.text(max_size=30).filter(lambda text: "¤" not in text))
def test_what_is_accepted_is_there(context: str, quote: str) -> None:
    """Whatever the texts: an accepted quote, but for signs at its ends, is a part of the folded context."""
    assert not is_verbatim(quote, folded(context)) or folded(quoted_text(quote)).strip(" \t\"'`.,;:!?…()[]-") in folded(
        context
    )


@given(st.text(max_size=40), st.text(max_size=40))
def test_folding_twice_changes_nothing(before: str, after: str) -> None:
    """Folding is the same for a quote and for the text around it."""
    once = folded(f"{before} {after}")
    assert folded(once) == once
