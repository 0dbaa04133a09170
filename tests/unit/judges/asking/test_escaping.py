"""No foreign text can forge a line of the page, a mark or a fence, and none of it is lost."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.page_lines import page_lines

from ragwatch.judges.claims.sentences import spans
from ragwatch.judges.llm import page as pages
from ragwatch.judges.llm.page import MARK, MarkedLine, MarkedText, PromptPage, RandomMarks, escape, unescape

PIECES = [
    "¤",
    "¤n",
    "¤¤",
    "n",
    "200b;",
    "|",
    "| ",
    "kqv.1|",
    "kqv|",
    "bcdf.123456|",
    "<",
    "</",
    "sample 9f3c2a71>",
    "SAMPLE",
]
PIECES += ["\n", "\r\n", "\u2028", "\x85", "\x1c", "[kqv]", "ANSWER", "none", "\u200b", "\ud800", ". ", "1. "]
ANY = st.text(st.characters(exclude_categories=())) | st.lists(st.sampled_from(PIECES)).map("".join)


@given(ANY)
def test_round_trip(text: str) -> None:
    """Every text comes back from its escaped form, character by character."""
    assert unescape(escape(text)) == text


@given(ANY)
def test_an_escaped_text_is_one_visible_line(text: str) -> None:
    """No line break by any reader's rule, nothing unseen, no mark with its bar, no opening of a fence."""
    written = escape(text)
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


@pytest.mark.parametrize("text", ["| a | b |", "1 < 2", "a|b", "`x | y`", "The sample's <b>bold</b>", "Größe: 5 €"])
def test_ordinary_text_is_left_alone(text: str) -> None:
    """Tables, comparisons, code and other scripts are shown as they are."""
    assert escape(text) == text


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


@given(st.lists(ANY, min_size=1, max_size=4), st.text())
def test_no_line_is_without_a_mark_or_a_heading_of_ours(texts: list[str], seed: str) -> None:
    """Whatever the texts hold, each line of the page is marked, a heading, an id in brackets or the fence."""
    page = a_page(RandomMarks(seed), texts)
    rendered = page.render()
    assert len(rendered.splitlines()) == rendered.count("\n") + 1
    blocks = [
        *(turn for _, turn in page.history),
        *(page.contexts or ()),
        page.answer,
        page.question,
        page.needs,
        page.reference,
    ]
    marks = {block.mark for block in blocks if block}
    assert {line.id.partition(".")[0] for _, line in page_lines(rendered)} <= marks
    assert rendered.count(page.fence) == 2 or any(page.fence in text for text in texts)


@given(st.lists(ANY, min_size=2, max_size=3))
def test_nothing_but_space_is_lost(texts: list[str]) -> None:
    """The lines of a context, and those of the answer, put together are the text without the space at the cuts."""
    page = a_page(RandomMarks("seed"), texts)
    seen = page_lines(page.render())
    for block, text in zip((page.answer, *(page.contexts or ())), texts, strict=True):
        shown = "".join(line.meant for _, line in seen if line.id.partition(".")[0] == block.mark)
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
