"""Traffic of a RAG service for replays: answers about places, most of them good, and answers broken in a known way."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from random import Random
from typing import Any, NamedTuple

INVENTIONS = (
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
_ABSTENTION = "I could not find an answer to this question in the documents."
_GERMAN = "Das {name} ist seit {year} offen, und der Eintritt kostet nicht mehr als {price} Euro."
_FRENCH = "Le {name} est ouvert au public depuis {year}, et l'entrée ne coûte pas plus de {price} euros par adulte."
_PROMPT = (
    "You are a helpful assistant. Use the following pieces of context to answer the question at the end. If you don't "
    "know the answer, say that you don't know."
)
_ERROR_PAGE = "<html><head><title>502 Bad Gateway</title></head><body><center><h1>502 Bad Gateway</h1></center></body>"


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

    @property
    def facts(self) -> tuple[str, str]:
        """What is asked for: since when it is open, and the price."""
        return f"The {self.name} opened in {self.year}.", f"Entry to the {self.name} costs {self.price} euros."


class Asked(NamedTuple):
    """A question about a place, other places whose names share no word with it, and chance."""

    place: Place
    others: Sequence[Place]
    chance: Random

    @property
    def contexts(self) -> list[str]:
        """Contexts of a healthy answer: the passage of the place first."""
        return [self.place.passage, *(other.passage for other in self.others[:2])]


Broken = Callable[[Asked], tuple[Sequence[str], str]]


def _answer(answer: Callable[[Asked], str]) -> Broken:
    """A breakage of the answer alone."""
    return lambda asked: (asked.contexts, answer(asked))


def _contexts(contexts: Callable[[Asked], Sequence[str]]) -> Broken:
    """A breakage of the contexts alone."""
    return lambda asked: (contexts(asked), _right(asked.place))


def _right(place: Place) -> str:
    return " ".join(place.facts)


def _in_other_words(text: str) -> Broken:
    return _answer(lambda asked: text.format(name=asked.place.name, year=asked.place.year, price=asked.place.price))


def _of_other_numbers(asked: Asked) -> str:
    place = asked.place
    return _right(replace(place, year=place.year + asked.chance.randrange(3, 40), price=place.price + 31))


def _renamed(asked: Asked) -> str:
    return _right(asked.others[0]).replace(asked.others[0].name, asked.place.name)


def own(chance: Random) -> str:
    """An invention that no other answer has: repeated ones would be a failure of their own."""
    return f"Locker {chance.randrange(10**6)} is kept for the mayor."


def _stale(asked: Asked) -> tuple[Sequence[str], str]:
    old = replace(asked.place, price=asked.place.price + 2, year=asked.place.year)
    return [old.passage, *asked.contexts[1:]], _right(old)


def _about_another(asked: Asked) -> tuple[Sequence[str], str]:
    year, price = asked.chance.randrange(1500, 2020), asked.chance.randrange(3, 3000)  # no answer comes twice
    other = replace(asked.others[0], year=year, price=price)
    return [other.passage, *asked.contexts[1:]], _right(other)


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
    ADDED = "an invention behind a right answer"
    NEGATED = "the contrary of the context"
    OF_ANOTHER = "facts of another place under the asked name"
    CACHED = "the answer to another question"
    ARCHITECT = "an invented person"
    HEDGED = "an apology before inventions"
    TRUNCATED = "an answer that ends after a few words"
    ECHO = "the question instead of an answer"
    LEAKED = "the prompt instead of an answer"
    TOOL_CALL = "JSON of a failed tool instead of an answer"
    HALF = "half of what was asked"
    FRENCH = "answer in French"
    NEIGHBOURS = "contexts about other places"
    CUT = "contexts cut after a few characters"
    TOPIC = "contexts and answer about another place"
    REVERSED = "contexts in reverse order, beside many others"
    LAST_ONLY = "the wrong context alone"
    ERROR_PAGE = "an error page as every context"
    DUPLICATES = "the right context three times"
    STALE = "an old document that the answer follows"
    SNAPSHOT = "an old snapshot of the index"
    DANGLING = "citations of contexts that were not retrieved"
    UNCITED = "answers without citations"
    RENAMED = "contexts under another name"


BREAK: Mapping[Breakage, Broken] = {
    Breakage.INVENTION: _answer(lambda asked: f"{' '.join(asked.chance.sample(INVENTIONS, 2))} {own(asked.chance)}"),
    Breakage.IRRELEVANT: _contexts(lambda asked: asked.chance.sample(_UNRELATED, 3)),
    Breakage.SWAPPED: _contexts(lambda asked: [asked.contexts[1], asked.contexts[0], asked.contexts[2]]),
    Breakage.ABSTENTION: _answer(lambda _: _ABSTENTION),
    Breakage.EMPTY: lambda _: ([], _ABSTENTION),
    Breakage.SWAPPED_NUMBER: _answer(_of_other_numbers),
    Breakage.NO_TEXT: _answer(lambda _: ""),
    Breakage.OTHER_LANGUAGE: _in_other_words(_GERMAN),
    Breakage.REPEATED: _answer(lambda _: "The museum opened in 1931, and entry costs 4 euros for adults."),
    Breakage.ADDED: _answer(lambda asked: f"{_right(asked.place)} {asked.chance.choice(INVENTIONS)}"),
    Breakage.NEGATED: _in_other_words(
        "The {name} did not open in {year}. Entry to the {name} does not cost {price} euros."
    ),
    Breakage.OF_ANOTHER: _answer(_renamed),
    Breakage.CACHED: _answer(lambda asked: _right(asked.others[2])),
    Breakage.ARCHITECT: _in_other_words("The {name} opened in {year}. The {name} was designed by Gregor Ostrander."),
    Breakage.HEDGED: _answer(
        lambda asked: (
            f"I'm sorry for the confusion! As far as I know, {asked.chance.choice(INVENTIONS).lower()} "
            f"{own(asked.chance)}"
        )
    ),
    Breakage.TRUNCATED: _answer(lambda asked: " ".join(_right(asked.place).split()[:3])),
    Breakage.ECHO: _in_other_words("When did the {name} open and what does entry cost?"),
    Breakage.LEAKED: _answer(lambda _: _PROMPT),
    Breakage.TOOL_CALL: _answer(lambda _: '{"error": "upstream timed out", "code": 504, "retry": true}'),
    Breakage.HALF: _answer(lambda asked: asked.place.facts[0]),
    Breakage.FRENCH: _in_other_words(_FRENCH),
    Breakage.NEIGHBOURS: _contexts(lambda asked: [other.passage for other in asked.others]),
    Breakage.CUT: _contexts(lambda asked: [text[:18] for text in asked.contexts]),
    Breakage.TOPIC: _about_another,
    Breakage.REVERSED: _contexts(lambda asked: [*(other.passage for other in asked.others), asked.place.passage]),
    Breakage.LAST_ONLY: _contexts(lambda asked: asked.contexts[2:]),
    Breakage.ERROR_PAGE: _contexts(lambda _: [_ERROR_PAGE] * 3),
    Breakage.DUPLICATES: _contexts(lambda asked: asked.contexts[:1] * 3),
    Breakage.STALE: _stale,
    Breakage.DANGLING: _in_other_words("The {name} opened in {year} [7]. Entry to the {name} costs {price} euros [9]."),
    Breakage.UNCITED: _answer(lambda asked: _right(asked.place)),
}
"""What each breakage makes of the contexts and the answer; `SILENCE` makes no row, `RENAMED` another one, `SNAPSHOT`
one of old documents."""


DAY = 86400.0
_FIRST = (
    *("Harbour", "Linden", "Mill", "Meridian", "Abbey", "Castle"),
    *("Orchard", "River", "Tower", "Garden", "Bridge", "Chapel"),
)
_SECOND = ("Museum", "Library", "Theatre", "Gallery", "Aquarium", "Observatory", "Archive", "Workshop")
_TOWNS = ("Aldern", "Brixholm", "Carrow", "Dunvale", "Elmstead", "Farleigh", "Gosmere", "Hexby")
_PEOPLE = ("Anna Keller", "Jonas Berg", "Maria Santos", "Peter Novak", "Ruth Hansen", "Omar Haddad", "Ines Vidal")
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday")


BROKEN_TENANT = "acme"
TENANTS = (BROKEN_TENANT, "umbrella")


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

    def row(
        self, route: str, breakage: Breakage | None = None, *, noise: float = 0.1, cites: bool = False, tenant: str = ""
    ) -> str:
        """Return one line of a log.

        Args:
            route: The route that answered.
            breakage: What is wrong with the answer; None for a usual one.
            noise: Share of the usual answers with a sentence that no context supports.
            cites: Whether usual answers cite their context.
            tenant: Who asked; empty for nobody known.
        """
        chance = self._chance
        self._count += 1
        place = chance.choice(self._places)
        others = chance.sample([other for other in self._places if not other.shares_words(place)], 4)
        asked = Asked(place, others, chance)
        break_it = None if breakage is None else BREAK.get(breakage)
        contexts, answer = (asked.contexts, " ".join(place.facts)) if break_it is None else break_it(asked)
        if breakage is None and cites:
            answer = " ".join(f"{fact[:-1]} [1]." for fact in place.facts)
        if breakage is None and chance.random() < noise:
            answer = f"{answer} {chance.choice(INVENTIONS)}"
        updated_at = time.time() - (200.0 if breakage is Breakage.SNAPSHOT else 3.0) * DAY
        row: dict[str, Any] = {
            "id": f"{self._seed}-{self._count}",
            "at": time.time(),
            "question": f"When did the {place.name} open and what does entry cost?",
            "contexts": [{"id": f"place-{hash_of(text)}", "text": text, "updated_at": updated_at} for text in contexts],
            "answer": answer,
            "route": route,
            "metadata": {"tenant": tenant} if tenant else {},
        }
        if breakage is Breakage.RENAMED:
            row["passages_v2"] = row.pop("contexts")
        return json.dumps(row)

    def chance(self, share: float) -> bool:
        """Return true for this share of the calls."""
        return self._chance.random() < share

    def tenant(self) -> str:
        """Return who asks: every twentieth time the tenant whose answers may be broken."""
        return BROKEN_TENANT if self.chance(0.05) else "umbrella"


def hash_of(text: str) -> str:
    """Return a short name for a text."""
    return text[4:24].replace(" ", "-").lower()
