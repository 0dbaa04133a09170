"""Assigns the citations of an answer to the claims that they stand by.

A citation (see `citation_markers`) belongs to the claims of the sentence in which it stands; in brackets behind a
stop, to those of the sentence before. A line of markers alone ("Sources: [1], [3]") cites for the claims before it,
back to the last such line, what they do not cite themselves. Headings, code and lists of references cite nothing.

A citation is right (ALCE, arXiv 2305.14627) if the contexts that its sentence cites support every claim of the
sentence, and it supports one of them, alone or jointly with others; in a line of markers, if it supports one claim.

The time is linear in the answer.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from ragwatch.core.alphabet import visible_text
from ragwatch.core.citation_markers import Marker, is_line_of_markers, markers_of
from ragwatch.core.evidence import Citation, Claim, Evidence

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
    """Return the evidence with the citations of the answer, each with the claims that it belongs to.

    Claims that only repeat what the user stated cite nothing. `ids` are those of the contexts, in their order.
    """
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
