"""Which concepts of an instruction to a judge a text names, in thirty languages: a judge, a claim, all, to ignore.

A classifier that is fitted on concepts and on pairs of them reads wordings that none of its lines has. A word names a
concept if it starts with a stem of `tables/concepts.txt`; in Hebrew and Arabic, behind up to two letters; in
languages without spaces, if it contains one.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from itertools import combinations_with_replacement

from ragwatch.judges.text_classifier import UNSPACED, table_text

_UNSPACED = re.compile(f"[{UNSPACED}]")
_PREFIXED = re.compile("[\u0590-\u06ff]")
_DENSE = re.compile("[\u0590-\u06ff\uac00-\ud7af]")  # two letters are a stem
_LONGEST = 16
_LONGEST_UNSPACED = 8


@cache
def _names() -> tuple[str, ...]:
    return tuple(row.partition(":")[0] for row in table_text("concepts.txt").splitlines())


@cache
def _stems() -> Mapping[str, frozenset[int]]:
    """The numbers of the concepts of each stem."""
    numbers: dict[str, frozenset[int]] = {}
    for number, row in enumerate(table_text("concepts.txt").splitlines()):
        for stem in row.partition(":")[2].split():
            numbers[stem] = numbers.get(stem, frozenset()) | {number}
    return numbers


def pair_count() -> int:
    """One more than the highest number that `concept_pairs` gives."""
    return len(_names()) ** 2


def concept_pairs(words: Sequence[str]) -> list[int]:
    """Numbers of the concepts that words name, and of the pairs of them.

    >>> len(concept_pairs(["ignore", "the", "weather"])), len(concept_pairs(["ignore", "all", "rules"]))
    (1, 6)
    """
    concepts = sorted(frozenset().union(*map(_of_word, words)))
    return [first * len(_names()) + second for first, second in combinations_with_replacement(concepts, 2)]


@lru_cache(maxsize=1 << 13)
def _of_word(word: str) -> frozenset[int]:
    stems = _stems()
    if _UNSPACED.match(word):
        places = range(len(word))
        parts = (word[at : at + size] for at in places for size in range(1, _LONGEST_UNSPACED + 1))
        return frozenset().union(*(stems[part] for part in parts if part in stems))
    shortest = 2 if _DENSE.match(word) else 3
    for start in range(min(3, max(1, len(word) - 2)) if _PREFIXED.match(word) else 1):
        for end in range(min(len(word), _LONGEST), start, -1):
            if word[start:end] in stems and (end == len(word) or end - start >= shortest):
                return stems[word[start:end]]
    return frozenset()
