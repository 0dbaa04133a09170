"""A fitted classifier of instructions to a judge: logistic regression over hashed words, word pairs and letters.

`training/injection.py` fits it and writes `judges/tables/injection.json`. It reads windows of a few sentences' length,
in any language; the time is linear in the text, because the features of a word are cached.
"""

from __future__ import annotations

import base64
import json
import re
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib import resources
from itertools import pairwise
from math import log2, sqrt
from typing import NamedTuple
from zlib import crc32

from ragwatch.judges.lexical.sentences import spans

BUCKETS = 1 << 14
_UNSPACED = "\u0e00-\u0eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_WORD = re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}]+|[<>{{}}\[\]=|#]")
_RUN = re.compile(rf"[{_UNSPACED}]+")
_WINDOW = 36  # words that are read together
_MAX_WORD = 24
_MIN_LETTERS = 8
_SHORT, _LONG, _PAGE = 0.35, 0.6, 6  # more logit for each doubling of the windows, and beyond a page of them


class ClassifierTable(NamedTuple):
    """Fitted weights.

    Attributes:
        weights: Of each bucket, a signed byte.
        scale: What one step of a weight is worth.
        bias: The logit of a text without features.
        alone: The least logit that makes a text suspected.
        with_phrase: The same where a pattern matches, too.
    """

    weights: tuple[int, ...]
    scale: float
    bias: float
    alone: float
    with_phrase: float


@cache
def classifier_table() -> ClassifierTable:
    """The shipped table."""
    text = resources.files("ragwatch.judges").joinpath("tables/injection.json").read_text(encoding="utf-8")
    table = json.loads(text)
    weights = tuple(memoryview(base64.b64decode(table["weights"])).cast("b"))
    return ClassifierTable(weights, table["scale"], table["bias"], table["alone"], table["with_phrase"])


def words_of(text: str) -> list[str]:
    """The words that the classifier reads."""
    return [word[:_MAX_WORD] for word in _WORD.findall(unicodedata.normalize("NFKC", text).lower())]


def word_buckets(word: str) -> tuple[int, ...]:
    """Buckets of one word: the word, its start, its letters by three and four."""
    if _RUN.match(word):
        return tuple(_bucket(word[at : at + size]) for size in (1, 2, 3) for at in range(len(word) - size + 1))
    if not word.isalpha():
        return (_bucket("0" if word.isdigit() else word),)
    edged = f"^{word}$"
    grams = [edged[at : at + size] for size in (3, 4) for at in range(len(edged) - size + 1)]
    return tuple(map(_bucket, [f"w{word}", f"s{word[:5]}", *grams]))


def pair_bucket(first: str, second: str) -> int:
    """The bucket of two words in a row."""
    return _bucket(f"{first[:6]} {second[:6]}")


def _bucket(feature: str) -> int:
    return crc32(feature.encode("utf-8", "replace")) % BUCKETS


@lru_cache(maxsize=1 << 13)
def _of_word(word: str) -> tuple[int, int]:
    """The summed weight of a word's features, and their number."""
    weights, buckets = classifier_table().weights, word_buckets(word)
    return sum(weights[bucket] for bucket in buckets), len(buckets)


def windows(text: str) -> Iterator[list[str]]:
    """The words of each sentence, and of overlapping parts of a long one."""
    for span in spans(text):
        words = words_of(text[span.start : span.end])
        for start in range(0, max(1, len(words) - _WINDOW // 2), _WINDOW // 2):
            yield words[start : start + _WINDOW]


@lru_cache(maxsize=1 << 12)
def logit_of(words: tuple[str, ...]) -> float:
    """The logit of a window."""
    table = classifier_table()
    pairs = sum(table.weights[pair_bucket(*pair)] for pair in pairwise(words))
    sums = [_of_word(word) for word in words]
    count = sum(number for _, number in sums) + max(0, len(words) - 1)
    return table.bias + table.scale * (pairs + sum(weight for weight, _ in sums)) / sqrt(max(1, count))


@lru_cache(maxsize=256)
def highest_logit(text: str) -> float:
    """The logit of the window that looks most like an instruction to a judge."""
    if sum(map(str.isalpha, text[:400])) < _MIN_LETTERS and len(text) <= 400:
        return classifier_table().bias
    return max((logit_of(tuple(words)) for words in windows(text)), default=classifier_table().bias)


def allowance(text: str) -> float:
    """What a logit must be above for a text of this length: one of many windows looks like an instruction by chance."""
    number = max(1, sum(1 for _ in windows(text)))
    return classifier_table().alone + _SHORT * log2(number) + _LONG * max(0.0, log2(number / _PAGE))
