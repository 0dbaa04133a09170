"""Evidence checks its own shape, so that no arithmetic meets a torn matrix."""

from collections.abc import Callable
from dataclasses import replace
from itertools import chain, combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.kit import a_claim, an_evidence

from ragwatch.model import evidence

PARTS = st.lists(st.sets(st.integers(0, 5), max_size=4), max_size=evidence.CANDIDATES)


def a_known(*cells: int) -> evidence.ReferenceClaim:
    """A claim of the reference."""
    return evidence.ReferenceClaim("c", 0, 1, tuple(map(bool, cells)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: evidence.ReferenceClaim("so", 0, 2, (True,), quotes=("so", "so")), "2 quotes for 1 contexts"),
        (lambda: a_claim(support=1.5), "support must be in"),
        (lambda: a_claim(support=float("nan")), "support must be in"),
        (lambda: a_claim(start=3), "both offsets or none"),
        (lambda: a_claim(end=3), "both offsets or none"),
        (lambda: a_claim(start=3, end=3), "do not enclose text"),
        (lambda: a_claim(start=-1, end=3), "do not enclose text"),
        (lambda: a_claim((1, 0), "contradicted"), "a context supports the claim"),
        (lambda: a_claim((0, 1), "not_in_context"), "a context supports the claim"),
        (lambda: a_claim((1, 0), said_by_user=True), "a claim that only repeats the user cannot be supported"),
        (lambda: a_claim((0, 0), "supported"), "no support set"),
        (lambda: replace(a_claim(), cells=(evidence.Cell.INFORMED, None)), "only informed"),
        (lambda: replace(a_claim(), cells=(evidence.Cell.JOINTLY, None)), "only if there are several"),
        (lambda: replace(a_claim(), cells=(evidence.Cell.JOINTLY, evidence.Cell.ALONE)), "only if there are several"),
        (lambda: replace(a_claim(), cells=("elsewhere", None)), "is not a valid Cell"),
        (lambda: evidence.ContextReading(None, relevance=-0.1), "relevance must be in"),
        (lambda: evidence.ContextReading(None, sentences=3), "both counted or neither"),
        (lambda: evidence.ContextReading(None, relevant_sentences=3), "both counted or neither"),
        (lambda: evidence.ContextReading(None, sentences=2, relevant_sentences=3), "3 relevant of 2"),
        (lambda: evidence.ContextReading(None, sentences=2, relevant_sentences=-1), "-1 relevant of 2"),
        (lambda: an_evidence((1, 0), (1,)), "claim 1 has 1 cells for 2 contexts"),
        (lambda: evidence.Citation(-1, 0, 1, (0,), supports=False), "a citation of context"),
        (lambda: evidence.Citation(0, 1, 1, (0,), supports=False), "a citation of context"),
        (lambda: evidence.Citation(0, 0, 1, (), supports=False), "a citation of context"),
        (lambda: evidence.ReferenceClaim("c", -1, 3, ()), "do not enclose text"),
        (lambda: evidence.ReferenceClaim("c", 3, 3, ()), "do not enclose text"),
        (lambda: an_evidence(reference=(a_known(1, 0), a_known(1))), "reference claim 1 has 1 cells for 2 contexts"),
    ],
)
def test_torn_evidence_is_refused(make: Callable[[], object], message: str) -> None:
    """What contradicts itself is an error of the judge, found where it is made."""
    with pytest.raises(ValueError, match=message):
        make()


def test_whole_evidence() -> None:
    """Offsets, probabilities and counts at their limits are legal; only the address says that an answer abstains."""
    assert [an_evidence(address=each).abstained for each in ("abstained", "not_at_all", None)] == [True, False, False]
    claim = a_claim((0, 1), start=0, end=1, support=1.0)
    column = evidence.ContextReading(None, 0.0, 2, 2)
    result = evidence.Evidence((claim,), (column, column))
    assert (claim.contexts, result.used, result.abstained) == ((1,), (False, True), False)


@pytest.mark.parametrize(
    ("cells", "supporting", "support_set", "uses"),
    [
        (("alone", None, "alone"), (0, 2), (0,), (0,)),
        ((None, "jointly", "jointly"), (1, 2), (1, 2), (1, 2)),
        (("informed", None, "informed"), (), (), (0, 2)),
        ((None, None, None), (), (), ()),
        ((False, True, True), (1, 2), (1,), (1,)),
    ],
)
def test_cells_say_what_is_used(
    cells: tuple[Any, ...], supporting: tuple[int, ...], support_set: tuple[int, ...], uses: tuple[int, ...]
) -> None:
    """The best of several that support alone, all that support jointly, or what informed a claim without support."""
    claim = evidence.Claim(
        "c", None, None, evidence.ClaimVerdict.SUPPORTED if supporting else evidence.ClaimVerdict.CONTRADICTED, cells
    )
    assert (claim.contexts, claim.support_set, claim.uses) == (supporting, support_set, uses)
    used = evidence.Evidence((claim,), (evidence.ContextReading(None),) * 3).used
    assert used == tuple(rank in uses for rank in range(3))


def covering(parts: list[set[int]]) -> evidence.Supports:
    """Contexts hold parts of a claim of six; together they support it if they hold all of them."""
    return lambda ranks: set(range(6)) <= set(chain.from_iterable(parts[rank] for rank in ranks))


@given(PARTS)
def test_it_is_the_smallest_with_the_best_ranks(parts: list[set[int]]) -> None:
    """It is what trying all sets gives, up to the size that is tried exhaustively; above that, nothing is left over."""
    supports = covering(parts)
    sets = (ranks for size in range(1, len(parts) + 1) for ranks in combinations(range(len(parts)), size))
    expected = next((ranks for ranks in sets if supports(ranks)), ())
    result = evidence.smallest_support_set([len(part) or None for part in parts], supports)
    if len(expected) <= evidence.EXHAUSTIVE:
        assert result == expected
    else:
        assert supports(result)
        assert not any(supports(tuple(other for other in result if other != rank)) for rank in result)


@given(PARTS, st.integers(0, evidence.CANDIDATES))
def test_a_context_that_has_nothing_changes_nothing(parts: list[set[int]], at: int) -> None:
    """A context without any part of the claim, wherever it is inserted, is not in the set and moves only ranks."""
    at = min(at, len(parts))
    more = [*parts[:at], set(), *parts[at:]]
    before = evidence.smallest_support_set([len(part) or None for part in parts], covering(parts))
    after = evidence.smallest_support_set([len(part) or None for part in more], covering(more))
    assert after == tuple(rank + (rank >= at) for rank in before)


def test_large_sets_stay_within_the_bound() -> None:
    """A claim that needs all of 300 contexts is read a few hundred times at most."""
    readings = 0

    def supports(ranks: tuple[int, ...]) -> bool:
        nonlocal readings
        readings += 1
        return len(ranks) == 300

    assert evidence.smallest_support_set([0.5] * 300, supports) == tuple(range(300))
    assert readings < 200


def test_cells() -> None:
    """Contexts that support alone come before a set; a set of one supports alone."""
    assert evidence.support_cells(3, (0, 2), (1,)) == (evidence.Cell.ALONE, None, evidence.Cell.ALONE)
    assert evidence.informed_cells(2, (1,)) == (None, evidence.Cell.INFORMED)


def test_the_strongest_that_suffice_are_taken() -> None:
    """Of forty contexts the five strongest are necessary and enough; without one of them nothing supports the claim."""
    needed = {3, 8, 21, 30, 39}
    strengths = [0.9 if rank in needed else 0.1 for rank in range(40)]
    assert evidence.smallest_support_set(strengths, lambda ranks: needed <= set(ranks)) == tuple(sorted(needed))
    assert evidence.smallest_support_set(strengths, lambda ranks: {*needed, 40} <= set(ranks)) == ()
    without_first = evidence.smallest_support_set([0.9, 0.8, 0.7, 0.6, 0.5], lambda ranks: {1, 2, 3, 4} <= set(ranks))
    assert without_first == (1, 2, 3, 4)  # a strong one that is not necessary is not in the set
