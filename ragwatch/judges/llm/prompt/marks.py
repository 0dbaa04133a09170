"""Marks: the random names of a page, from a seed. Who does not know the seed cannot guess them.

They are taken from a hash and not from `random`, whose sequence is not promised to stay the same: a batch that was
sent by one version of Python must be understood by the next.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

_LETTERS = "bcdfghjklmnpqrstvwxz"  # no vowels: no words, so no meaning
_FAIR = 256 - 256 % len(_LETTERS)
_BLOCK = 64
_CROWD = 2_000  # more marks than this get a fourth letter, so that free ones are found at once


class RandomMarks:
    """Draws ids that differ from one another, and one fence.

    Args:
        seed: Secret of this page; the same seed gives the same marks in the same order.

    Attributes:
        fence: Eight hexadecimal digits.
    """

    def __init__(self, seed: str) -> None:
        self.fence = hashlib.sha256(f"fence {seed}".encode(errors="surrogatepass")).hexdigest()[:8]
        self._letters = _letters(seed)
        self._taken: set[str] = set()

    def new(self) -> str:
        """An id of three consonants that was not given out before."""
        while True:
            length = 3 if len(self._taken) < _CROWD else 4
            mark = "".join(next(self._letters) for _ in range(length))
            if mark not in self._taken:
                self._taken.add(mark)
                return mark


def _letters(seed: str) -> Iterator[str]:
    block = 0
    while True:
        for byte in hashlib.shake_256(f"marks {block} {seed}".encode(errors="surrogatepass")).digest(_BLOCK):
            if byte < _FAIR:
                yield _LETTERS[byte % len(_LETTERS)]
        block += 1
