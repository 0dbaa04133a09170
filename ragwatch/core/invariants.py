"""Books: what was counted must balance. Checked after every digest, for a monitor that errs itself errs in silence.

seen >= drawn, and for each judge: assigned = judged + unjudged + pending, exactly, always.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from ragwatch.core.tally import Tallies, Tally


class Invariant(StrEnum):
    """What must hold. The values are label values of a series."""

    DRAWN_WERE_SEEN = "drawn_were_seen"
    ASSIGNED_ARE_SETTLED_OR_PENDING = "assigned_are_settled_or_pending"


def violations(tallies: Tallies, pending: Mapping[str, int]) -> dict[Invariant, str]:
    """Laws that do not hold, with the figures. `pending` counts unsettled draws by judge, at the same instant.

    >>> from collections import Counter
    >>> books = Counter({(Tally.SEEN, ("app",)): 9, (Tally.DRAWN, ("search",)): 3, (Tally.ASSIGNED, ("embedded",)): 3,
    ...                  (Tally.JUDGED, ("search", "embedded")): 1})
    >>> violations(books, {"embedded": 2})
    {}
    >>> violations(books, {"embedded": 1})[Law.ASSIGNED_ARE_SETTLED_OR_PENDING]
    'judge embedded: 3 assigned, 1 judged + 0 unjudged + 1 pending'
    """
    found: dict[Invariant, str] = {}
    seen, drawn = _total(tallies, Tally.SEEN), _total(tallies, Tally.DRAWN)
    if drawn > seen:
        found[Invariant.DRAWN_WERE_SEEN] = f"{drawn} drawn of {seen} seen"
    for judge in sorted({labels[0] for tally, labels in tallies if tally is Tally.ASSIGNED} | set(pending)):
        assigned = int(tallies[Tally.ASSIGNED, (judge,)])
        judged, unjudged = (_total(tallies, tally, judge) for tally in (Tally.JUDGED, Tally.UNJUDGED))
        waiting = pending.get(judge, 0)
        if assigned != judged + unjudged + waiting:
            figures = f"{assigned} assigned, {judged} judged + {unjudged} unjudged + {waiting} pending"
            found[Invariant.ASSIGNED_ARE_SETTLED_OR_PENDING] = f"judge {judge}: {figures}"
    return found


def _total(tallies: Tallies, tally: Tally, judge: str | None = None) -> int:
    """Sum of a tally over its labels, or over those of one judge (which stands second)."""
    return int(
        sum(count for (each, labels), count in tallies.items() if each is tally and judge in (None, *labels[1:2]))
    )
