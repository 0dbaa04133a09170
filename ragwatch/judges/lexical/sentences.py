"""Sentences: where the sentences and list items of a text start and end, as character offsets.

A text is read line by line. A line that opens with a list marker is an item; a line that goes on in lower case after
a line without a stop continues that line; within a line, a stop followed by space and a new start ends a sentence.
Every step looks at a bounded neighbourhood, so the time is linear in the text, hostile or not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from unicodedata import category

_STOP = re.compile(r"[.!?…]+|[。！？]+")
_CLOSERS = re.compile(r"""["'”’»)\]*_`]{0,4}(?:\s?\[\d{1,3}(?:[,;–-]\s?\d{1,3}){0,8}\]){0,6}""")
_MARKER = re.compile(r"[ \t>]{0,64}(?:[-*+•◦▪‣·–]|\(?\d{1,3}[.)]|\(?[a-zA-Z][)])[ \t]{1,64}(?=\S)")
_FENCE = re.compile(r"[ \t]{0,16}(?:```|~~~)")
_CODE = re.compile(r"`[^`\n]{1,200}`")
_BEFORE = 16  # characters looked at before a stop; no abbreviation is longer


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Never the end of a sentence: something always follows.
_LEADING = _words(
    "dr mr mrs ms prof st mt ft sen rep gov gen col capt lt sgt rev hon pres vs e.g i.e eg ie cf fig figs eq eqs sec ch"
    " vol pp approx ca al viz"
)
# The end of a sentence only when a typical opening word follows.
_TRAILING = _words(
    "etc inc ltd co corp jr sr u.s u.k u.n e.u u.s.a a.m p.m b.c a.d ph.d m.d d.c est dept univ jan feb mar apr jun jul"
    " aug sep sept oct nov dec"
)
_FIRST = re.compile(r"[:;]\s{0,3}(?=\(?1$)")  # "... these steps: 1. Boil the water. 2. Add the tea."
_BEFORE_DIGIT = frozenset({"no", "nos", "p", "art", "op", "sect"})
_OPENING = _words(
    "the a an this that these those it its he she they we you i in on at as if when while however but and so there his"
    " her their our for to by from with after before since although because another some many most all both each no not"
    " also then thus therefore moreover additionally according overall"
)
_WORD = re.compile(r"[^\W\d_]{1,16}")
_CALL = re.compile(r"[a-z_]\w{0,40}[._(]\w?")


class SentenceSpan(NamedTuple):
    """One sentence or list item: `text[start:end]`, no white space at either end.

    Attributes:
        start: Offset of the first character.
        end: Offset behind the last character.
        item: True when it opens a list item.
        block: True for a fenced block of code, which is kept whole.
        line: Number of the paragraph line it belongs to; sentences of one line share it.
    """

    start: int
    end: int
    item: bool = False
    block: bool = False
    line: int = 0


def spans(text: str) -> list[SentenceSpan]:
    r"""Sentences, list items and code blocks of a text, in order.

    >>> text = "Dr. No paid $1.50 in the U.S. in May. He left.\n1. First step\n2. See os.path."
    >>> [text[span.start:span.end] for span in spans(text)]
    ['Dr. No paid $1.50 in the U.S. in May.', 'He left.', 'First step', 'See os.path.']
    """
    return list(iterate_spans(text))


def iterate_spans(text: str) -> Iterator[SentenceSpan]:
    """The same one by one, so that a caller can stop early."""
    for line, (start, end, item, block) in enumerate(_lines(text)):
        if block:
            yield SentenceSpan(start, end, item=False, block=True, line=line)
            continue
        for first, last in _sentences(text, start, end):
            yield SentenceSpan(first, last, item=item and first == start, line=line)


def _lines(text: str) -> Iterator[tuple[int, int, bool, bool]]:
    """(start, end, is an item, is code) of each logical line, trimmed, blank ones left out."""
    pending: tuple[int, int, bool] | None = None
    fence: int | None = None
    position = 0
    for raw in text.splitlines(keepends=True):
        start, position = position, position + len(raw)
        end = start + len(raw.rstrip())
        if _FENCE.match(raw):
            if pending:
                yield (*pending, False)
                pending = None
            if fence is not None:
                yield (fence, end, False, True)
            fence = start + len(raw) - len(raw.lstrip()) if fence is None else None
            continue
        if fence is not None:
            continue
        marker = _MARKER.match(raw)
        begin = start + (marker.end() if marker else len(raw) - len(raw.lstrip()))
        if pending and (begin >= end or marker or not _continues(text, pending[1], begin)):
            yield (*pending, False)
            pending = None
        if begin < end:
            pending = (pending[0], end, pending[2]) if pending else (begin, end, marker is not None)
    if pending:
        yield (*pending, False)
    if fence is not None and fence < len(text.rstrip()):
        yield (fence, len(text.rstrip()), False, True)


def _continues(text: str, end: int, begin: int) -> bool:
    """Whether a line is the wrapped rest of the line before it."""
    return _is_lower(text[begin]) and text[end - 1] not in ".!?…:;。！？"


def _is_lower(sign: str) -> bool:
    """Whether it is a small letter; `str.islower` also knows modifier letters, and not the same ones in all Pythons."""
    return category(sign) == "Ll"


def _sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Trimmed (start, end) of each sentence of one logical line."""
    for stop in _stops(text, start, end):
        closed = _CLOSERS.match(text, stop.end(), end)
        after = closed.end() if closed else stop.end()
        if after >= end:
            break
        begin = after
        while begin < end and text[begin].isspace():
            begin += 1
        wide = stop.group()[0] in "。！？"
        listed = None if wide else _FIRST.search(text, max(start, stop.start() - _BEFORE), stop.start())
        if listed and after < begin < end:
            yield (start, listed.start() + 1)
            start = begin
            continue
        if (begin == after and not wide) or begin >= end or not (wide or _ends(text, stop, begin, end)):
            continue
        yield (start, after)
        start = begin
    if start < end:
        yield (start, end)


def _stops(text: str, start: int, end: int) -> Iterator[re.Match[str]]:
    """Stops outside inline code, in order."""
    position = start
    for code in _CODE.finditer(text, start, end):
        yield from _STOP.finditer(text, position, code.start())
        position = code.end()
    yield from _STOP.finditer(text, position, end)


def _ends(text: str, stop: re.Match[str], begin: int, end: int) -> bool:
    """Whether a stop ends a sentence, given the token before it and the first character of what follows."""
    first = text[begin]
    if _is_lower(first):
        call = _CALL.match(text, begin, end)
        if not call:
            return False
    if stop.group() != ".":
        return True
    before = text[max(0, stop.start() - _BEFORE) : stop.start()].rsplit(maxsplit=1)
    token = before[-1].strip("([{\"'“‘*_").lower() if before and not before[-1][-1:].isspace() else ""
    if token in _LEADING or (token in _BEFORE_DIGIT and first.isdigit()):
        return False
    if token in _TRAILING or (len(token) == 1 and token.isalpha()):
        word = _WORD.match(text, begin, end)
        return word is not None and len(token) > 0 and word.group().lower() in _OPENING and first.isupper()
    return True
