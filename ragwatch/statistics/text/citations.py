r"""Finds the citations in an answer, by number or id, and assigns them to the claims that they stand by.

The numbers begin at 1, in the order of the sample's contexts: `[1]`, `[2, 3]`, `[1-3]`, `[^2]`, `(Passage 2)`,
`【1†source】`, `[doc 3]`, `(Source: Document 2, page 4)`, "Source: 2" at the end of a line, "according to document 2",
"documents 1 and 3 say" in the text. Indexes (`x[1]`), intervals with 0, years and code are none. Ids stand in brackets:
`[doc-4]`, `【4:0†handbook】`, `(Source: handbook)`. Other marks (`【4:0†source】`, `(Source: handbook.pdf, p. 12)`,
superscripts) name no context, and are no part of the text.

A citation belongs to the claims of the sentence in which it stands; in brackets behind a stop, to those of the sentence
before. A line of markers alone ("Sources: [1], [3]") cites for the claims before it, back to the last such line, what
they do not cite themselves. Headings, code and lists of references cite nothing.

A citation is right (ALCE, arXiv 2305.14627) if the contexts that its sentence cites support every claim of the
sentence, and it supports one of them, alone or jointly with others; in a line of markers, if it supports one claim.

Every pattern reads a bounded number of characters from where it begins, so the time is linear in the answer.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple

from ragwatch.model.evidence import Citation, Claim, Evidence
from ragwatch.model.sample import Context
from ragwatch.statistics.text.alphabet import visible_text

MAX_CITATIONS = 1000
"""Number of citations of an answer that are read, the first ones."""

_HEADING = re.compile(
    r"^[#*_ ]{0,8}(?:sources|references|citations|bibliography)[*_ ]{0,4}:?[*_ ]{0,4}$", re.IGNORECASE | re.MULTILINE
)
_ADDRESS = re.compile(r":|[ *_]{0,4}<?(?:https?:|www\.)")
_MAX_LINE = 400  # characters before and after a marker in a line of markers alone
_STOP = re.compile(r"""[.!?…。！？]["'”’»)*_`]{0,4}[ ,;\t]{0,4}\Z""")
_MAX_STOP = 9  # characters that it reads
_GAP = re.compile(r"[ ,;\t]*")


def with_citations(evidence: Evidence, answer: str, ids: Sequence[str | None] = ()) -> Evidence:
    """Return the evidence with the citations of the answer (not of what the user said); `ids` are of the contexts."""
    rows: dict[tuple[int, int], list[int]] = {}
    for row, claim in enumerate(evidence.claims):
        if claim.start is not None and claim.end is not None and not claim.said_by_user:
            rows.setdefault(claim.sentence or (claim.start, claim.end), []).append(row)
    sentences = [_Sentence(start, end, tuple(claims)) for (start, end), claims in sorted(rows.items())]
    numbers = {name: number for number, name in enumerate(ids, 1) if name is not None}
    cited = list(islice(_cited(visible_text(answer), sentences, numbers), MAX_CITATIONS))
    contexts: dict[tuple[int, ...], set[int]] = {}
    for one in cited:
        contexts.setdefault(one.claims, set()).add(one.context)
    return replace(evidence, citations=tuple(_citation(one, contexts[one.claims], evidence.claims) for one in cited))


class _Sentence(NamedTuple):
    """A sentence of an answer: its offsets, and the rows of its claims."""

    start: int
    end: int
    claims: tuple[int, ...]


class _Cited(NamedTuple):
    """A context that claims cite, where they do, and whether in a line of markers."""

    context: int
    start: int
    end: int
    claims: tuple[int, ...]
    in_line: bool


def _citation(cited: _Cited, together: AbstractSet[int], claims: Sequence[Claim]) -> Citation:
    """A citation, given all contexts that its claims cite."""
    supporting = [claims[row].contexts for row in cited.claims]
    is_complete = cited.in_line or all(not together.isdisjoint(ranks) for ranks in supporting)
    supports = is_complete and any(cited.context in ranks for ranks in supporting)
    return Citation(cited.context, cited.start, cited.end, cited.claims, supports)


def _cited(answer: str, sentences: Sequence[_Sentence], ids: Mapping[str, int]) -> Iterator[_Cited]:
    """Yield what each sentence, and each line of markers, cites; every context once."""
    starts = [sentence.start for sentence in sentences]
    heading = _HEADING.search(answer)
    references = heading.end() if heading else len(answer)
    lines: dict[tuple[int, int], bool] = {}
    seen: set[tuple[int, int]] = set()
    since = block = anchor = end = 0
    for marker in markers_of(answer, ids):
        if not (marker.is_apart and end and _GAP.fullmatch(answer, end, marker.start)):
            anchor = _anchor(answer, marker)
        end = marker.end if marker.is_apart else 0
        line = _line_of(answer, marker)
        if line and line not in lines:
            lines[line] = is_line_of_markers(answer[slice(*line)])
        claims: tuple[int, ...] = ()
        in_line = line is not None and lines[line]
        if line and in_line:
            if line[0] != block:
                since, block = block, line[0]
            first, last = bisect_left(starts, since), bisect_left(starts, block)
            claims = tuple(row for sentence in sentences[first:last] for row in sentence.claims)
        elif not (line and _is_reference(answer, marker, line[0], references)):
            claims = _claims_at(anchor, sentences, starts) or _claims_at(marker.start, sentences, starts)
        for number in marker.numbers if claims else ():
            pairs = {(row, number) for row in claims}
            if seen.isdisjoint(pairs):
                yield _Cited(number - 1, marker.start, marker.end, claims, in_line)
            seen |= pairs


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


def _is_reference(answer: str, marker: Marker, line: int, references: int) -> bool:
    """Whether a marker begins an entry of a list of references."""
    if answer[line : marker.start].strip(" \t-*•"):
        return False
    return line >= references or _ADDRESS.match(answer, marker.end) is not None


MAX_RANGE = 20
"""`[1-3]` cites three contexts; of a longer range than this one only the ends are cited."""

_NAMES = "passage|document|doc|source|context|excerpt|snippet|chunk"
_NOUN = rf"(?:{_NAMES}|search result|ref(?:erence)?|citation)s?\.?"
_AND = r" ?(?:,? and|,? ?&|[,;–-]) ?"
_NUMBER = r"#?[0-9]{1,3}(?![0-9])"
_ITEM = rf"(?:{_NOUN}(?: no\.)?[ :#]{{0,2}})?\^?{_NUMBER}\^?"
_ITEMS = rf"{_ITEM}(?:{_AND}{_ITEM}){{0,15}}"
_NUMBERS = rf"{_NUMBER}(?:{_AND}{_NUMBER}){{0,15}}"
_NO_VALUE = r"(?![\w%]|[.,:/-][0-9])"
MARKER = re.compile(
    rf"(?P<marker>(?<![_\\])(?<!\b[a-z])\[{_ITEMS}\]"  # `x[1]` is an index
    rf"|【{_ITEMS}(?:†[^】\n]{{0,80}})?】"
    rf"|[\[(](?:(?:see|cf\.|from|in|{_NOUN}):? )?(?={_NOUN}[ :#]){_ITEMS}(?:[:,;] [^\](){{}}\n]{{0,80}})?[\])]"
    rf"|(?<!\w )(?<!, )\b(?:(?:{_NAMES})s?|citations?|references): ?{_ITEMS}(?=[\W_]{{0,6}}$))"
    rf"|\b(?:{_NAMES})s {_NUMBERS}{_NO_VALUE}|\b(?:{_NAMES}) {_NUMBER}{_NO_VALUE}",
    re.IGNORECASE | re.MULTILINE,
)
# Where a marker can begin, and elsewhere; `MARKER` is several times as slow to try at every character. The set of first
# characters stands alone, because `re` looks for such a set fastest; the rest of the words follows.
_RESTS = "|".join(word[1:] for word in (*_NAMES.split("|"), "citation", "reference"))
_BEGINNING = re.compile(
    r"[\[(【CDERSPcdersp\u017f]"  # the last one is an s, too, when case is ignored
    rf"(?:(?<=[\[(【])|(?<!\w.)(?i:{_RESTS}))"
)
_DIGIT = re.compile("[0-9]")
_RAISED = "[\u00b9\u00b2\u00b3\u2070\u2074-\u2079]"
_OTHER = re.compile(
    r"【(?P<wide>[^】\n]{1,120})】"
    r"|\[\^[\w-]{1,30}\^?\]"
    rf"|(?:(?<=[.!?,;:)\"”’»])|(?<=[^\W\d_]{{4}}))"  # not in m²
    rf"{_RAISED}{{1,3}}(?:[,\u207b–-]?{_RAISED}{{1,3}}){{0,4}}(?!\w)"
    r"|[\[(](?:sources?|refs?|references?|citations?|cited from|from|via|see) ?: ?(?P<named>[^\[\](){}\n]{1,150})[\])]"
    r"|(?<!\w)\[(?P<id>(?=[^\]\s]{0,60}[0-9])[A-Za-z][\w.:/#@-]{1,60})\](?![(+*?{])",
    re.IGNORECASE,
)
_SEPARATOR = re.compile(r"\s*[,;†|]\s*")
_LIST = re.compile(_ITEMS, re.IGNORECASE)
_LISTED = re.compile(r"(?P<to>[–-] ?)?#?(?P<number>[0-9]{1,3})")
_FILLER = re.compile(rf"(?:(?:{_NOUN}|see|and|from|used|cited)\b|[\W_])*", re.IGNORECASE)
_CODE = re.compile(r"`[^`\n]{1,200}`")


class Marker(NamedTuple):
    """One place of an answer that cites contexts by these numbers; a mark that names something else has none."""

    start: int
    end: int
    numbers: tuple[int, ...]
    is_apart: bool  # whether it is no part of the text: it stands in brackets, or behind "Source:"


def markers_of(answer: str, ids: Mapping[str, int] = MappingProxyType({})) -> Iterator[Marker]:
    """Yield the places that cite, in order, and marks that name no context. Contexts are numbered by `ids`."""
    code = [span.span() for span in _CODE.finditer(answer)]
    end = 0
    markers = [*_numbered(answer), *_named(answer, ids)]
    for marker in sorted(markers, key=lambda one: (one.start, not one.numbers)):
        index = bisect_right(code, (marker.start, marker.end)) - 1
        if marker.start >= end and not (index >= 0 and marker.start < code[index][1]):
            yield marker
            end = marker.end


class CitationCounts(NamedTuple):
    """Citations of an answer that name a context, and of these the dangling ones, whose context was not retrieved."""

    named: int
    dangling: int


_NONE = CitationCounts(0, 0)


def count_citations(answer: str, contexts: Sequence[Context]) -> CitationCounts:
    """Count the citations of an answer that stand in brackets. Cheap for an answer without brackets."""
    if "[" not in answer and "【" not in answer and "(" not in answer:
        return _NONE
    numbers = {context.id: number for number, context in enumerate(contexts, 1) if context.id is not None}
    named = [number for marker in markers_of(answer, numbers) if marker.is_apart for number in marker.numbers]
    return CitationCounts(len(named), sum(number > len(contexts) for number in named))


def _numbered(answer: str) -> Iterator[Marker]:
    for match in matches(answer) if _DIGIT.search(answer) else ():
        numbers = _numbers(match.group())
        if numbers:
            yield Marker(*match.span(), numbers, match["marker"] is not None)


def _named(answer: str, ids: Mapping[str, int]) -> Iterator[Marker]:
    for match in _OTHER.finditer(answer):
        names = _SEPARATOR.split(match["wide"] or match["named"] or match["id"] or "")
        yield Marker(*match.span(), tuple(dict.fromkeys(ids[name] for name in names if name in ids)), is_apart=True)


def matches(answer: str) -> Iterator[re.Match[str]]:
    """Yield what `MARKER.finditer` does."""
    end = 0
    for beginning in _BEGINNING.finditer(answer):
        match = MARKER.match(answer, beginning.start()) if beginning.start() >= end else None
        if match is not None:
            end = match.end()
            yield match


def without_markers(text: str) -> str:
    """Return a text with a space in place of every marker that is no part of it."""
    parts, position = [], 0
    for marker in markers_of(text):
        if marker.is_apart:
            parts += [text[position : marker.start], " "]
            position = marker.end
    return "".join((*parts, text[position:]))


def is_line_of_markers(line: str) -> bool:
    """Return whether a line has markers and nothing else: it cites for what stands before it.

    >>> is_line_of_markers("Sources: [1], [3]."), is_line_of_markers("[1]: Tea"), is_line_of_markers("Passage 1:")
    (True, False, False)
    """
    rest = without_markers(line)
    return rest != line and _FILLER.fullmatch(rest) is not None and not rest.rstrip(" *_").endswith(":")


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
