"""Defines three faults of a RAG service, one for each stage at fault, and their schedule."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from ragwatch.demo.stable_hash import stable_hash

HEALTHY_RELEASE = "v1"
VANISHING_SHARE = 0.93


class Breakage(StrEnum):
    """A fault that a bad release brings."""

    VANISH = "vanish"
    INVENT = "invent"
    IGNORE_TOP = "ignore_top"

    @property
    def release(self) -> str:
        """Name of the bad release, as the log records it."""
        return _RELEASES[self][0]

    @property
    def announcement(self) -> str:
        """Message for the terminal when the release is deployed."""
        return f"release {self.release}: {_RELEASES[self][1]}"


_RELEASES = {
    Breakage.VANISH: ("v2-index", "a rebuilt index lost most of the documents that users ask for"),
    Breakage.INVENT: ("v3-model", "a new model adds to its answers what no document says"),
    Breakage.IGNORE_TOP: ("v4-prompt", "a new prompt makes the model ignore the top-ranked document"),
}


RECOVERED = f"release {HEALTHY_RELEASE} is restored: the service is healthy"


class Schedule:
    """Schedule of the faults: a healthy phase, then each fault followed by a healthy phase of the same length.

    No fault is left out: one that begins late, because the machine was busy, delays those after it.

    Args:
        degrade_after: Seconds of the first healthy phase.
        seconds: Duration of each fault, and of each healthy phase between.

    >>> schedule = Schedule(10, 5)
    >>> [schedule.at(seconds) for seconds in (9, 10, 16, 40, 44, 45)]
    [None, <Breakage.VANISH: 'vanish'>, None, <Breakage.INVENT: 'invent'>, <Breakage.INVENT: 'invent'>, None]
    """

    def __init__(self, degrade_after: float, seconds: float = 20.0) -> None:
        self._seconds = seconds
        self._phases: list[Breakage | None] = [phase for kind in Breakage for phase in (kind, None)]
        self._current: Breakage | None = None
        self._next: float | None = degrade_after  # time of the next change; None if there is none

    def at(self, elapsed: float, may_break: Callable[[], bool] = lambda: True) -> Breakage | None:
        """Fault `elapsed` seconds after the start; None while healthy. Ask for later and later times.

        Args:
            elapsed: Seconds since the start.
            may_break: Whether the first fault may begin, once it is due; until then the first healthy phase goes on.
        """
        if self._next is None or elapsed < self._next:
            return self._current
        if len(self._phases) == 2 * len(Breakage) and not may_break():
            return None
        self._current = self._phases.pop(0)
        self._next = elapsed + self._seconds if self._phases else None
        return self._current


def vanishes(module: str) -> bool:
    """Whether `VANISH` removes the documents of this module."""
    return stable_hash(f"vanish {module}") % 1000 < VANISHING_SHARE * 1000
