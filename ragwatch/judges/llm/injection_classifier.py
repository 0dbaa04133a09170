"""Tells by a fitted classifier whether a text holds an instruction to a judge; `training/injection.py` fits it.

It reads windows of a few sentences' length, in any language.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import log2

from ragwatch.judges.lexical.sentences import spans
from ragwatch.judges.text_classifier import TextClassifier, shipped_classifier, words_of

_WINDOW = 36  # words that are read together
_MIN_LETTERS = 8
_SHORT, _LONG, _PAGE = 0.35, 0.6, 6  # more logit for each doubling of the windows, and beyond a page of them


def injection_classifier() -> TextClassifier:
    """The shipped classifier. Its thresholds: `alone` makes a text suspected, `with_phrase` does beside a pattern."""
    return shipped_classifier("injection")


def windows(text: str) -> Iterator[list[str]]:
    """The words of each sentence, and of overlapping parts of a long one."""
    for span in spans(text):
        words = words_of(text[span.start : span.end])
        for start in range(0, max(1, len(words) - _WINDOW // 2), _WINDOW // 2):
            yield words[start : start + _WINDOW]


@lru_cache(maxsize=1 << 12)
def logit_of(words: tuple[str, ...]) -> float:
    """The logit of a window."""
    return injection_classifier().logit(words)


@lru_cache(maxsize=256)
def highest_logit(text: str) -> float:
    """The logit of the window that looks most like an instruction to a judge."""
    nothing = injection_classifier().bias
    if sum(map(str.isalpha, text[:400])) < _MIN_LETTERS and len(text) <= 400:
        return nothing
    return max((logit_of(tuple(words)) for words in windows(text)), default=nothing)


def allowance(text: str) -> float:
    """What a logit must be above for a text of this length: one of many windows looks like an instruction by chance."""
    number = max(1, sum(1 for _ in windows(text)))
    alone = injection_classifier().thresholds["alone"]
    return alone + _SHORT * log2(number) + _LONG * max(0.0, log2(number / _PAGE))
