"""Cuts contexts into windows that a model can read.

A window holds whole contexts as long as they fit; a longer context is cut between sentences, a longer sentence between
tokens. The text of a window is verbatim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from ragwatch.judges.claims.limits import Check
from ragwatch.judges.lexical.features import ClaimWords, coverage
from ragwatch.judges.lexical.passages import PreparedPassage

_JOINT_TOKENS = 8  # of the words around a context in a template
_MAX_SENTENCE_CHARS = 4000  # tokenised at once


@dataclass(frozen=True, slots=True)
class Window:
    """A part of the contexts.

    Attributes:
        texts: What it holds of each of them.
        terms: Terms of its contexts' sentences.
    """

    ranks: tuple[int, ...]
    texts: tuple[str, ...]
    terms: AbstractSet[str]


@dataclass(frozen=True, slots=True)
class _Part:
    """Consecutive text of one context, with its number of tokens."""

    rank: int
    start: int
    end: int
    tokens: int
    terms: AbstractSet[str]


def windows_of(
    texts: Sequence[str],
    passages: Sequence[PreparedPassage],
    ends: Callable[[str], Sequence[int]],
    *,
    tokens: int,
    check: Check,
) -> list[Window]:
    """Cut contexts into windows, in their order.

    `ends` returns the offsets after each token of a text; `tokens` is their maximum number in a window.
    """
    windows: list[list[_Part]] = []
    free = 0
    for rank, (text, passage) in enumerate(zip(texts, passages, strict=True)):
        parts = list(_parts(rank, text, passage, ends, tokens=tokens - _JOINT_TOKENS, check=check))
        whole = sum(part.tokens for part in parts)
        if parts and (not windows or free < whole + _JOINT_TOKENS <= tokens):
            windows.append([])
            free = tokens
        for index, part in enumerate(parts):
            need = part.tokens + (0 if index else _JOINT_TOKENS)
            if need > free and windows[-1]:
                windows.append([])
                free, need = tokens, part.tokens + _JOINT_TOKENS
            windows[-1].append(part)
            free -= need
    return [_window(parts, texts) for parts in windows]


def most_similar(windows: Sequence[Window], words: ClaimWords, count: int) -> list[Window]:
    """The windows with the most words of a claim, weighted by their rarity; the earliest among equals."""
    if len(windows) <= count:
        return list(windows)
    return sorted(windows, key=lambda window: -coverage(words.rarity, window.terms))[:count]


def _parts(
    rank: int,
    text: str,
    passage: PreparedPassage,
    ends: Callable[[str], Sequence[int]],
    *,
    tokens: int,
    check: Check,
) -> Iterator[_Part]:
    """The sentences of a context, each as far as the next one begins, and the pieces of those that are too long."""
    for index, (start, _) in enumerate(passage.offsets):
        stop = passage.offsets[index + 1][0] if index + 1 < len(passage.offsets) else len(text)
        for first in range(start, stop, _MAX_SENTENCE_CHARS):
            check()
            last = min(stop, first + _MAX_SENTENCE_CHARS)
            offsets = ends(text[first:last])
            for at in range(0, len(offsets), tokens):
                begin = first + (offsets[at - 1] if at else 0)
                end = last if at + tokens >= len(offsets) else first + offsets[at + tokens - 1]
                yield _Part(rank, begin, end, len(offsets[at : at + tokens]), passage.sentences[index])


def _window(parts: Sequence[_Part], texts: Sequence[str]) -> Window:
    ranks = tuple(dict.fromkeys(part.rank for part in parts))
    spans = {rank: [part for part in parts if part.rank == rank] for rank in ranks}
    return Window(
        ranks,
        tuple(texts[rank][of[0].start : of[-1].end].strip() for rank, of in spans.items()),
        frozenset().union(*(part.terms for part in parts)),
    )
