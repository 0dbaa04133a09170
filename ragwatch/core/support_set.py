"""Computes the support set of a claim: the smallest set of contexts that together support it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

from ragwatch.core.evidence import Cell

EXHAUSTIVE = 3
"""Sets of up to this many contexts are tried exhaustively."""

CANDIDATES = 8
"""Number of contexts, the strongest ones, that these sets are taken from: at most 92 readings."""

MAX_READINGS = 64
"""Maximum number of readings of larger sets."""

Supports = Callable[[tuple[int, ...]], bool]
"""Whether a set of contexts, by rank in increasing order, supports a claim. More contexts never support it less."""


def smallest_support_set(strengths: Sequence[float | None], supports: Supports) -> tuple[int, ...]:
    """Return the ranks of the smallest set that supports a claim, in increasing order; empty if all together do not.

    Sets of up to `EXHAUSTIVE` of the `CANDIDATES` strongest contexts are tried, small ones and better ranks first; then
    contexts are added, strongest first, until they suffice, and what is not necessary is removed, worst ranks first.
    Such a set need not be the smallest, but no member is superfluous, unless that took more than `MAX_READINGS`
    readings to see. `strengths`: how far each context alone supports the claim; None for one that has nothing of it.

    >>> smallest_support_set([0.2, 0.9, 0.3], lambda ranks: {0, 2} <= set(ranks))
    (0, 2)
    >>> smallest_support_set([0.9, 0.9, None], lambda ranks: 0 in ranks or 1 in ranks)
    (0,)
    """
    known = [(-strength, rank) for rank, strength in enumerate(strengths) if strength is not None]
    order = [rank for _, rank in sorted(known)]
    candidates = sorted(order[:CANDIDATES])
    for size in range(1, EXHAUSTIVE + 1):
        for ranks in combinations(candidates, size):
            if supports(ranks):
                return ranks
    if len(order) <= EXHAUSTIVE or not supports(tuple(sorted(order))):
        return ()
    return _reduced(sorted(order[: _enough(order, supports)]), supports)


def _enough(order: Sequence[int], supports: Supports) -> int:
    """Length of the shortest beginning of `order` that supports the claim, by bisection."""
    low, high = EXHAUSTIVE, len(order)
    while high - low > 1:
        middle = (low + high) // 2
        if supports(tuple(sorted(order[:middle]))):
            high = middle
        else:
            low = middle
    return high


def _reduced(ranks: Sequence[int], supports: Supports) -> tuple[int, ...]:
    """The ranks without those that are not necessary; the worst-ranked are tried first."""
    kept = tuple(ranks)
    for rank in tuple(reversed(ranks))[:MAX_READINGS]:
        fewer = tuple(other for other in kept if other != rank)
        if supports(fewer):
            kept = fewer
    return kept


def support_cells(contexts: int, alone: Sequence[int], together: Sequence[int]) -> tuple[Cell | None, ...]:
    """Return the cells of a supported claim: of the ranks that support it alone, else of its support set."""
    marked = set(alone or together)
    mark = Cell.ALONE if alone or len(marked) == 1 else Cell.JOINTLY
    return tuple(mark if rank in marked else None for rank in range(contexts))


def informed_cells(contexts: int, informed: Sequence[int]) -> tuple[Cell | None, ...]:
    """Return the cells of a claim that is not supported, and whose specific content comes from these ranks."""
    return tuple(Cell.INFORMED if rank in informed else None for rank in range(contexts))
