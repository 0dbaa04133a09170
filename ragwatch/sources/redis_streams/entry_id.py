"""Ids of entries of a Redis stream: milliseconds since the epoch, and a sequence number."""

from __future__ import annotations

from typing import NamedTuple

_MAX_SEQUENCE = (1 << 64) - 1


class EntryId(NamedTuple):
    """The id of an entry, in the order of the stream."""

    milliseconds: int
    sequence: int

    @classmethod
    def parse(cls, text: bytes | str) -> EntryId:
        """Read an id as Redis writes it.

        >>> EntryId.parse(b"1700000000000-3")
        EntryId(milliseconds=1700000000000, sequence=3)

        Raises:
            ValueError: It is no id.
        """
        milliseconds, _, sequence = (text if isinstance(text, str) else text.decode("ascii")).partition("-")
        return cls(int(milliseconds), int(sequence))

    def __str__(self) -> str:
        return f"{self.milliseconds}-{self.sequence}"

    @property
    def offset(self) -> int:
        """The id as one number."""
        return self.milliseconds << 64 | self.sequence

    def before(self) -> EntryId:
        """Return the largest id before this one.

        >>> str(EntryId(5, 3).before()), str(EntryId(5, 0).before()), str(EntryId(0, 0).before())
        ('5-2', '4-18446744073709551615', '0-0')
        """
        if self.sequence:
            return EntryId(self.milliseconds, self.sequence - 1)
        return EntryId(self.milliseconds - 1, _MAX_SEQUENCE) if self.milliseconds else self


START = EntryId(0, 0)
