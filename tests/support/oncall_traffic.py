"""Traffic of a RAG service for replays: answers about places, most of them good, and answers broken in a known way."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import Any

_FIRST = (
    "Harbour",
    "Linden",
    "Mill",
    "Meridian",
    "Abbey",
    "Castle",
    "Orchard",
    "River",
    "Tower",
    "Garden",
    "Bridge",
    "Chapel",
)
_SECOND = ("Museum", "Library", "Theatre", "Gallery", "Aquarium", "Observatory", "Archive", "Workshop")
_TOWNS = ("Aldern", "Brixholm", "Carrow", "Dunvale", "Elmstead", "Farleigh", "Gosmere", "Hexby")
_PEOPLE = ("Anna Keller", "Jonas Berg", "Maria Santos", "Peter Novak", "Ruth Hansen", "Omar Haddad", "Ines Vidal")
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday")
_INVENTIONS = (
    "Its roof terrace was rebuilt after a fire by volunteers from overseas.",
    "Annual members receive free parking and a printed calendar.",
    "The director once worked as a ship's cook near the equator.",
    "A second branch with a cinema is planned beside the railway station.",
)
_UNRELATED = (
    "Tomatoes need full sun and regular watering in dry summers. Pinch out side shoots once a week.",
    "Sourdough rises slowly in a cold kitchen. Fold the dough twice before it rests overnight.",
    "Basalt forms where lava cools quickly. Its columns often have six sides.",
    "Swifts sleep on the wing. They land only to nest, usually under old roofs.",
    "A sharp plane leaves a smooth surface on oak. Work along the grain, never against it.",
)


class Breakage(StrEnum):
    """What is wrong with an answer."""

    INVENTION = "invention"
    IRRELEVANT = "irrelevant contexts"
    SWAPPED = "top context swapped"
    ABSTENTION = "abstention"
    EMPTY = "empty retrieval"
    SWAPPED_NUMBER = "swapped number or name"
    SILENCE = "no answer at all"
    NO_TEXT = "answer without text"
    OTHER_LANGUAGE = "answer in another language"
    REPEATED = "one answer to all questions"


_INSTEAD = {
    Breakage.NO_TEXT: "",
    Breakage.OTHER_LANGUAGE: "Das {name} ist seit {year} offen, und der Eintritt kostet nicht mehr als {price} Euro.",
    Breakage.REPEATED: "The museum opened in 1931, and entry costs 4 euros for adults.",
}


@dataclass(frozen=True, slots=True)
class Place:
    """What there is to know about a place, and the passage that says it."""

    name: str
    town: str
    year: int
    price: int
    day: str
    person: str

    def shares_words(self, other: Place) -> bool:
        """Whether the names have a word in common."""
        return bool(set(self.name.split()) & set(other.name.split()))

    @property
    def passage(self) -> str:
        """The passage."""
        return (
            f"The {self.name} is in {self.town}. The {self.name} opened in {self.year}. Entry to the {self.name} costs "
            f"{self.price} euros for adults. The {self.name} is closed on {self.day}. The {self.name} was designed by "
            f"{self.person}."
        )


def places() -> tuple[Place, ...]:
    """All places, the same in every run."""
    chance = Random(7)
    return tuple(
        Place(
            f"{first} {second}",
            chance.choice(_TOWNS),
            chance.randrange(1820, 2015),
            chance.randrange(3, 30),
            chance.choice(_DAYS),
            chance.choice(_PEOPLE),
        )
        for first in _FIRST
        for second in _SECOND
    )


class Traffic:
    """An endless supply of log rows.

    Args:
        seed: Two of the same seed give the same questions, contexts and answers.
    """

    def __init__(self, seed: int = 1) -> None:
        self._chance = Random(seed)
        self._places = places()
        self._count = 0
        self._seed = seed

    def row(self, route: str, breakage: Breakage | None = None, *, noise: float = 0.1) -> str:
        """Return one line of a log.

        Args:
            route: The route that answered.
            breakage: What is wrong with the answer; None for a usual one.
            noise: Share of the usual answers with a sentence that no context supports.
        """
        chance = self._chance
        self._count += 1
        place = chance.choice(self._places)
        others = chance.sample([other for other in self._places if not other.shares_words(place)], 2)
        contexts = [place.passage, *(other.passage for other in others)]
        facts = self._facts(place)
        question, answer = f"When did the {place.name} open and what does entry cost?", " ".join(facts)
        if breakage is None and chance.random() < noise:
            answer = f"{answer} {chance.choice(_INVENTIONS)}"
        elif breakage is Breakage.INVENTION:
            answer = " ".join(chance.sample(_INVENTIONS, 2))
        elif breakage is Breakage.IRRELEVANT:
            contexts = chance.sample(_UNRELATED, 3)
        elif breakage is Breakage.SWAPPED:
            contexts[0], contexts[1] = contexts[1], contexts[0]
        elif breakage is Breakage.SWAPPED_NUMBER:
            answer = " ".join(self._facts(self._with_other_numbers(place)))
        elif breakage in (Breakage.ABSTENTION, Breakage.EMPTY):
            answer = "I could not find an answer to this question in the documents."
            contexts = [] if breakage is Breakage.EMPTY else contexts
        elif breakage in _INSTEAD:
            answer = _INSTEAD[breakage].format(name=place.name, year=place.year, price=place.price)
        row: dict[str, Any] = {
            "id": f"{self._seed}-{self._count}",
            "at": time.time(),
            "question": question,
            "contexts": [{"id": f"place-{hash_of(text)}", "text": text} for text in contexts],
            "answer": answer,
            "route": route,
        }
        return json.dumps(row)

    def chance(self, share: float) -> bool:
        """Return true for this share of the calls."""
        return self._chance.random() < share

    def _facts(self, place: Place) -> tuple[str, str]:
        return (
            f"The {place.name} opened in {place.year}.",
            f"Entry to the {place.name} costs {place.price} euros.",
        )

    def _with_other_numbers(self, place: Place) -> Place:
        year = place.year + self._chance.randrange(3, 40)
        return Place(place.name, place.town, year, place.price + 31, place.day, place.person)


def hash_of(text: str) -> str:
    """Return a short name for a text."""
    return text[4:24].replace(" ", "-").lower()
