"""A fitted classifier of short texts: logistic regression over hashed words, word pairs and letters.

It reads any language; the time is linear in the text, because the features of a word are cached. `training/` fits the
tables, and `judges/tables` holds them.
"""

from __future__ import annotations

import base64
import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from math import sqrt
from pathlib import Path
from zlib import crc32

BUCKETS = 1 << 14
_UNSPACED = "\u0e00-\u0eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_WORD = re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}]+|[<>{{}}\[\]=|#]")
_RUN = re.compile(rf"[{_UNSPACED}]+")
_MAX_WORD = 24


class TextClassifier:
    """A classifier with the weights of a table.

    Args:
        table: `weights` (a signed byte for each bucket, in base64), `scale` (what one step is worth), `bias` (the logit
            of a text without features), and thresholds.

    Attributes:
        bias: The logit of a text without features.
        thresholds: The other numbers of the table, by name.
    """

    def __init__(self, table: Mapping[str, float | str]) -> None:
        weights = memoryview(base64.b64decode(str(table["weights"]))).cast("b")
        self._weights, self._scale = tuple(weights), float(table["scale"])
        self.bias = float(table["bias"])
        self.thresholds = {name: value for name, value in table.items() if isinstance(value, float | int)}
        self._of_word = lru_cache(maxsize=1 << 13)(self._sum)

    def logit(self, words: Sequence[str]) -> float:
        """The logit of a text, from its words."""
        pairs = sum(self._weights[pair_bucket(*pair)] for pair in pairwise(words))
        sums = [self._of_word(word) for word in words]
        count = sum(number for _, number in sums) + max(0, len(words) - 1)
        return self.bias + self._scale * (pairs + sum(weight for weight, _ in sums)) / sqrt(max(1, count))

    def _sum(self, word: str) -> tuple[int, int]:
        """The summed weight of a word's features, and their number."""
        buckets = word_buckets(word)
        return sum(self._weights[bucket] for bucket in buckets), len(buckets)


@cache
def shipped_classifier(name: str) -> TextClassifier:
    """The classifier of a table of the package."""
    path = Path(__file__).parent / "tables" / f"{name}.json"
    return TextClassifier(json.loads(path.read_text(encoding="utf-8")))


def words_of(text: str) -> list[str]:
    """The words that a classifier reads."""
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
