"""Splits a text into sentences and list items, as character offsets.

A text is split line by line. A line that starts with a list marker is an item; a line that starts in lower case after a
line without a stop continues that line; within a line, a stop followed by space and a new start ends a sentence.
Every step reads a bounded number of characters, so the time is linear in the text, even for hostile input.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple
from unicodedata import category

from ragwatch.judges.claims.words import MONTHS, SHORT_MONTHS, word_set

_STOP = re.compile(r"[.!?…]+|[。！？]+")
_CLOSERS = re.compile(r"""["'”’»)\]*_`]{0,4}(?:\s?\[\d{1,3}(?:[,;–-]\s?\d{1,3}){0,8}\]){0,6}""")
_MARKER = re.compile(r"[ \t>]{0,64}(?:[-*+•◦▪‣·–]|\(?\d{1,3}[.)]|\(?[a-zA-Z][)])[ \t]{1,64}(?=\S)")
_FENCE = re.compile(r"[ \t]{0,16}(?:```+([^`\n]*)|~~~+([^~\n]*))$")
_MAX_INFO_WORDS = 2  # behind an opening fence: more are text
_PROSE_INFO = frozenset({"", "md", "markdown", "text", "txt", "plain", "plaintext", "answer", "quote"})
_MIN_PROSE_WORDS = 3
_PROSE_SHARE = 0.8
_PLAIN_WORD = re.compile(
    r"""[("'“‘«*_\[$€£]{0,4}[^\W_]+(?:[-'’,.:/][^\W_]+)*%?[)\]"'”’»*_]{0,4}[.,;:!?…]{0,3}[)\]"'”’»*_]{0,4}"""
)
_UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]{8}|[。！？]")
_SENTENCE_END = re.compile(r"""[.!?…][)\]"'”’»*_]{0,4}(?:\s?\[\d{1,3}\])*\s*$""")
_CODE = re.compile(r"`[^`\n]{1,200}`")
_MAX_TOKEN_CHARS = 16  # characters read before a stop; no abbreviation is longer


# Abbreviations that never end a sentence.
_LEADING = word_set(
    "dr mr mrs ms prof st mt ft sen rep gov gen col capt lt sgt rev hon pres vs e.g i.e eg ie cf fig figs eq eqs sec ch"
    " vol pp approx ca al viz"
)
# Abbreviations that end a sentence only before a typical first word.
_TRAILING = word_set(
    "etc inc ltd co corp jr sr u.s u.k u.n e.u u.s.a a.m p.m b.c a.d ph.d m.d d.c est dept univ jan feb mar apr jun jul"
    " aug sep sept oct nov dec"
)
_CLOCK = frozenset({"a.m", "p.m"})
_AT = re.compile(r"\b(?:At|By|About|Around|Before|After|From|Until|On)\b[^.!?]{0,12}[ap]\.m$")  # which opens a sentence
_OF_CLOCK = re.compile(  # what goes on about a time: a weekday, a month, a zone
    r"(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?|Eastern|Central|Mountain|Pacific|Greenwich|[A-Z]{2,5}"
    rf"|{'|'.join(name.title() for name in (*MONTHS, *SHORT_MONTHS))}|[^\W\d_]{{1,16}} time)\b"
)
_INITIALS = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")  # "J.", "G.I."
_FIRST = re.compile(r"[:;]\s{0,3}(?=\(?1$)")  # "... these steps: 1. Boil the water. 2. Add the tea."
_BEFORE_DIGIT = word_set("no nos p art op sect")
_OPENING = word_set(
    "the a an this that these those it its he she they we you i in on at as if when while however but and so there his"
    " her their our for to by from with after before since although because another some many most all both each no not"
    " also then thus therefore moreover additionally according overall"
)
_WORD = re.compile(r"[^\W\d_]{1,16}")
_CALL = re.compile(r"[a-z_]\w{0,40}[._(]\w?")


class SentenceSpan(NamedTuple):
    """One sentence or list item: `text[start:end]`, no white space at either end."""

    start: int
    end: int
    item: bool = False  # whether it starts a list item
    block: bool = False  # whether it is a fenced code block, which is not split
    line: int = 0  # number of the paragraph line it belongs to; sentences of one line share it


def spans(text: str) -> Iterator[SentenceSpan]:
    r"""Yield the sentences, list items and code blocks of a text, in order.

    >>> text = "Dr. No paid $1.50 in the U.S. in May. He left.\n1. First step\n2. See os.path."
    >>> [text[span.start:span.end] for span in spans(text)]
    ['Dr. No paid $1.50 in the U.S. in May.', 'He left.', 'First step', 'See os.path.']
    """
    for line, (start, end, item, block) in enumerate(_lines(text)):
        if block:
            yield SentenceSpan(start, end, item=False, block=True, line=line)
            continue
        for first, last in _sentences(text, start, end):
            yield SentenceSpan(first, last, item=item and first == start, line=line)


def _lines(text: str) -> Iterator[tuple[int, int, bool, bool]]:
    """Yield (start, end, is an item, is code) of each logical line, trimmed, without blank ones."""
    pending: tuple[int, int, bool] | None = None
    for start, end, is_code in _unfenced(text):
        raw = text[start:end]
        marker = None if is_code else _MARKER.match(raw)
        begin = start + (marker.end() if marker else len(raw) - len(raw.lstrip()))
        continues = begin < end and _is_lower(text[begin])  # the previous line, if that has no stop
        if pending and (is_code or marker or not continues or text[pending[1] - 1] in ".!?…:;。！？"):
            yield (*pending, False)
            pending = None
        if is_code:
            yield (start, end, False, True)
        elif begin < end:
            pending = (pending[0], end, pending[2]) if pending else (begin, end, marker is not None)
    if pending:
        yield (*pending, False)


def _unfenced(text: str) -> Iterator[tuple[int, int, bool]]:
    """Yield (start, end, is code) of each line, trimmed at its end, and of each fenced block of code as one."""
    fence: tuple[int, str] | None = None
    inside: list[tuple[int, int]] = []
    position = 0
    for raw in text.splitlines(keepends=True):
        start, position = position, position + len(raw)
        end = start + len(raw.rstrip())
        mark = _FENCE.match(text, start, end)
        if mark is None:
            if fence is None:
                yield start, end, False
            else:
                inside.append((start, end))
            continue
        info = (mark[1] or mark[2] or "").strip()
        if fence is not None:
            last = max((stop for begin, stop in inside if begin < stop), default=fence[0]) if info else end
            yield from _block(text, fence, inside, last, is_closed=True)
        is_open = fence is None or bool(info)
        fence, inside = ((start + len(raw) - len(raw.lstrip()), info) if is_open else None), []
        if is_open and len(info.split()) > _MAX_INFO_WORDS:  # text behind the fence
            inside.append((end - len(info), end))
        elif fence is None:
            yield end, end, False  # nothing continues across a fence
    if fence is not None:
        yield from _block(text, fence, inside, len(text.rstrip()), is_closed=False)


def _block(
    text: str, fence: tuple[int, str], lines: list[tuple[int, int]], end: int, *, is_closed: bool
) -> Iterator[tuple[int, int, bool]]:
    """Yield a fenced block: its lines if it is prose, else itself. An open one may end in prose after code."""
    first, info = fence
    parts = [lines] if is_closed else _paragraphs(lines)
    is_text = not is_closed or info.lower() in _PROSE_INFO or len(info.split()) > _MAX_INFO_WORDS
    code: tuple[int, int] | None = None
    yield first, first, False  # it continues no line before the fence
    for number, part in enumerate(parts):
        if is_text and _is_prose([text[start:stop] for start, stop in part]):
            if code and code[0] < code[1]:
                yield (*code, True)
            code = None
            yield from ((start, stop, False) for start, stop in part)
        else:
            stop = max((stop for start, stop in part if start < stop), default=first)
            code = (code[0] if code else part[0][0] if number else first, stop)
    if code and code[0] < end:
        yield code[0], end, True


def _paragraphs(lines: list[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Lines between blank lines; a blank line goes with the lines before it."""
    parts: list[list[tuple[int, int]]] = [[]]
    for number, line in enumerate(lines):
        if number and lines[number - 1][0] >= lines[number - 1][1] and line[0] < line[1]:
            parts.append([])
        parts[-1].append(line)
    return parts


def _is_prose(lines: list[str]) -> bool:
    """Whether lines are sentences and not code: of words, and with a stop at the end of one, or a capital first.

    >>> [_is_prose([line]) for line in ("Refunds take five days.", "pip install ragwatch", "x = total(of, days).")]
    [True, False, False]
    """
    unmarked = [_MARKER.sub("", line, count=1) if _MARKER.match(line) else line for line in lines]
    words = [word for line in unmarked for word in line.split()]
    plain = [word for word in words if _PLAIN_WORD.fullmatch(word) and not (len(word) > 3 and word.isupper())]
    if len(words) < _MIN_PROSE_WORDS or len(plain) < _PROSE_SHARE * len(words):
        return bool(_UNSPACED.search("".join(words)))
    return any(_SENTENCE_END.search(line) for line in lines) or words[0][:1].isupper()


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
    if _is_lower(first) and not _CALL.match(text, begin, end):
        return False
    if stop.group() != ".":
        return True
    near = text[max(0, stop.start() - _MAX_TOKEN_CHARS) : stop.start()]
    before = near.rsplit(maxsplit=1)
    token = before[-1].strip("([{\"'“‘*_").lower() if before and not before[-1][-1:].isspace() else ""
    is_in_brackets = near.rfind("(") > near.rfind(")")  # (ext. 12)
    if token in _LEADING or (first.isdigit() and (is_in_brackets or token in _BEFORE_DIGIT)):
        return False
    if token in _CLOCK and first.isupper() and not _AT.search(text, max(0, stop.start() - 24), stop.start()):
        return _OF_CLOCK.match(text, begin, end) is None
    if token in _TRAILING or _INITIALS.fullmatch(token):
        word = _WORD.match(text, begin, end)
        return word is not None and len(token) > 0 and word.group().lower() in _OPENING and first.isupper()
    return True
