"""Rejections: the first record of each spell of rejected records, for the text of an alert."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

SPELL_SECONDS = 3600.0
"""A spell ends so long after its last rejection."""
_MAX_CHARS = 120  # of a label value


@dataclass(slots=True)
class _Spell:
    field: str
    place: str
    last: float


class Rejections:
    """The first rejected record of each spell, by source and reason."""

    def __init__(self) -> None:
        self._spells: dict[tuple[str, str], _Spell] = {}

    def add(self, source: str, reason: str, field: str, place: str, now: float) -> None:
        """Count a rejected record of a source.

        `field` is the path of what is invalid (empty for all of it), `place` its file and line, `now` seconds of any
        clock that does not go back.
        """
        spell = self._spells.get((source, reason))
        if spell is None or now - spell.last >= SPELL_SECONDS:
            self._spells[source, reason] = _Spell(_short(field), _short(place), now)
        else:
            spell.last = now

    def first(self, now: float) -> Iterator[tuple[str, str, str, str]]:
        """Source, reason, field and place of the first record of each spell that lasts."""
        for key, spell in tuple(self._spells.items()):
            if now - spell.last < SPELL_SECONDS:
                yield *key, spell.field, spell.place


def _short(text: str) -> str:
    printable = "".join(char if char.isprintable() else "?" for char in text)
    return printable if len(printable) <= _MAX_CHARS else f"...{printable[-_MAX_CHARS:]}"
