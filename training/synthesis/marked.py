"""Marked text: a string that remembers which of its characters stand where something was changed.

A sentence and its altered twin go through the same rewritings (cut, turn, join); the marks say afterwards where the
changed words came to lie, so that every claim knows its unsupported span.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Marked:
    """Text and, for each character, whether it belongs to a change."""

    text: str  # the characters
    marks: str  # "1" for a changed character, "0" for another; as long as `text`

    @classmethod
    def of(cls, text: str, *, changed: bool = False) -> Marked:
        """Text that is changed as a whole, or not at all."""
        return cls(text, ("1" if changed else "0") * len(text))

    @classmethod
    def join(cls, parts: Sequence[Marked | str]) -> Marked:
        """Parts one behind the other; a plain string is unchanged."""
        whole = [Marked.of(part) if isinstance(part, str) else part for part in parts]
        return cls("".join(part.text for part in whole), "".join(part.marks for part in whole))

    def cut(self, start: int, end: int | None = None) -> Marked:
        """The piece from `start` to `end`."""
        return Marked(self.text[start:end], self.marks[start:end])

    def put(self, start: int, end: int, new: str, *, changed: bool | None = None) -> Marked:
        """`new` in place of a piece; it is changed when told so, or when any character of the piece was."""
        flag = "1" in self.marks[start:end] if changed is None else changed
        return Marked.join((self.cut(0, start), Marked.of(new, changed=flag), self.cut(end)))

    def sub(self, pattern: re.Pattern[str], new: str | Callable[[re.Match[str]], str], count: int = 1) -> Marked:
        """The first `count` matches replaced, each keeping its mark."""
        result = self
        for match in reversed(list(pattern.finditer(self.text))[:count]):
            result = result.put(match.start(), match.end(), match.expand(new) if isinstance(new, str) else new(match))
        return result

    def strip(self) -> Marked:
        """Without white space at either end."""
        start = len(self.text) - len(self.text.lstrip())
        return self.cut(start, max(start, len(self.text.rstrip())))

    @property
    def changed(self) -> bool:
        """Whether any character belongs to a change."""
        return "1" in self.marks

    def spans(self) -> tuple[tuple[int, int], ...]:
        """(start, end) of every run of changed characters, white space at the ends left out."""
        found = []
        for run in re.finditer("1+", self.marks):
            piece = self.text[run.start() : run.end()]
            start = run.start() + len(piece) - len(piece.lstrip())
            end = run.start() + len(piece.rstrip())
            if start < end:
                found.append((start, end))
        return tuple(found)


def upper(text: Marked) -> Marked:
    """With a capital at the start."""
    return Marked(text.text[:1].upper() + text.text[1:], text.marks) if text.text[:1].islower() else text
