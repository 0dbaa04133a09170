"""Passages: what one context holds, prepared once so that every claim can be looked up in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from ragwatch.judges.reading.sentences import spans
from ragwatch.judges.reading.words import TOKEN, fold, identifiers, term

GRAM = 4


@dataclass(frozen=True, slots=True)
class Passage:
    """One context, read.

    Attributes:
        terms: Its content terms and whole identifiers.
        pairs: Content terms that stand side by side (function words between them do not count).
        grams: Runs of four characters of its words, joined by single spaces.
        sentences: Content terms of each sentence.
        offsets: (start, end) of each sentence in the context.
    """

    terms: frozenset[str]
    pairs: frozenset[tuple[str, str]]
    grams: frozenset[str]
    sentences: tuple[frozenset[str], ...]
    offsets: tuple[tuple[int, int], ...]


def passage(text: str) -> Passage:
    """Read one context.

    >>> found = passage("Tea is green. It grows in the hills.")
    >>> sorted(found.terms), len(found.sentences)
    (['green', 'grow', 'hill', 'tea'], 2)
    """
    tokens = TOKEN.findall(fold(text))
    ordered = [found for found in map(term, tokens) if found]
    offsets = tuple((span.start, span.end) for span in spans(text))
    sentences = tuple(frozenset(map(term, TOKEN.findall(fold(text[start:end])))) - {""} for start, end in offsets)
    return Passage(
        terms=frozenset(ordered) | identifiers(text),
        pairs=frozenset(pairwise(ordered)),
        grams=grams(tokens),
        sentences=sentences,
        offsets=offsets,
    )


def grams(tokens: Iterable[str]) -> frozenset[str]:
    """Character runs of length `GRAM` over the words joined by single spaces, with space around.

    >>> sorted(grams(["tea", "is"]))
    ['  te', ' is ', ' tea', 'a is', 'ea i', 'tea ']
    """
    joined = " ".join(("", "", *tokens, ""))
    return frozenset(map("".join, zip(joined, joined[1:], joined[2:], joined[3:], strict=False)))
