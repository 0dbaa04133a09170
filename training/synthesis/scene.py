"""A scene: one sentence of one passage with everything that an edit may look at, and what an edit hands back."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from .corpus import Corpus, Passage
from .lexicon import Lexicon
from .lists import bars, words
from .marked import Marked
from .reading import Sentence, read
from .vocabulary import CITIES, COUNTRIES, GIVEN, STATES

Verdict = Literal["supported", "contradicted", "not_in_context"]
_ORGANISATION = re.compile(
    r"(?:University|College|School|Company|Corporation|Inc|Records|Party|Club|Institute|Association|League|Church|Bank"
    r"|Museum|Society|Foundation|Group|Airlines|Army|Navy|Department|Committee|Council|Agency|Entertainment|Studios"
    r"|Pictures|Press|Union|Team|Festival|Awards?|Airport|Stadium|Hospital|Library)\b"
)
_PLACE = re.compile(
    r"(?:River|Lake|Mountains?|Island|Islands|County|City|Valley|Province|District|Township|Street|Bay|Park)$"
)
_PREDICATE = re.compile(r"(?:He|She|It|The \w+) ((?:is|was|has|[a-z]{3,}ed) [^,;:()\"]{15,90})\.$")
_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+")
_YEAR = re.compile(r"(?<![\w.,$-])(?:1[5-9]|20)\d\d(?![\w%-])")
_COUNT = re.compile(r"(?<![\w.,$-])\d{1,3}(?:,\d{3})*(?![\w%.,-])")
_MOST = 60
_WORDS = re.compile(r"[^\W\d_]+")


KINDS = {
    **dict.fromkeys(bars(COUNTRIES), "country"),
    **dict.fromkeys(bars(CITIES), "city"),
    **dict.fromkeys(bars(STATES), "state"),
}
_ROLE = re.compile(r"\b(?:Mr|Mrs|Dr|Sir|singer|actor|actress|director|writer|drummer|guitarist|author)\.? $")
_IN = re.compile(r"\b(?:in|near|from|at) $")
_ENDED = re.compile(r",|\.$|,? (?:and|in)\b")
_GIVEN = words(GIVEN)
_CALENDAR = words(
    """
January February March April May June July August September October November December Monday Tuesday Wednesday Thursday
Friday Saturday Sunday Spring Summer Autumn Winter Christmas Easter English French German Spanish
"""
)


@dataclass(frozen=True)
class Change:
    """An edit of a sentence."""

    pieces: tuple[tuple[int, int, str], ...]  # (start, end, new text) within the sentence, in order, not overlapping
    recipe: str  # name of the kind of edit
    verdict: Verdict  # what the edited claim is, read against the passage as it was
    # what the claim as it was is, read against the passage edited likewise; None where that is unsure
    back: Verdict | None
    # (old, new) to be replaced in the rest of the passage as well, so that it agrees with itself
    words: tuple[tuple[str, str], ...] = ()

    def old(self, sentence: str) -> Marked:
        """The sentence as it was, the places marked that the edit touches."""
        return self._made(sentence, new=False)

    def new(self, sentence: str) -> Marked:
        """The edited sentence, its new words marked."""
        return self._made(sentence, new=True)

    def _made(self, sentence: str, *, new: bool) -> Marked:
        parts: list[Marked | str] = []
        last = 0
        for start, end, text in self.pieces:
            parts += [sentence[last:start], Marked.of(text if new else sentence[start:end], changed=True)]
            last = end
        return Marked.join([*parts, sentence[last:]])


class World:
    """The corpus with its names sorted by type, and the lexicon."""

    def __init__(self, corpus: Corpus, lexicon: Lexicon) -> None:
        self.corpus = corpus
        self.lexicon = lexicon
        self.by_id = {passage.id: passage for passage in corpus.passages}
        self.scenes = tuple((passage, index) for passage in corpus.passages for index in range(len(passage.sentences)))
        self.kinds: dict[str, str] = {}
        self.names: dict[str, list[str]] = {}
        predicates: dict[str, None] = {}
        for passage, index in self.scenes:
            start, end = passage.sentences[index]
            text = passage.text[start:end]
            self._learn(read(text, lexicon))
            half = _PREDICATE.match(text)
            if half:
                predicates[half.group(1)] = None
        self.holders = _holders(corpus)
        self.predicates = tuple(predicates)
        for name in sorted(self.kinds):
            self.names.setdefault(self.kinds[name], []).append(name)

    def _learn(self, sentence: Sentence) -> None:
        for name in sentence.names:
            kind = self._kind(name.text, sentence.text[: name.start], sentence.text[name.end :])
            if kind != "other" or name.text not in self.kinds:
                self.kinds[name.text] = kind

    @staticmethod
    def _kind(name: str, before: str, after: str) -> str:
        if name in KINDS:
            return KINDS[name]
        parts = name.split()
        given = parts[0] in _GIVEN and "of" not in parts
        located = len(parts) < 3 and _IN.search(before) and _ENDED.match(after)
        if name.isupper() or parts[0] in _CALENDAR or any(character.isdigit() for character in name):
            return "other"
        if _ORGANISATION.search(name):
            return "organisation"
        if 1 < len(parts) < 4 and not _PLACE.search(name) and (given or _ROLE.search(before)):
            return "person"
        return "place" if located or _PLACE.search(name) else "other"

    def decoy(self, words: str, scene: Scene) -> str | None:
        """A passage on another matter that holds these words; for a number, one that is made to hold it."""
        rare = min(_TOKEN.findall(words.lower()), key=lambda word: len(self.holders.get(word, ())), default="")
        found = self.holders.get(rare, ())
        for _ in range(4 if found else 0):
            text = self.corpus.passages[scene.rng.choice(found)].text
            if scene.foreign(text) and re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text, re.IGNORECASE):
                return text
        if not re.fullmatch(r"\$?[\d.,]+", words):
            return None
        pattern = _YEAR if re.fullmatch(r"(?:1[5-9]|20)\d\d", words) else _COUNT
        for _ in range(8):
            text = scene.rng.choice(self.corpus.passages).text
            if scene.foreign(text) and pattern.search(text):
                return pattern.sub(lambda _: words, text, count=1)
        return None

    def names_in(self, text: str) -> list[str]:
        """Names of a sentence."""
        return [name.text for name in read(text, self.lexicon).names]

    def kind(self, name: str) -> str:
        """Type of a name: country, city, state, place, person, organisation or other."""
        return self.kinds.get(name, KINDS.get(name, "other"))


def _holders(corpus: Corpus) -> dict[str, tuple[int, ...]]:
    """Numbers of some passages that hold each word."""
    holders: dict[str, list[int]] = {}
    for number, passage in enumerate(corpus.passages):
        for word in sorted(set(_TOKEN.findall(passage.text.lower()))):
            found = holders.setdefault(word, [])
            if len(found) < _MOST:
                found.append(number)
    return {word: tuple(found) for word, found in holders.items()}


@dataclass(frozen=True)
class Scene:
    """One sentence in its passage."""

    world: World
    passage: Passage
    start: int
    end: int
    rng: random.Random

    @cached_property
    def sentence(self) -> Sentence:
        """The sentence, read."""
        return read(self.passage.text[self.start : self.end], self.world.lexicon)

    @property
    def text(self) -> str:
        """The sentence's text."""
        return self.passage.text[self.start : self.end]

    @cached_property
    def words(self) -> frozenset[str]:
        """Lower-case words of the whole passage and its title."""
        return frozenset(_WORDS.findall(f"{self.passage.title} {self.passage.text}".lower()))

    def foreign(self, text: str) -> bool:
        """Whether a text is on another matter: neither this passage nor one that names its subject."""
        title = self.passage.title.partition(" (")[0]
        return text != self.passage.text and not (title and title in text)

    def rest(self) -> str:
        """The passage without the sentence."""
        return self.passage.text[: self.start] + " " + self.passage.text[self.end :]

    def saying(self, sentence: str, words: tuple[tuple[str, str], ...] = ()) -> str:
        """The passage with another sentence in the place of this one, and words replaced in the rest."""
        before, after = self.passage.text[: self.start], self.passage.text[self.end :]
        for old, new in words:
            before, after = replaced(before, old, new), replaced(after, old, new)
        return before + sentence + after


def replaced(text: str, old: str, new: str) -> str:
    """A text with one word or name in the place of another, wherever it stands."""
    return re.sub(rf"(?<![\w-]){re.escape(old)}(?![\w-])", lambda _: new, text)
