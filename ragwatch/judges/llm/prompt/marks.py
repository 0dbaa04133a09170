"""Generates the random ids of a page from a seed. Without the seed, text on the page cannot guess them.

The ids come from a hash and not from `random`, whose sequence may differ between versions of Python: the replies to a
batch may be parsed by a later version than the one that sent it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

_LETTERS = "bcdfghjklmnpqrstvwxz"  # no vowels, so that no id is a word
_UNBIASED_BYTES = 256 - 256 % len(_LETTERS)
_BLOCK_BYTES = 64
_MAX_SHORT_MARKS = 2_000  # after so many, marks have four letters, so that an unused one is found quickly


class RandomMarks:
    """Generates unique ids, and one fence.

    Args:
        seed: Secret seed of the page; the same seed gives the same marks in the same order.

    Attributes:
        fence: Eight hexadecimal digits.
    """

    def __init__(self, seed: str) -> None:
        self.fence = hashlib.sha256(f"fence {seed}".encode(errors="surrogatepass")).hexdigest()[:8]
        self._letters = _letters(seed)
        self._taken: set[str] = set()

    def new(self) -> str:
        """Return an unused id of three consonants; of four when most of those are used."""
        while True:
            length = 3 if len(self._taken) < _MAX_SHORT_MARKS else 4
            mark = "".join(next(self._letters) for _ in range(length))
            if mark not in self._taken:
                self._taken.add(mark)
                return mark


def _letters(seed: str) -> Iterator[str]:
    block = 0
    while True:
        for byte in hashlib.shake_256(f"marks {block} {seed}".encode(errors="surrogatepass")).digest(_BLOCK_BYTES):
            if byte < _UNBIASED_BYTES:
                yield _LETTERS[byte % len(_LETTERS)]
        block += 1
