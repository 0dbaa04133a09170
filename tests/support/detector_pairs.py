"""The 500 texts on which small detectors are compared with their reference implementation, of seeded words."""

import random
from typing import NamedTuple

WORDS = """
the museum opens at nine and closes at five entry costs twelve euros for adults ferry to an island leaves every forty
minutes from its northern pier tomatoes need full sun and regular watering in dry summers a director was born in Lisbon
not never without 1971 40 3.5% café naïve Zürich 東京 "quoted" (brackets) <b> it's — e.g. ... ✓ 🙂
""".split()  # noqa: SIM905 - a list would be 60 lines
COUNT = 500


class Pair(NamedTuple):
    """A question, a context, and a claim or answer."""

    question: str
    context: str
    claim: str


def _text(chance: random.Random, longest: int) -> str:
    words = [chance.choice(WORDS) for _ in range(chance.randint(1, longest))]
    return "".join(word + chance.choice((" ", " ", " ", "  ", ". ", ", ", "\n")) for word in words).strip()


def _pairs() -> list[Pair]:
    chance = random.Random(44)
    return [Pair(_text(chance, 12), _text(chance, 60), _text(chance, 20)) for _ in range(COUNT)]


PAIRS = _pairs()
