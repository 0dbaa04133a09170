"""A fitted classifier of short texts: logistic regression over hashed words, word pairs and letters.

It reads any language; the time is linear in the text, because the features of a word are cached. `training/` fits the
tables, and `judges/tables` holds them.
"""

from __future__ import annotations

import base64
import json
import re
import unicodedata
from array import array
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from math import sqrt
from pathlib import Path
from zlib import crc32

UNSPACED = "\u0e00-\u0eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_MARKED = "\u0900-\u0963\u0966-\u0dff"  # letters of India, and the vowel signs that are no letters to `isalpha`
_MAX_WORD = 24
_LETTERS = rf"[^\W_{UNSPACED}]"
_WORD = re.compile(rf"[{UNSPACED}]{{1,{_MAX_WORD}}}|{_LETTERS}+(?:[{_MARKED}]{_LETTERS}*)*|[<>{{}}\[\]=|#]")
_RUN = re.compile(rf"[{UNSPACED}]+")
_HAS_MARKS = re.compile(rf"[{_MARKED}]")


class TextClassifier:
    """A classifier with the weights of a table: `bias` is the logit of a text without features.

    Args:
        table: `weights` (a signed byte for each bucket, in base64), `scale` (what one step is worth), `bias`, `stress`
            (times that words and pairs count; 1 if absent), `named` and `named_scale` (weights of features that a
            caller numbers), and any thresholds, which are kept by name.
    """

    def __init__(self, table: Mapping[str, float | str]) -> None:
        self._weights, self._scale = _signed(str(table["weights"])), float(table["scale"])
        self.bias, self._stress = float(table["bias"]), int(table.get("stress", 1))
        self._named, self._named_scale = _signed(str(table.get("named", ""))), float(table.get("named_scale", 0))
        self.thresholds = {name: value for name, value in table.items() if isinstance(value, float | int)}
        self._of_word = lru_cache(maxsize=1 << 13)(self._sum)

    def logit(self, words: Sequence[str], named: Sequence[int] = ()) -> float:
        """The logit of a text, from its words and the numbers of its named features."""
        buckets = len(self._weights)
        pairs = self._stress * sum([self._weights[number % buckets] for number in pair_hashes(words)])
        sums = [self._of_word(word) for word in words]
        count = sum(number for _, number in sums) + self._stress * max(0, len(words) - 1)
        more = self._named_scale * sum(map(self._named.__getitem__, named)) / sqrt(max(1, len(named)))
        return self.bias + more + self._scale * (pairs + sum(weight for weight, _ in sums)) / sqrt(max(1, count))

    def _sum(self, word: str) -> tuple[int, int]:
        """The summed weight of a word's features, and their number."""
        hashes, buckets = word_hashes(word, self._stress), len(self._weights)
        return sum(self._weights[number % buckets] for number in hashes), len(hashes)


def _signed(text: str) -> array[int]:
    return array("b", base64.b64decode(text))


@cache
def shipped_classifier(name: str) -> TextClassifier:
    """The classifier of a table of the package."""
    return TextClassifier(json.loads(table_text(f"{name}.json")))


@cache
def shipped_classifiers(name: str) -> Mapping[str, TextClassifier]:
    """The classifiers of a file that has a table for each class."""
    return {label: TextClassifier(table) for label, table in json.loads(table_text(f"{name}.json")).items()}


def table_text(name: str) -> str:
    """The text of a file with a table that the package ships."""
    return (Path(__file__).parent / "tables" / name).read_text(encoding="utf-8")


def words_of(text: str) -> list[str]:
    """The words that a classifier reads."""
    return [word[:_MAX_WORD] for word in _WORD.findall(unicodedata.normalize("NFKC", text).lower())]


def word_hashes(word: str, stress: int = 1) -> tuple[int, ...]:
    """Hashes of the features of one word: the word and its start, `stress` times, and its letters by three and four."""
    if _RUN.match(word):
        return tuple(_hash(word[at : at + size]) for size in (1, 2, 3) for at in range(len(word) - size + 1))
    if not word.isalpha() and not _HAS_MARKS.match(word):
        return (_hash("0" if word.isdigit() else word),)
    edged = f"^{word}$"
    grams = [edged[at : at + size] for size in (3, 4) for at in range(len(edged) - size + 1)]
    return tuple(map(_hash, [*[f"w{word}", f"s{word[:5]}"] * stress, *grams]))


def pair_hashes(words: Sequence[str]) -> list[int]:
    """The hashes of each two words in a row."""
    starts = [word[:6].encode("utf-8", "replace") for word in words]
    return [crc32(b"%b %b" % pair) for pair in pairwise(starts)]


def _hash(feature: str) -> int:
    return crc32(feature.encode("utf-8", "replace"))
