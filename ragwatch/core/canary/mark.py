"""Marks of canary queries, which services log, so that their answers are not taken for traffic.

A mark is a secret of the day: `<suite>.<day>.<hash>`. Whoever does not know the secret of the state cannot write one,
and one that was seen in a log hides nothing but answers of that day.
"""

from __future__ import annotations

from hashlib import blake2b

_DAY_SECONDS = 86400.0
_MAX_DAYS_APART = 1  # between the mark and its answer: clocks differ, and an answer may be logged after midnight
_HASH_BYTES = 16
_MAX_CHARS = 300


class CanaryMarks:
    """Writes and checks marks; without the secret of the state no mark is valid."""

    def __init__(self, secret: bytes = b"") -> None:
        self._key = blake2b(secret, digest_size=32, person=b"canary mark").digest() if secret else None

    def mark(self, suite: str, now: float) -> str:
        """Return the mark of a suite for an instant; without a secret the name of the suite, which is no valid mark."""
        if self._key is None:
            return suite
        text = f"{suite}.{int(now // _DAY_SECONDS)}"
        return f"{text}.{self._hash(self._key, text)}"

    def is_valid(self, value: object, at: float | None) -> bool:
        """Return whether a value from a log is a mark of ours for an answer of that time, if one was logged."""
        if self._key is None or not isinstance(value, str) or len(value) > _MAX_CHARS:
            return False
        text, _, given = value.strip().rpartition(".")
        day = text.rpartition(".")[2]
        expected = self._hash(self._key, text)
        if given != expected:  # in whatever time: it is read from a log, and nobody waits for the result
            return False
        return at is None or abs(at // _DAY_SECONDS - int(day)) <= _MAX_DAYS_APART

    @staticmethod
    def _hash(key: bytes, text: str) -> str:
        return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_HASH_BYTES, key=key).hexdigest()
