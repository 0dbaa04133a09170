"""Vocabulary: which words questions are made of, and how strange the words of another question are beside it.

Words are counted in a fixed number of slots by a hash of their own, so that a vocabulary has one size, whatever people
ask, and holds no word that could be read again. Two words in one slot make the rarer one look known: a question looks a
little less strange than it is, before and after a change alike.

A vocabulary is learnt once and then left as it is. Strangeness is then a fixed function of a question, so that its
distribution may be watched like that of any other number (see `detectors.shift`); while it were still learning, every
question would look stranger than the next one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from zlib import crc32

SLOTS = 1 << 15
_MOST = 255
_AT_HAND, _ORDINARY = 10_000, 40  # words, and the bytes of one
_LONGEST = 2000  # characters of a question that are read: a pasted document is no longer question
# Scripts without spaces between words give one sign at a time; digits are all alike, for numbers are always new.
_UNSPACED = "\u0e00-\u0eff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")
_DIGITS = str.maketrans("123456789", "000000000")
# The same for plain ASCII, several times as fast: what is no part of a word becomes a space, but for NUL.
_NONE = "\0"
_PLAIN = bytes(
    ord(sign.lower().translate(_DIGITS)) if sign.isalnum() or sign in ("_", _NONE) else 32
    for sign in map(chr, range(256))
)
_STRANGENESS = tuple(1.0 - math.log1p(count) / math.log1p(_MOST) for count in range(_MOST + 1))


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What questions are made of.

    Attributes:
        counts: By slot: in how many questions a word of it stood, 255 for that many or more.
        questions: Questions it was learnt from.
    """

    counts: bytes = bytes(SLOTS)
    questions: int = 0

    @property
    def mark(self) -> str:
        """Tells one vocabulary from another."""
        return f"{crc32(self.counts):08x}-{self.questions}"


def words_of(question: str) -> list[bytes]:
    """Its words, in lower case, with every digit a 0.

    >>> words_of("Order 4711, please!"), len(words_of("水は何度で沸く"))
    ([b'order', b'0000', b'please'], 7)
    """
    read = question[:_LONGEST]
    if _is_plain(read):
        return read.encode().translate(_PLAIN).split()
    return [word.encode() for word in _WORD.findall(read.lower().translate(_DIGITS))]


def learn(vocabulary: Vocabulary, questions: Iterable[str]) -> Vocabulary:
    """The vocabulary with some questions more.

    >>> learn(Vocabulary(), ["a b", "b"]).questions
    2
    """
    counts, read = bytearray(vocabulary.counts), vocabulary.questions
    for question in questions:
        read += 1
        for slot in {_slot(word) for word in words_of(question)}:
            if counts[slot] < _MOST:
                counts[slot] += 1
    return Vocabulary(bytes(counts), read)


class NoveltyMeter:
    """A vocabulary that is learnt, to measure questions with.

    It keeps at hand what it found of words, of so many at most: intake asks for every request.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._of = _WordNovelty(vocabulary.counts).__getitem__

    def strangeness(self, questions: Sequence[str]) -> list[float]:
        """Of each question that has a word, in any order: the mean strangeness of its words.

        0 where each is as common as can be, 1 where none was seen before: a word seen in c questions has
        1 - ln(1 + c) / ln 256.

        >>> known = Meter(learn(Vocabulary(), ["how do I open a file"] * 255))
        >>> known.strangeness(["How do I open a file?", "refund my ticket", "?!"])
        [0.0, 1.0]
        """
        # All plain ones are read at once: most of the time would go into calls.
        plain = list(filter(_is_plain, questions))
        others = [] if len(plain) == len(questions) else [each for each in questions if not _is_plain(each)]
        lines = _NONE.join(plain).encode().translate(_PLAIN).split(_NONE.encode())
        rows = [*(line.split() for line in lines), *map(words_of, others)]
        return [math.fsum(map(self._of, row)) / len(row) for row in rows if row]


class _WordNovelty(dict[bytes, float]):
    """By word."""

    def __init__(self, counts: bytes) -> None:
        super().__init__()
        self._counts = counts

    def __missing__(self, word: bytes) -> float:
        found = _STRANGENESS[self._counts[_slot(word)]]
        if len(self) < _AT_HAND and len(word) <= _ORDINARY:
            self[word] = found
        return found


def _is_plain(question: str) -> bool:
    return question.isascii() and _NONE not in question and len(question) <= _LONGEST


def _slot(word: bytes) -> int:
    return crc32(word) % SLOTS
