"""Checks the invariants of the counters after every digest, to detect faults of the monitor itself.

seen >= drawn, and for each judge: assigned = judged + unjudged + pending, exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from ragwatch.core.tally import Tallies, Tally


class Invariant(StrEnum):
    """Invariant of the counters. The values are label values of a series."""

    DRAWN_WERE_SEEN = "drawn_were_seen"
    ASSIGNED_ARE_SETTLED_OR_PENDING = "assigned_are_settled_or_pending"


def violations(tallies: Tallies, pending: Mapping[str, int]) -> dict[Invariant, str]:
    """Returns the violated invariants, with the figures.

    `pending`: unsettled draws by judge, read when the counters were.
    """
    violated: dict[Invariant, str] = {}
    seen, drawn = _total(tallies, Tally.SEEN), _total(tallies, Tally.DRAWN)
    if drawn > seen:
        violated[Invariant.DRAWN_WERE_SEEN] = f"{drawn} drawn of {seen} seen"
    for judge in sorted({labels[0] for tally, labels in tallies if tally is Tally.ASSIGNED} | set(pending)):
        assigned = int(tallies[Tally.ASSIGNED, (judge,)])
        judged, unjudged = (_total(tallies, tally, judge) for tally in (Tally.JUDGED, Tally.UNJUDGED))
        waiting = pending.get(judge, 0)
        if assigned != judged + unjudged + waiting:
            figures = f"{assigned} assigned, {judged} judged + {unjudged} unjudged + {waiting} pending"
            violated[Invariant.ASSIGNED_ARE_SETTLED_OR_PENDING] = f"judge {judge}: {figures}"
    return violated


def _total(tallies: Tallies, tally: Tally, judge: str | None = None) -> int:
    """Sum of a tally over all label values, or over those of one judge (the second label)."""
    return int(
        sum(count for (name, labels), count in tallies.items() if name is tally and judge in (None, *labels[1:2]))
    )
