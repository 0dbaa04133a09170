"""Splits a text into sentences and list items, as character offsets.

A text is split line by line. A line that starts with a list marker is an item; a line that starts in lower case after a
line without a stop continues that line; within a line, a stop followed by space and a new start ends a sentence.
Every step reads a bounded number of characters, so the time is linear in the text, even for hostile input.
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
_MAX_TOKEN_CHARS = 16  # characters read before a stop; no abbreviation is longer


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Abbreviations that never end a sentence.
_LEADING = _words(
    "dr mr mrs ms prof st mt ft sen rep gov gen col capt lt sgt rev hon pres vs e.g i.e eg ie cf fig figs eq eqs sec ch"
    " vol pp approx ca al viz"
)
# Abbreviations that end a sentence only before a typical first word.
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
        end: Offset after the last character.
        item: Whether it starts a list item.
        block: Whether it is a fenced code block, which is not split.
        line: Number of the paragraph line it belongs to; sentences of one line share it.
    """

    start: int
    end: int
    item: bool = False
    block: bool = False
    line: int = 0


def spans(text: str) -> list[SentenceSpan]:
    r"""Split a text into sentences, list items and code blocks, in order.

    >>> text = "Dr. No paid $1.50 in the U.S. in May. He left.\n1. First step\n2. See os.path."
    >>> [text[span.start:span.end] for span in spans(text)]
    ['Dr. No paid $1.50 in the U.S. in May.', 'He left.', 'First step', 'See os.path.']
    """
    return list(iterate_spans(text))


def iterate_spans(text: str) -> Iterator[SentenceSpan]:
    """Yield the spans of `spans` lazily."""
    for line, (start, end, item, block) in enumerate(_lines(text)):
        if block:
            yield SentenceSpan(start, end, item=False, block=True, line=line)
            continue
        for first, last in _sentences(text, start, end):
            yield SentenceSpan(first, last, item=item and first == start, line=line)


def _lines(text: str) -> Iterator[tuple[int, int, bool, bool]]:
    """Yield (start, end, is an item, is code) of each logical line, trimmed, without blank ones."""
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
    """Whether a line continues the previous one."""
    return _is_lower(text[begin]) and text[end - 1] not in ".!?…:;。！？"


def _is_lower(character: str) -> bool:
    """Whether it is a lower-case letter. `str.islower` includes modifier letters, which differ by Python version."""
    return category(character) == "Ll"


def _sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the trimmed (start, end) of each sentence of a logical line."""
    for stop in _stops(text, start, end):
        closed = _CLOSERS.match(text, stop.end(), end)
        after = closed.end() if closed else stop.end()
        if after >= end:
            break
        begin = after
        while begin < end and text[begin].isspace():
            begin += 1
        wide = stop.group()[0] in "。！？"
        listed = None if wide else _FIRST.search(text, max(start, stop.start() - _MAX_TOKEN_CHARS), stop.start())
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
    """Yield the stops outside inline code, in order."""
    position = start
    for code in _CODE.finditer(text, start, end):
        yield from _STOP.finditer(text, position, code.start())
        position = code.end()
    yield from _STOP.finditer(text, position, end)


def _ends(text: str, stop: re.Match[str], begin: int, end: int) -> bool:
    """Whether a stop ends a sentence, by the token before it and the text after it."""
    first = text[begin]
    if _is_lower(first):
        call = _CALL.match(text, begin, end)
        if not call:
            return False
    if stop.group() != ".":
        return True
    before = text[max(0, stop.start() - _MAX_TOKEN_CHARS) : stop.start()].rsplit(maxsplit=1)
    token = before[-1].strip("([{\"'“‘*_").lower() if before and not before[-1][-1:].isspace() else ""
    if token in _LEADING or (token in _BEFORE_DIGIT and first.isdigit()):
        return False
    if token in _TRAILING or (len(token) == 1 and token.isalpha()):
        word = _WORD.match(text, begin, end)
        return word is not None and len(token) > 0 and word.group().lower() in _OPENING and first.isupper()
    return True
