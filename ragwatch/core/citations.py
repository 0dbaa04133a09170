r"""Parses the citations of an answer, and assigns them to the claims that they stand by.

A citation is the number of a context, from 1, in the order in which the sample lists them: `[1]`, `[2, 3]`, `[1-3]`,
`[^2]`, `【1†source】`, `(Passage 2)`, `[doc 3]`, `(Source: Document 2, page 4)`, "Source: 2" at the end of a line, and in
the text "according to document 2" or "documents 1 and 3 say". It belongs to the claims of the sentence in which it
stands; a marker (all of these but the last) behind a stop to those of the sentence before. A line of markers alone
("Sources: [1], [3]") cites for the claims before it, back to the last such line, what they do not cite themselves. In
headings, code and lists of references nothing is cited; "first passage", names of contexts and superscripts are not read.

Every pattern reads a bounded number of characters from where it begins, so the time is linear in the answer.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from ragwatch.core.alphabet import unicode14
from ragwatch.core.evidence import Citation, Evidence

MAX_CITATIONS = 1000
"""Number of citations of an answer that are read, the first ones."""

MAX_RANGE = 20
"""`[1-3]` cites three contexts; of a longer range than this one only the ends are cited."""

_NAMES = "passage|document|doc|source|context|excerpt|snippet|chunk"
_NOUN = rf"(?:{_NAMES}|search result|ref(?:erence)?|citation)s?\.?"
_AND = r" ?(?:,? and|,? ?&|[,;–-]) ?"
_NUMBER = r"#?[0-9]{1,3}(?![0-9])"
_ITEM = rf"(?:{_NOUN}(?: no\.)?[ :#]{{0,2}})?\^?{_NUMBER}"
_ITEMS = rf"{_ITEM}(?:{_AND}{_ITEM}){{0,15}}"
_NUMBERS = rf"{_NUMBER}(?:{_AND}{_NUMBER}){{0,15}}"
_NO_VALUE = r"(?![\w%]|[.,:/-][0-9])"
_MARKER = re.compile(
    rf"(?P<marker>(?<![_\\])(?<!\b[a-z])\[{_ITEMS}\]"  # `x[1]` is an index
    rf"|【{_ITEMS}(?:†[^】\n]{{0,80}})?】"
    rf"|[\[(](?:(?:see|cf\.|from|in|{_NOUN}):? )?(?={_NOUN}[ :#]){_ITEMS}(?:[:,;] [^\](){{}}\n]{{0,80}})?[\])]"
    rf"|(?<!\w )(?<!, )\b(?:(?:{_NAMES})s?|citations?|references): ?{_ITEMS}(?=[\W_]{{0,6}}$))"
    rf"|\b(?:{_NAMES})s {_NUMBERS}{_NO_VALUE}|\b(?:{_NAMES}) {_NUMBER}{_NO_VALUE}",
    re.IGNORECASE | re.MULTILINE,
)
_DIGIT = re.compile("[0-9]")
_LIST = re.compile(_ITEMS, re.IGNORECASE)
_LISTED = re.compile(r"(?P<to>[–-] ?)?#?(?P<number>[0-9]{1,3})")
_CODE = re.compile(r"`[^`\n]{1,200}`")
_HEADING = re.compile(
    r"^[#*_ ]{0,8}(?:sources|references|citations|bibliography)[*_ ]{0,4}:?[*_ ]{0,4}$", re.IGNORECASE | re.MULTILINE
)
_ADDRESS = re.compile(r":|[ *_]{0,4}<?(?:https?:|www\.)")
_FILLER = re.compile(rf"(?:(?:{_NOUN}|see|and|from|used|cited)\b|[\W_])*", re.IGNORECASE)
_MAX_LINE = 400  # characters before and after a marker in a line of markers alone
_STOP = re.compile(r"""[.!?…。！？]["'”’»)*_`]{0,4}[ ,;\t]{0,4}\Z""")
_MAX_STOP = 9  # characters that it reads
_GAP = re.compile(r"[ ,;\t]*")


class Marker(NamedTuple):
    """One place of an answer that cites.

    Attributes:
        start: Offset of its first character.
        end: Offset after its last character.
        numbers: The numbers of the contexts that it names.
        is_apart: Whether it is no part of the text: it stands in brackets, or behind "Source:".
    """

    start: int
    end: int
    numbers: tuple[int, ...]
    is_apart: bool


def markers_of(answer: str) -> list[Marker]:
    """Return the places that cite, in order.

    >>> [marker.numbers for marker in markers_of("Tea is green [1][2-4]. (Passage 2) By document 3, it is in [0, 1].")]
    [(1,), (2, 3, 4), (2,), (3,)]
    """
    return list(_markers(answer))


def without_markers(text: str) -> str:
    """Return a text with a space in place of every marker that is no part of it.

    >>> without_markers("Tea is green [1]. (Source: 2)"), without_markers("Passage 2 says so.")
    ('Tea is green  .  ', 'Passage 2 says so.')
    """
    if _DIGIT.search(text) is None:
        return text
    parts, position = [], 0
    for marker in _markers(text):
        if marker.is_apart:
            parts += [text[position : marker.start], " "]
            position = marker.end
    return "".join((*parts, text[position:]))


def _markers(answer: str) -> Iterator[Marker]:
    code = [span.span() for span in _CODE.finditer(answer)]
    for match in _MARKER.finditer(answer):
        index = bisect_right(code, match.span()) - 1
        is_code = index >= 0 and match.start() < code[index][1]
        numbers = () if is_code else _numbers(match.group())
        if numbers:
            yield Marker(*match.span(), numbers, match["marker"] is not None)


def _numbers(text: str) -> tuple[int, ...]:
    """The numbers of a marker, ranges filled in; none if one of them is 0: that is an index or an interval."""
    listed = _LIST.search(text)
    numbers: list[int] = []
    for match in _LISTED.finditer(listed.group() if listed else ""):
        number = int(match["number"])
        if match["to"] and numbers and 0 < number - numbers[-1] <= MAX_RANGE:
            numbers += range(numbers[-1] + 1, number)
        numbers.append(number)
    return () if 0 in numbers else tuple(dict.fromkeys(numbers))


def with_citations(evidence: Evidence, answer: str) -> Evidence:
    """Return the evidence with the citations of the answer, each with the claims that it belongs to.

    Claims that only repeat what the user stated cite nothing.

    >>> from ragwatch.core.evidence import Claim, ClaimVerdict, ContextReading
    >>> claim = Claim("Tea is green.", 0, 13, ClaimVerdict.SUPPORTED, (True,))
    >>> cited = with_citations(Evidence((claim,), (ContextReading(True),)), "Tea is green. [1, 7]")
    >>> [(citation.context, citation.claims) for citation in cited.citations]
    [(0, (0,)), (6, (0,))]
    """
    rows: dict[tuple[int, int], list[int]] = {}
    for row, claim in enumerate(evidence.claims):
        if claim.start is not None and claim.end is not None and not claim.said_by_user:
            rows.setdefault(claim.sentence or (claim.start, claim.end), []).append(row)
    sentences = [_Sentence(start, end, tuple(claims)) for (start, end), claims in sorted(rows.items())]
    citations = islice(_citations(unicode14(answer), sentences), MAX_CITATIONS) if sentences else ()
    return replace(evidence, citations=tuple(citations))


class _Sentence(NamedTuple):
    """A sentence of an answer: its offsets, and the rows of its claims."""

    start: int
    end: int
    claims: tuple[int, ...]


def _citations(answer: str, sentences: Sequence[_Sentence]) -> Iterator[Citation]:
    """Yield what each sentence, and each line of markers alone, cites; every context once."""
    starts = [sentence.start for sentence in sentences]
    heading = _HEADING.search(answer)
    references = heading.end() if heading else len(answer)
    lines: dict[tuple[int, int] | None, bool] = {None: False}
    cited: set[tuple[int, int]] = set()
    since = block = anchor = end = 0
    for marker in _markers(answer):
        if not (marker.is_apart and end and _GAP.fullmatch(answer, end, marker.start)):
            anchor = _anchor(answer, marker)
        end = marker.end if marker.is_apart else 0
        line = _line_of(answer, marker)
        if line not in lines:
            lines[line] = _is_line_of_markers(answer[slice(*line)])
        claims: tuple[int, ...] = ()
        if line and lines[line]:
            if line[0] != block:
                since, block = block, line[0]
            first, last = bisect_left(starts, since), bisect_left(starts, block)
            claims = tuple(row for sentence in sentences[first:last] for row in sentence.claims)
        elif not (line and _is_reference(answer, marker, line[0], references)):
            claims = _claims_at(anchor, sentences, starts) or _claims_at(marker.start, sentences, starts)
        for number in marker.numbers if claims else ():
            pairs = {(row, number) for row in claims}
            if cited.isdisjoint(pairs):
                yield Citation(number - 1, marker.start, marker.end, claims)
            cited |= pairs


def _claims_at(position: int, sentences: Sequence[_Sentence], starts: Sequence[int]) -> tuple[int, ...]:
    """The claims of the sentence at an offset; empty if there is none."""
    index = bisect_right(starts, position) - 1
    return sentences[index].claims if index >= 0 and position < sentences[index].end else ()


def _anchor(answer: str, marker: Marker) -> int:
    """Offset of the stop right before a marker that is no part of the text, else that of the marker."""
    stop = _STOP.search(answer, max(0, marker.start - _MAX_STOP), marker.start) if marker.is_apart else None
    return stop.start() if stop else marker.start


def _line_of(answer: str, marker: Marker) -> tuple[int, int] | None:
    """Offsets of the line of a marker; None if it is long."""
    least, most = max(0, marker.start - _MAX_LINE), marker.end + _MAX_LINE
    before, after = answer.rfind("\n", least, marker.start), answer.find("\n", marker.end, most)
    if (before < 0 and least) or (after < 0 and most < len(answer)):
        return None
    return before + 1, after if after >= 0 else len(answer)


def _is_line_of_markers(text: str) -> bool:
    """Whether a line that has a marker has markers alone.

    >>> _is_line_of_markers("Sources: [1], [3]."), _is_line_of_markers("[1]: Tea"), _is_line_of_markers("Passage 1:")
    (True, False, False)
    """
    rest = without_markers(text)
    return rest != text and _FILLER.fullmatch(rest) is not None and not rest.rstrip(" *_").endswith(":")


def _is_reference(answer: str, marker: Marker, line: int, references: int) -> bool:
    """Whether a marker begins an entry of a list of references."""
    if answer[line : marker.start].strip(" \t-*•"):
        return False
    return line >= references or _ADDRESS.match(answer, marker.end) is not None
