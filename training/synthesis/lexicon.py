"""The lexicon: what a word may be, what means the same, what cannot stand in its place and keep the sense."""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

from . import inflect
from .vocabulary import APART, OPPOSITE, SAME

Sets = dict[tuple[str, str], tuple[str, ...]]


class Thesaurus(Protocol):
    """What WordNet answers; a test brings a small one of its own."""

    def known(self, word: str, pos: str) -> bool:
        """Whether the word is listed as this part of speech (N, V, J or R)."""

    def count(self, word: str, pos: str) -> int:
        """How often it was met so."""

    def synonyms(self, word: str, pos: str) -> tuple[str, ...]:
        """Words of the same usual meaning."""

    def antonyms(self, word: str, pos: str) -> tuple[str, ...]:
        """Opposites."""

    def above(self, word: str, pos: str) -> tuple[str, ...]:
        """What it is a kind of."""

    def cousins(self, word: str, pos: str) -> tuple[str, ...]:
        """Other kinds of the same."""


def _sets(table: dict[str, str]) -> Sets:
    found: dict[tuple[str, str], dict[str, None]] = {}
    for pos, text in table.items():
        for line in text.strip().replace("\n", "|").split("|"):
            words = line.split()
            for word in words:
                found.setdefault((pos, word), {}).update(dict.fromkeys(other for other in words if other != word))
    return {key: tuple(words) for key, words in found.items()}


@dataclass(frozen=True, eq=False)
class Lexicon:
    """Word lists of our own in front of a thesaurus."""

    thesaurus: Thesaurus  # WordNet, or a small stand-in
    same: Sets = field(default_factory=lambda: _sets(SAME))  # own sets of synonyms, by (part of speech, base form)
    apart: Sets = field(default_factory=lambda: _sets(APART))  # own sets of words that exclude one another
    opposite: Sets = field(default_factory=lambda: _sets(OPPOSITE))  # own opposites

    def readings(self, word: str) -> tuple[tuple[str, str, str, float], ...]:
        """(base, part of speech, form, weight) of everything that a lower-case word may be, likeliest first."""
        return _readings(self, word)

    def synonyms(self, base: str, pos: str) -> tuple[str, ...]:
        """Words that may stand for it."""
        return tuple(dict.fromkeys(self.same.get((pos, base), ()) + self.thesaurus.synonyms(base, pos)))

    def opposites(self, base: str, pos: str) -> tuple[str, ...]:
        """Words that turn the sense."""
        return tuple(dict.fromkeys(self.opposite.get((pos, base), ()) or self.thesaurus.antonyms(base, pos)))

    def others(self, base: str, pos: str) -> tuple[str, ...]:
        """Words of the same kind that say something else."""
        near = set(self.synonyms(base, pos)) | set(self.thesaurus.above(base, pos))
        own = self.apart.get((pos, base), ())
        return tuple(word for word in own or self.thesaurus.cousins(base, pos) if word not in near)

    def above(self, base: str, pos: str) -> tuple[str, ...]:
        """What it is a kind of."""
        return self.thesaurus.above(base, pos)

    def related(self, base: str, other: str, pos: str) -> bool:
        """Whether two words may mean the same, or one be a kind of the other."""
        if base == other or other in self.synonyms(base, pos) or base in self.synonyms(other, pos):
            return True
        return other in self.thesaurus.above(base, pos) or base in self.thesaurus.above(other, pos)


@lru_cache(maxsize=1 << 16)
def _readings(lexicon: Lexicon, word: str) -> tuple[tuple[str, str, str, float], ...]:
    book = lexicon.thesaurus
    found: list[tuple[str, str, str, float]] = []

    def add(base: str, pos: str, form: str) -> None:
        if book.known(base, pos) or (pos, base) in lexicon.same or (pos, base) in lexicon.apart:
            found.append((base, pos, form, book.count(base, pos) + 0.2))

    for pos, form in (("N", "N"), ("V", "V"), ("J", "J"), ("R", "R")):
        add(word, pos, form)
    for base in inflect.singulars(word):
        add(base, "N", "NS")
    for base, form in inflect.verbs(word):
        add(base, "V", form)
    return tuple(sorted(dict.fromkeys(found), key=lambda reading: -reading[3]))
