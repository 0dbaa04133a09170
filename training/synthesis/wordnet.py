"""WordNet 3.0, read from its own files: how often a word is what part of speech, and what stands near it in meaning.

The files come with Debian's `wordnet-base` (licence: WordNet 3.0, Princeton University). They serve the making of
training pairs only; nothing of them is shipped. A word counts by its first sense alone, and only where that sense is
what the word mostly means: a rarer sense read as the usual one makes a wrong pair.
"""

import os
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from .vocabulary import MISLED

FOLDER = "/usr/share/wordnet"
MISSING = (
    "WordNet's files are not in {folder}: install them (Debian and Ubuntu: apt-get install wordnet-base) or name their"
    " folder in WORDNET; they are needed to make training pairs, never to run ragwatch"
)
_NAMES = {"N": "noun", "V": "verb", "J": "adj", "R": "adv"}
_DIGITS = {"1": "N", "2": "V", "3": "J", "4": "R", "5": "J"}
_COUSIN_KINDS = frozenset({"05", "06", "13", "20"})  # animals, artefacts, food, plants: two of them are never one
_WIDER_KINDS = frozenset({"05", "06", "13", "18", "20"})  # and people
_USUAL = 0.6
_KNOWN = 3
_FAMILY = 30  # a meaning with more kinds below it is too wide for two of them to be of one sort
_MISLED = frozenset((part[0], word) for part in re.split(r"\n(?=[NVJR]:)", MISLED.strip()) for word in part[2:].split())


def _position(hexadecimal: str) -> int:
    """A link's word number, from 0."""
    return int.from_bytes(bytes.fromhex(hexadecimal)) - 1


class Synset(NamedTuple):
    """One meaning: the kind of thing (lexicographer's file), its words, and its links by symbol."""

    kind: str
    words: tuple[str, ...]
    links: tuple[tuple[str, int, str, str], ...]


class WordNet:
    """Looks words up in the files of one folder.

    Raises:
        FileNotFoundError: The folder does not hold the files; the text says what to install.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or Path(os.environ.get("WORDNET", FOLDER))
        if not (self._folder / "index.noun").exists():
            raise FileNotFoundError(MISSING.format(folder=self._folder))
        self._data = {pos: (self._folder / f"data.{name}").read_bytes() for pos, name in _NAMES.items()}
        self._index = {pos: self._read_index(name) for pos, name in _NAMES.items()}
        self._counts = self._read_counts()
        self.synonyms = cache(self.synonyms)  # type: ignore[method-assign]
        self.antonyms = cache(self.antonyms)  # type: ignore[method-assign]
        self.cousins = cache(self.cousins)  # type: ignore[method-assign]

    def _read_index(self, name: str) -> dict[str, tuple[int, ...]]:
        index = {}
        for line in (self._folder / f"index.{name}").read_text(encoding="ascii").splitlines():
            if not line.startswith(" "):
                parts = line.split()
                index[parts[0]] = tuple(int(offset) for offset in parts[-int(parts[2]) :])
        return index

    def _read_counts(self) -> dict[tuple[str, str], dict[int, int]]:
        counts: dict[tuple[str, str], dict[int, int]] = {}
        for line in (self._folder / "cntlist.rev").read_text(encoding="ascii").splitlines():
            key, sense, count = line.split()
            word, _, rest = key.partition("%")
            counts.setdefault((_DIGITS[rest[0]], word), {})[int(sense)] = int(count)
        return counts

    def known(self, word: str, pos: str) -> bool:
        """Whether the word is listed as this part of speech."""
        return word in self._index[pos]

    def count(self, word: str, pos: str) -> int:
        """How often the word was met as this part of speech in the tagged corpus."""
        return sum(self._counts.get((pos, word), {}).values())

    def _synset(self, pos: str, offset: int) -> Synset:
        data = self._data[pos]
        parts = data[offset : data.index(b"\n", offset)].decode("ascii").split(" | ")[0].split()
        words = int(parts[3], 16)
        names = tuple(part.split("(")[0].lower() for part in parts[4 : 4 + 2 * words : 2])
        base = 4 + 2 * words
        total = int(parts[base])
        fields = parts[base + 1 : base + 1 + 4 * total]
        links = tuple(
            (fields[i], int(fields[i + 1]), fields[i + 2].upper().replace("S", "J").replace("A", "J"), fields[i + 3])
            for i in range(0, len(fields), 4)
        )
        return Synset(parts[1], names, links)

    def first(self, word: str, pos: str) -> tuple[int, Synset] | None:
        """Offset and meaning of the first sense, where it is what the word mostly means and the word is met at all."""
        if (pos, word) in _MISLED:
            return None
        offsets = self._index[pos].get(word)
        counts = self._counts.get((pos, word), {})
        total = sum(counts.values())
        if not offsets or total < _KNOWN or counts.get(1, 0) < _USUAL * total:
            return None
        return offsets[0], self._synset(pos, offsets[0])

    def _shares(self, word: str, pos: str, offset: int) -> bool:
        found = self.first(word, pos)
        return found is not None and found[0] == offset

    def synonyms(self, word: str, pos: str) -> tuple[str, ...]:
        """Words whose usual meaning is the usual meaning of this one."""
        found = self.first(word, pos)
        if not found:
            return ()
        offset, synset = found
        return tuple(other for other in synset.words if other not in (word, word + "s") and "_" not in other and self._shares(other, pos, offset))  # noqa: E501  # fmt: skip

    def antonyms(self, word: str, pos: str) -> tuple[str, ...]:
        """Opposites of the usual meaning."""
        found = self.first(word, pos)
        if not found:
            return ()
        _, synset = found
        place = f"{synset.words.index(word) + 1:02x}" if word in synset.words else "00"
        opposites = []
        for symbol, offset, other_pos, ends in synset.links:
            if symbol == "!" and ends[:2] == place and other_pos == pos:
                opposites.append(self._synset(pos, offset).words[_position(ends[2:])])
        return tuple(opposites)

    def above(self, word: str, pos: str) -> tuple[str, ...]:
        """What the usual meaning is a kind of, one step up."""
        found = self.first(word, pos)
        if not found or found[1].kind not in _WIDER_KINDS:
            return ()
        parents = [offset for symbol, offset, _, _ in found[1].links if symbol == "@"]
        return tuple(w for offset in parents for w in self._synset(pos, offset).words if self._shares(w, pos, offset) and "_" not in w)  # noqa: E501  # fmt: skip

    def cousins(self, word: str, pos: str) -> tuple[str, ...]:
        """Other kinds of the same thing, one step up and down again: an actor is a cousin of a dancer.

        Only for animals, made things, food and plants.
        """
        found = self.first(word, pos)
        if pos != "N" or not found or found[1].kind not in _COUSIN_KINDS:
            return ()
        offset, synset = found
        family: list[str] = []
        for symbol, parent, _, _ in synset.links:
            if symbol != "@":
                continue
            children = [child for down, child, _, _ in self._synset(pos, parent).links if down == "~"]
            for child in children if len(children) <= _FAMILY else ():
                if child != offset:
                    family += [w for w in self._synset(pos, child).words if "_" not in w and self._shares(w, pos, child)]  # noqa: E501  # fmt: skip
        return tuple(dict.fromkeys(w for w in family if w != word and w.isalpha()))
