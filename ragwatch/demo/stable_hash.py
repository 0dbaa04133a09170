"""Hashes a text to a number, the same in every process."""

from __future__ import annotations

from hashlib import blake2b


def stable_hash(text: str) -> int:
    """Hashes a text to a number below 2**64.

    >>> stable_hash("tea") == stable_hash("tea"), stable_hash("tea") == stable_hash("coffee")
    (True, False)
    """
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")
