"""A quote counts only where its words stand in the context; no foreign text can forge a line of the page."""

import json
import re
import sys
import unicodedata
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loopback.page import page_lines
from support.reading_model import HONEST, Paper, ask_about

from ragwatch.judges.claims.sentences import spans
from ragwatch.judges.llm import page as pages
from ragwatch.judges.llm.page import MARK, MarkedLine, MarkedText, PromptPage, RandomMarks, escape, unescape
from ragwatch.judges.llm.quotes import folded, is_verbatim, quoted_text, shares_words

PIECES = ["¤", "¤n", "¤¤", "n", "200b;", "|", "| ", "kqv.1|", "kqv|", "bcdf.123456|", "<", "</", "sample 9f3c2a71>"]
PIECES += ["\n", "\r\n", "\u2028", "\x85", "\x1c", "[kqv]", "ANSWER", "none", "\u200b", "\ud800", ". ", "1. ", "SAMPLE"]
ANY = st.text(st.characters(exclude_categories=())) | st.lists(st.sampled_from(PIECES)).map("".join)


@given(ANY)
def test_an_escaped_text_is_one_visible_line(text: str) -> None:
    """No line break by any reader's rule, nothing unseen, no mark with its bar, no opening of a fence; nothing lost."""
    written = escape(text)
    assert unescape(written) == text
    assert len(written.splitlines()) <= 1
    assert not any(unicodedata.category(each) in {"Cc", "Cs", "Zl", "Zp"} for each in written)
    assert re.search(rf"{MARK}\|", written, re.IGNORECASE) is None
    assert re.search("</?sample", written, re.IGNORECASE) is None
    written.encode()  # no lone surrogate is left


@pytest.mark.uncounted
def test_every_unseen_character_is_escaped() -> None:
    """Controls, formats, surrogates, line and paragraph separators: all of Unicode, as this Python knows it."""
    unseen = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    wrong = [
        f"{code:x}"
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code)) in unseen and escape(chr(code)) == chr(code)
    ]
    assert wrong == []
    assert all(escape(each) != each for each in "\ufe0f\U000e0100\u3164\u115f\u034f")
    ordinary = ("| a | b |", "1 < 2", "a|b", "`x | y`", "The sample's <b>bold</b>", "Größe: 5 €")
    assert tuple(map(escape, ordinary)) == ordinary  # tables, comparisons, code and other scripts


def a_page(marks: RandomMarks, texts: Sequence[str]) -> PromptPage:
    """A page whose every section holds foreign text."""
    answer, *rest = texts
    cut = [(each.start, each.end) for each in spans(answer)]
    return PromptPage(
        fence=marks.fence,
        history=tuple(("user", pages.unnumbered(marks, text)) for text in rest),
        question=MarkedText(marks.new(), (MarkedLine(answer, 1),)),
        contexts=tuple(pages.sentences(marks, each, [(one.start, one.end) for one in spans(each)]) for each in rest),
        needs=MarkedText(marks.new(), (MarkedLine(answer, 1),)),
        answer=pages.claims(marks, answer, cut),
        reference=pages.claims(marks, answer, cut),
    )


@given(st.lists(ANY, min_size=2, max_size=4), st.text())
def test_no_line_is_without_a_mark_or_a_heading_of_ours(texts: list[str], seed: str) -> None:
    """Whatever the texts hold, each line of the page is marked, a heading, an id in brackets or the fence.

    The lines of a context, and those of the answer, put together are the text without the space at the cuts.
    """
    page = a_page(RandomMarks(seed), texts)
    rendered = page.render()
    assert len(rendered.splitlines()) == rendered.count("\n") + 1
    contexts = page.contexts or ()
    blocks = [*(turn for _, turn in page.history), *contexts, page.answer, page.question, page.needs, page.reference]
    seen = [(line.id.partition(".")[0], line.meant) for _, line in page_lines(rendered)]
    assert {mark for mark, _ in seen} <= {block.mark for block in blocks if block}
    assert rendered.count(page.fence) == 2 or any(page.fence in text for text in texts)
    for block, text in zip((page.answer, *contexts), texts, strict=True):
        shown = "".join(meant for mark, meant in seen if mark == block.mark)
        assert "".join(shown.split()) == "".join(text.split())


def test_marks_differ_and_follow_the_seed() -> None:
    """Thousands of ids are all different, hold no vowel, and are the same for the same seed only."""
    marks, again, other = RandomMarks("a"), RandomMarks("a"), RandomMarks("b")
    drawn = [marks.new() for _ in range(3000)]
    assert len(set(drawn)) == len(drawn)
    assert all(re.fullmatch(MARK, each) for each in drawn)
    assert drawn[:50] == [again.new() for _ in range(50)]
    assert drawn[:50] != [other.new() for _ in range(50)]
    assert (marks.fence, re.fullmatch("[0-9a-f]{8}", marks.fence) is not None) == (again.fence, True)
    assert marks.fence != other.fence


CONTEXT = "Refunds take “five” days—or so.\nThe heart of\u200b the matter: it is not free. Äpfel kosten 3 €. ¤ tea|milk"


VERBATIM = (
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
)
OTHERS = ("", " . ", "refunds take six days", "art of the matter", "heart of the matt", "refunds ... days")
OTHERS += ("the matter is free", "refunds", "it is", "it is not", "¤¤¤", CONTEXT + CONTEXT)


def test_what_is_verbatim() -> None:
    """Case, space, typography, escapes and marks of the page, signs at the ends are folded; the words are its own.

    What is changed, cut inside a word, patched, one word, or function words that stand everywhere, is not. More than
    twenty words are a copy, not a quote; the whole of a short context is one, be it a single word.
    """
    assert [quote for quote in VERBATIM if not is_verbatim(quote, folded(CONTEXT))] == []
    assert [quote for quote in OTHERS if is_verbatim(quote, folded(CONTEXT))] == []
    words = [f"word{number}" for number in range(30)]
    copies = [is_verbatim(" ".join(words[:count]), folded(" ".join(words))) for count in (20, 21)]
    short = [is_verbatim("Yes", folded(context)) for context in ("Yes.", "Yes, it is so.")]
    assert (copies, short) == ([True, False], [True, False])


def test_scripts_without_spaces() -> None:
    """Two characters count as a word where words are not set apart."""
    context = folded("退款需要五天。运费是免费的，周末也一样。")
    assert is_verbatim("退款需要五天", context)
    assert not is_verbatim("退款", context)
    assert not is_verbatim("退款需要六天", context)
    assert not is_verbatim("退" * 60, folded("退" * 100))


@pytest.mark.uncounted
@given(st.lists(st.from_regex(r"[a-zäß]{5,9}[¤|\u200b]?", fullmatch=True), min_size=13, max_size=16), st.data())
def test_any_run_of_words_is_found(words: list[str], data: st.DataObject) -> None:
    """Three to twelve words in a row are a quote, as they stand and as the page shows them."""
    first = data.draw(st.integers(0, len(words) - 12))
    quote = " ".join(words[first : first + data.draw(st.integers(3, 12))])
    context = folded("\n".join(words))
    assert is_verbatim(escape(quote), context)


@given(st.text(), st.text(max_size=30).filter(lambda text: "¤" not in text and ".." not in text and "…" not in text))
def test_what_is_accepted_is_there(context: str, quote: str) -> None:
    """Whatever the texts: the words of an accepted quote are words of the context, in a row."""
    assert not is_verbatim(quote, folded(context)) or f" {folded(quoted_text(quote))} " in f" {folded(context)} "


MARKED_UP = (
    "**Refunds** take five days.",
    "Refunds *take* __five__ days.",
    "Refunds take [five days](https://shop.example/terms_(2024)).",
    "Refunds take five[1] days[^2].",
    "| Refunds | take five days |",
    "`Refunds` take\n> five days",
    "Refunds\u00a0take <b>five</b>&nbsp;days",
    "“Refunds” take – five – days",
)


@pytest.mark.parametrize("context", MARKED_UP)
def test_markup_and_typography_are_no_words(context: str) -> None:
    """A model may leave out the markup of a context, or keep it: the words are the same."""
    for quote in ("Refunds take five days", "**Refunds** take `five` days.", "refunds take ... five days"):
        assert is_verbatim(quote, folded(context)), quote


def test_markup_hides_no_change() -> None:
    """Whatever stands between them, other words, numbers and amounts are other words."""
    context = folded("**Refunds** take [five days](https://x.org) and cost 3.5 %. No fee of 5 € is due.")
    others = "refunds take six days|cost 35 %|cost 3 %|cost 3.5 €|fee of 5 $|https x org|5 %. No fee"
    assert [quote for quote in others.split("|") if is_verbatim(quote, context)] == []


def test_an_ellipsis_stands_for_words_in_between() -> None:
    """Each part is enough words of the context, in its order, and the parts are near each other."""
    context = folded(
        f"Refunds to a card take, in most cases, five working days. {'Other words. ' * 60}Shipping is free."
    )
    for quote in ("Refunds to a card … five working days", "to a card ... most cases [...] working days"):
        assert is_verbatim(quote, context)
    for quote in ("five working days ... Refunds to a card", "Refunds ... days", "to a card ... Shipping is free"):
        assert not is_verbatim(quote, context)


def test_a_quote_without_a_word_of_the_claim_proves_nothing() -> None:
    """A fooled model has to quote something that speaks of the claim; one common word of many is not enough."""
    claim = "covers theft abroad for nine years"
    assert not shares_words("It covers", claim, None)
    assert not shares_words("the sky is blue", claim, None)
    assert shares_words("against theft and loss", claim, None)
    assert shares_words("is free", "Shipping is free.", None)
    assert shares_words("no fee is due", "No.", "Is there a fee?")
    assert not shares_words("blue sky", "No.", "Is there a fee?")


ANSWER = "Returns are accepted within thirty days, and return shipping costs five euros."
PASSAGES = (
    "Returns are accepted within thirty days.",
    "Return shipping costs five euros.",
    "Cats purr at night.",
    "We accept returns within thirty days; return shipping costs five euros.",
)
QUOTES = (
    "accepted within thirty days",
    "shipping costs five euros",
    "purr at night",
    "within thirty days; return shipping",
)


def cells(verdict: str, ranks: tuple[int, ...], answer: str = ANSWER) -> tuple[Any, ...]:
    """Cells of the one claim, where a reply gives it this verdict with quotes from these contexts."""
    reading = ask_about("What about returns?", answer, *PASSAGES)
    (ask,) = reading.prompts()
    reply, marks = HONEST.reply(ask), list(Paper(ask.user).contexts)
    quotes = [{"context": marks[rank], "quote": QUOTES[rank]} for rank in ranks]
    reply["claims"][0] |= {"verdict": verdict, "cells": quotes}
    reading.take([ask.check(json.dumps(reply))])
    (claim,) = reading.evidence().claims
    return tuple(claim.cells)


@pytest.mark.parametrize(
    ("verdict", "ranks", "expected"),
    [
        ("supported", (0, 3), ("alone", None, None, "alone")),
        ("supported", (0, 1), ("jointly", "jointly", None, None)),  # each has but half of the claim
        ("supported_jointly", (0, 1), ("jointly", "jointly", None, None)),
        ("supported_jointly", (1, 3), (None, "jointly", None, "jointly")),
        ("supported_jointly", (1,), (None, "alone", None, None)),
        ("contradicted", (1,), (None, "informed", None, None)),
        ("not_in_context", (0,), ("informed", None, None, None)),
    ],
)
def test_verdict_and_cells_of_a_context(verdict: str, ranks: tuple[int, ...], expected: Any) -> None:
    """A claim that one context supports has nothing joint; one that none supports may have been taken from one."""
    assert cells(verdict, ranks) == expected


def test_a_quote_without_a_word_of_the_claim_shows_no_use() -> None:
    """Then the words decide, as they do where a reply has no cell for an unsupported claim."""
    answer = "Returns are accepted within ninety days."
    by_words = cells("not_in_context", (), answer)
    assert by_words == cells("not_in_context", (2,), answer)
    assert by_words[2] is None
