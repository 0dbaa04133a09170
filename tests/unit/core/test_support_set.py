"""The smallest set of contexts that support a claim, for any reading that more contexts never weaken."""

from __future__ import annotations

from itertools import chain, combinations

from hypothesis import given
from hypothesis import strategies as st

from ragwatch.core.evidence import (
    CANDIDATES,
    EXHAUSTIVE,
    Cell,
    Supports,
    informed_cells,
    smallest_support_set,
    support_cells,
)


def covering(parts: list[set[int]]) -> Supports:
    """Contexts hold parts of a claim of six; together they support it if they hold all of them."""
    return lambda ranks: set(range(6)) <= set(chain.from_iterable(parts[rank] for rank in ranks))


PARTS = st.lists(st.sets(st.integers(0, 5), max_size=4), max_size=CANDIDATES)


@given(PARTS)
def test_it_is_the_smallest_with_the_best_ranks(parts: list[set[int]]) -> None:
    """It is what trying all sets gives, up to the size that is tried exhaustively; above that, nothing is left over."""
    supports = covering(parts)
    sets = (ranks for size in range(1, len(parts) + 1) for ranks in combinations(range(len(parts)), size))
    expected = next((ranks for ranks in sets if supports(ranks)), ())
    result = smallest_support_set([len(part) or None for part in parts], supports)
    if len(expected) <= EXHAUSTIVE:
        assert result == expected
    else:
        assert supports(result)
        assert not any(supports(tuple(other for other in result if other != rank)) for rank in result)


@given(PARTS, st.integers(0, CANDIDATES))
def test_a_context_that_has_nothing_changes_nothing(parts: list[set[int]], at: int) -> None:
    """A context without any part of the claim, wherever it is inserted, is not in the set and moves only ranks."""
    at = min(at, len(parts))
    more = [*parts[:at], set(), *parts[at:]]
    before = smallest_support_set([len(part) or None for part in parts], covering(parts))
    after = smallest_support_set([len(part) or None for part in more], covering(more))
    assert after == tuple(rank + (rank >= at) for rank in before)


def test_large_sets_stay_within_the_bound() -> None:
    """A claim that needs all of 300 contexts is read a few hundred times at most."""
    readings = 0

    def supports(ranks: tuple[int, ...]) -> bool:
        nonlocal readings
        readings += 1
        return len(ranks) == 300

    assert smallest_support_set([0.5] * 300, supports) == tuple(range(300))
    assert readings < 200


def test_cells() -> None:
    """Contexts that support alone come before a set; a set of one supports alone."""
    assert support_cells(3, (0, 2), (1,)) == (Cell.ALONE, None, Cell.ALONE)
    assert informed_cells(2, (1,)) == (None, Cell.INFORMED)


def test_the_strongest_that_suffice_are_taken() -> None:
    """Of forty contexts the five strongest are necessary and enough; without one of them nothing supports the claim."""
    needed = {3, 8, 21, 30, 39}
    strengths = [0.9 if rank in needed else 0.1 for rank in range(40)]
    assert smallest_support_set(strengths, lambda ranks: needed <= set(ranks)) == tuple(sorted(needed))
    assert smallest_support_set(strengths, lambda ranks: {*needed, 40} <= set(ranks)) == ()


def test_a_superfluous_one_among_the_strongest_is_removed() -> None:
    """A strong context that is not necessary is not in the set."""
    needed = {1, 2, 3, 4}
    assert smallest_support_set([0.9, 0.8, 0.7, 0.6, 0.5], lambda ranks: needed <= set(ranks)) == (1, 2, 3, 4)
