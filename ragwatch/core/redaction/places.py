"""Finds the original places of values that were replaced in a text one after another."""

from __future__ import annotations

from ragwatch.core.redaction.rule import NamedRule

_Replaced = tuple[int, int, int, int, NamedRule]
"""Start and end of a token in the present text, of the value in the original text, and the rule."""


class OriginalPlaces:
    """Keeps, for a text in which values are replaced by tokens, where the values stood in the original text."""

    def __init__(self) -> None:
        self._replaced: list[_Replaced] = []

    def replace(self, values: list[tuple[int, int, NamedRule, int]]) -> None:
        """Notes replacements: start and end in the present text, the rule, and the length of the token; in order."""
        merged: list[_Replaced] = []
        old = iter([*self._replaced, None])
        at = next(old)
        shift = moved = 0  # original less present place; new less present place
        for start, end, rule, length in values:
            while at is not None and at[1] <= start:
                merged.append((at[0] + moved, at[1] + moved, *at[2:]))
                shift = at[3] - at[1]
                at = next(old)
            first = start + shift
            while at is not None and at[0] < end:  # a value that contains tokens takes their place
                first = min(first, at[2])
                shift = at[3] - at[1]
                at = next(old)
            merged.append((start + moved, start + moved + length, first, end + shift, rule))
            moved += length - (end - start)
        while at is not None:
            merged.append((at[0] + moved, at[1] + moved, *at[2:]))
            at = next(old)
        self._replaced = merged

    def values(self) -> list[tuple[int, int, NamedRule]]:
        """Start, end and rule of every value in the original text, in order."""
        return [(start, end, rule) for _, _, start, end, rule in self._replaced]
