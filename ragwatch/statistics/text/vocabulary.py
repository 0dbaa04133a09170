"""Novelty of questions: a vocabulary learnt from earlier questions, and how rare the words of a new question are in it.

Words are counted in a fixed number of slots by hash: the size is fixed, and no word can be read. Two words in one slot
make the rarer one look more frequent, so novelty is slightly underestimated, before and after a change alike.

A vocabulary is learnt once and then frozen, so that novelty is a fixed function of a question and a shift of its
distribution can be detected (see `drift.shift`); while it is learnt, novelty falls with every question.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from zlib import crc32

SLOTS = 1 << 15
_MAX_COUNT = 255
_MAX_CACHED_WORDS, _MAX_CACHED_BYTES = 10_000, 40  # number of cached words, and the bytes of one
_MAX_CHARS = 2000  # characters of a question that are read; a longer text contains a pasted document
# In scripts without spaces each character is a word. All digits count as 0, because numbers are always new.
_UNSPACED = "\u0e00-\u0eff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")
_DIGITS = str.maketrans("123456789", "000000000")
# The same for ASCII, several times as fast: characters outside words become spaces, except NUL.
_NUL = "\0"
_ASCII = bytes(
    ord(char.lower().translate(_DIGITS)) if char.isalnum() or char in ("_", _NUL) else 32
    for char in map(chr, range(256))
)
_NOVELTY = tuple(1.0 - math.log1p(count) / math.log1p(_MAX_COUNT) for count in range(_MAX_COUNT + 1))


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Word frequencies: by slot, the number of questions with a word in it, capped at 255, of so many questions."""

    counts: bytes = bytes(SLOTS)
    questions: int = 0

    @property
    def mark(self) -> str:
        """Fingerprint of the vocabulary."""
        return f"{crc32(self.counts):08x}-{self.questions}"


def words_of(question: str) -> list[bytes]:
    """Split a question into words, in lower case and with every digit as 0.

    >>> words_of("Order 4711, please!"), len(words_of("水は何度で沸く"))
    ([b'order', b'0000', b'please'], 7)
    """
    text = question[:_MAX_CHARS]
    if _is_short_ascii(text):
        return text.encode().translate(_ASCII).split()
    return [word.encode() for word in _WORD.findall(text.lower().translate(_DIGITS))]


def learn(vocabulary: Vocabulary, questions: Iterable[str]) -> Vocabulary:
    """Return the vocabulary with more questions added."""
    counts, number = bytearray(vocabulary.counts), vocabulary.questions
    for question in questions:
        number += 1
        for slot in {_slot(word) for word in words_of(question)}:
            if counts[slot] < _MAX_COUNT:
                counts[slot] += 1
    return Vocabulary(bytes(counts), number)


class NoveltyMeter:
    """Measures the novelty of questions; that of up to 10,000 words is cached, for the speed of intake."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._novelty_of = _WordNovelty(vocabulary.counts).__getitem__

    def strangeness(self, questions: Sequence[str]) -> list[float]:
        """Return the mean novelty of the words of each question that has a word, in any order.

        A word that was seen in c questions has a novelty of 1 - ln(1 + c) / ln 256: 1 for a new word, 0 for one seen in
        255 questions or more.
        """
        # All ASCII questions are translated in one call: otherwise most of the time would be spent on calls.
        ascii_questions = list(filter(_is_short_ascii, questions))
        others = (
            []
            if len(ascii_questions) == len(questions)
            else [question for question in questions if not _is_short_ascii(question)]
        )
        lines = _NUL.join(ascii_questions).encode().translate(_ASCII).split(_NUL.encode())
        rows = [*(line.split() for line in lines), *map(words_of, others)]
        return [math.fsum(map(self._novelty_of, row)) / len(row) for row in rows if row]


class _WordNovelty(dict[bytes, float]):
    """Cache of the novelty by word."""

    def __init__(self, counts: bytes) -> None:
        super().__init__()
        self._counts = counts

    def __missing__(self, word: bytes) -> float:
        novelty = _NOVELTY[self._counts[_slot(word)]]
        if len(self) < _MAX_CACHED_WORDS and len(word) <= _MAX_CACHED_BYTES:
            self[word] = novelty
        return novelty


def _is_short_ascii(question: str) -> bool:
    return question.isascii() and _NUL not in question and len(question) <= _MAX_CHARS


def _slot(word: bytes) -> int:
    return crc32(word) % SLOTS
