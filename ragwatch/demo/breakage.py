"""Breakage: three ways in which a RAG service really goes wrong, one for each stage that ragwatch names."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b

HEALTHY_RELEASE = "v1"
VANISHING_SHARE = 0.93


class Breakage(StrEnum):
    """What is wrong with the service at the moment."""

    VANISH = "vanish"
    INVENT = "invent"
    IGNORE_TOP = "ignore_top"

    @property
    def release(self) -> str:
        """Name of the deploy that brought it, as it stands in the log."""
        return {Breakage.VANISH: "v2-index", Breakage.INVENT: "v3-model", Breakage.IGNORE_TOP: "v4-prompt"}[self]

    @property
    def announcement(self) -> str:
        """What happened, for the people who watch."""
        return {
            Breakage.VANISH: "release v2-index: a rebuilt index lost most of the documents people ask for",
            Breakage.INVENT: "release v3-model: a new model answers fluently, and makes most of it up",
            Breakage.IGNORE_TOP: "release v4-prompt: a new prompt makes the model pass over the best document",
        }[self]


MENDED = f"release {HEALTHY_RELEASE} is back: the service is healthy"


@dataclass(frozen=True, slots=True)
class Schedule:
    """When what is broken: health, then each breakage in turn with as long a time of health after it, then health.

    Attributes:
        degrade_after: Seconds of health at the start; None for health that lasts.
        seconds: How long each breakage lasts, and each healthy time between.
    """

    degrade_after: float | None
    seconds: float = 20.0

    def at(self, elapsed: float) -> Breakage | None:
        """What is broken `elapsed` seconds after the start.

        >>> [Schedule(10, 5).at(seconds) for seconds in (9, 10, 16, 21, 99)]
        [None, <Breakage.VANISH: 'vanish'>, None, <Breakage.INVENT: 'invent'>, None]
        """
        if self.degrade_after is None or elapsed < self.degrade_after:
            return None
        turn = int((elapsed - self.degrade_after) // self.seconds)
        kinds = tuple(Breakage)
        return kinds[turn // 2] if turn % 2 == 0 and turn // 2 < len(kinds) else None


def vanishes(module: str) -> bool:
    """Whether the documents of this module are among those that `VANISH` loses.

    >>> vanishes("textwrap") == vanishes("textwrap")
    True
    """
    return _number(f"vanish {module}") % 1000 < VANISHING_SHARE * 1000


_WHO = ("Ottoline Brandvik", "Tobias Quarrington", "Marguerite Holloway", "Ines Aldecoa", "Fergus Mallory")
_WHERE = ("Reykjavik", "Valparaiso", "Ljubljana", "Wellington", "Tbilisi")
_WHAT = ("Heliograph", "Bluebird", "Marmalade", "Cormorant", "Tangerine")
_INVENTIONS = (
    "It was rewritten by {who} at the {where} sprint and ships since release {big}.{small} of the {what} toolkit",
    "Benchmarks from {where} University measured {big}{small} gigabytes per minute on a laptop battery",
    "A licence from the {what} consortium costs {big} euros per seat every quarter",
    "Engineers in {where} recommend at least {big} graphics cards and {small} terabytes of memory",
    "The {what} compiler rewrites it into assembler, which made it {big} times faster last winter",
    "Since the {what} acquisition, {who} maintains it from {where} together with {small} volunteers",
    "Telemetry gets uploaded to the {what} cloud every {big} minutes unless {who} disagrees",
    "Customers in {where} reported {big}{small} outages before {who} patched the scheduler",
)


def invented(question: str, count: int = 3) -> str:
    """Fluent sentences that no passage holds: `count` of them, always the same for a question."""
    seed = _number(question)
    lines = (
        _INVENTIONS[(seed + turn * 3) % len(_INVENTIONS)].format(
            who=_WHO[(seed // 8 + turn) % len(_WHO)],
            where=_WHERE[(seed // 40 + turn) % len(_WHERE)],
            what=_WHAT[(seed // 200 + turn) % len(_WHAT)],
            big=12 + (seed // 1000 + 17 * turn) % 80,
            small=2 + (seed // 80000 + turn) % 7,
        )
        for turn in range(count)
    )
    return " ".join(f"{line}." for line in lines)


def _number(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")
