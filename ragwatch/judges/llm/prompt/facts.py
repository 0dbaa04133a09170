"""Locates the facts that a reply reports in a line, and finds what they leave out.

A line of the answer may be reported as several facts, each with a verdict of its own. A reply may be the work of a
prompt injection, so a fact counts only where its words stand in the line, one after the other, and what a line says
must be said by one of its facts.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from ragwatch.judges.claims.words import terms
from ragwatch.judges.llm.prompt.quotes import CHARACTER_OR_WORD, quoted_text
from ragwatch.statistics.text.alphabet import visible_text
from ragwatch.statistics.text.phrases import without_leads

Span = tuple[int, int]
_EDGES = re.compile(r"\A[\s,;:]+|[\s,;:]+\Z")


def locate(fact: str, line: str) -> Span | None:
    """Offsets of a fact in a line: its words, one after the other, whatever stands between them. None if not there.

    A fact may be its first and its last words with an ellipsis between them.

    >>> locate("in BERN.", "He worked in Bern."), locate("in Zurich", "He worked in Bern.")
    ((10, 18), None)
    >>> locate("He ... Bern", "He worked in Bern.")
    (0, 17)
    """
    fact = quoted_text(fact)
    span = _locate_words(fact, line, 0)
    if span is not None:
        return span
    first, ellipsis, last = fact.partition("…" if "…" in fact else "...")
    head = _locate_words(first, line, 0) if ellipsis else None
    tail = _locate_words(last, line, head[1]) if head else None
    return (head[0], tail[1]) if head and tail else None


def _locate_words(fact: str, line: str, after: int) -> Span | None:
    """Offsets of words in the part of a line after an offset, with the punctuation around them that the fact has."""
    matches, wanted = list(CHARACTER_OR_WORD.finditer(line, after)), list(CHARACTER_OR_WORD.finditer(fact))
    position = _joined(matches).find(_joined(wanted)) if wanted else -1
    if position < 0:
        return None
    starts = [0, *accumulate(len(_normalized(match[0])) + 1 for match in matches)]
    first = bisect_left(starts, position)
    start, end = matches[first].start(), matches[first + len(wanted) - 1].end()
    before, behind = fact[: wanted[0].start()], fact[wanted[-1].end() :]
    return start - len(before) * line[:start].endswith(before), end + len(behind) * line.startswith(behind, end)


def _joined(words: Iterable[re.Match[str]]) -> str:
    """Normalized words, each between spaces."""
    return " ".join(("", *(_normalized(word[0]) for word in words), ""))


def _normalized(word: str) -> str:
    return unicodedata.normalize("NFKC", word).casefold().replace(" ", "")


def content_of(text: str) -> frozenset[str]:
    """The words of a text that say something, without leads such as "According to the passage"."""
    return frozenset(terms(without_leads(visible_text(text))))


def left_out(line: str, spans: Sequence[Span]) -> list[Span]:
    """The parts of a line that no span covers and that say something that no span does.

    >>> line = "Einstein worked at the patent office in Bern."
    >>> [line[start:end] for start, end in left_out(line, [(0, 36)])]
    ['in Bern.']
    """
    said = frozenset[str]().union(*(terms(visible_text(line[start:end])) for start, end in spans))
    missing = content_of(line) - said
    if not missing:
        return []
    return [gap for gap in _gaps(line, spans) if missing.intersection(terms(visible_text(line[gap[0] : gap[1]])))]


def _gaps(line: str, spans: Sequence[Span]) -> Iterator[Span]:
    position = 0
    for start, end in (*sorted(spans), (len(line), len(line))):
        if start > position:
            text = line[position:start]
            inner = _EDGES.sub("", text)
            if inner:
                at = position + text.find(inner)
                yield at, at + len(inner)
        position = max(position, end)
