"""Traffic of a RAG service for replays: answers about places, most of them good, and answers broken in a known way."""

from __future__ import annotations

import json
import time
from random import Random
from typing import Any

from support.oncall_breakages import BREAK, INVENTIONS, Asked, Breakage, Place

DAY = 86400.0
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
