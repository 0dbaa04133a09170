"""Tallies: what one verdict adds, and the buckets of histograms."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from support.kit import a_draw, a_verdict, an_evidence, an_unjudged

from ragwatch.core.estimate import Addends
from ragwatch.core.tally import (
    BUCKETS,
    Tallies,
    Tally,
    addend_tallies,
    bound_label,
    bucket_label,
    observe,
    verdict_tallies,
)

FAITHFUL = ("faithfulness", "search", "embedded")


def test_unjudged_counts_its_reason_only() -> None:
    """A draw that was not read adds to no score."""
    assert verdict_tallies(an_unjudged(reason="refused")) == {(Tally.UNJUDGED, ("search", "embedded", "refused")): 1}


def test_judged_adds_weighted_sums() -> None:
    """A score x at p adds w = 1/p to the sums, and one to its bucket."""
    tallies = verdict_tallies(a_verdict(a_draw(probability=0.25), an_evidence((1, 0), (0, 0))))
    sums = {tally: tallies[tally, FAITHFUL] for tally in (Tally.N, Tally.W, Tally.WX, Tally.W2, Tally.W2X, Tally.W2X2)}
    assert list(sums.values()) == [1, 4.0, 2.0, 16.0, 8.0, 4.0]
    assert tallies[Tally.SCORE, (*FAITHFUL, "0.5")] == 1
    assert tallies[Tally.SCORE, (*FAITHFUL, "sum")] == 0.5
    assert tallies[Tally.JUDGED, ("search", "embedded")] == 1
    assert tallies[Tally.STAGE, ("search", "embedded", "generation")] == 1
    assert tallies[Tally.UNKNOWN, ("need_recall", "search", "embedded", "not_read")] == 1
    assert (Tally.N, ("need_recall", "search", "embedded")) not in tallies


def test_sums_and_buckets_are_of_the_same_scores() -> None:
    """One mean: what the estimate averages is what verdict lines and histograms show."""
    tallies = verdict_tallies(a_verdict(evidence=an_evidence((1, 0), (0, 0))))
    ignored = ("top_ranked_ignored", *FAITHFUL[1:])
    assert (tallies[Tally.N, ignored], tallies[Tally.WX, ignored]) == (1, 0.0)
    assert tallies[Tally.SCORE, (*ignored, "0.1")] == 1
    assert tallies[Tally.WX, FAITHFUL] == 0.5


def test_fault_and_unknown_stage() -> None:
    """A fault is counted where there is one; a stage that is unknown is not counted as none."""
    faulty = verdict_tallies(a_verdict(evidence=an_evidence((0, 1))))
    unread = verdict_tallies(a_verdict(evidence=an_evidence(relevant=(None, None), address=None)))
    assert faulty[Tally.FAULT, ("search", "embedded", "redundant")] == 1
    assert [labels for tally, labels in unread if tally in (Tally.STAGE, Tally.FAULT)] == []


@pytest.mark.parametrize(
    ("histogram", "value", "expected"),
    [
        (Tally.SCORE, 0.0, "0.1"),
        (Tally.SCORE, 0.1, "0.1"),
        (Tally.SCORE, 0.10001, "0.2"),
        (Tally.SCORE, 1.0, "1.0"),
        (Tally.CONTEXTS, 0, "0.0"),
        (Tally.CONTEXTS, 101, "+Inf"),
        (Tally.TOP_SCORE, -5.0, "0.0"),
    ],
)
def test_buckets_hold_their_upper_bound(histogram: Tally, value: float, expected: str) -> None:
    """As in Prometheus, a bucket is `le`: less than or equal to its label."""
    assert bucket_label(histogram, value) == expected


def test_observations_add_up() -> None:
    """Cells are not cumulative; the sum is a cell of its own."""
    tallies: Tallies = Counter()
    for value in (10, 60, 60):
        observe(tallies, Tally.ANSWER_CHARS, ("search",), value)
    assert tallies == {
        (Tally.ANSWER_CHARS, ("search", "50.0")): 1,
        (Tally.ANSWER_CHARS, ("search", "100.0")): 2,
        (Tally.ANSWER_CHARS, ("search", "sum")): 130,
    }


def test_bounds_rise_and_have_names_of_their_own() -> None:
    """Every histogram's bounds rise, so its labels differ."""
    for bounds in BUCKETS.values():
        assert all(low < high for low, high in pairwise(bounds))
        assert len({bound_label(bound) for bound in bounds}) == len(bounds)


def test_addends_as_cells() -> None:
    """The six sums in a fixed order."""
    assert [value for _, value in addend_tallies(Addends(1, 2.0, 3.0, 4.0, 5.0, 6.0))] == [1, 2.0, 3.0, 4.0, 5.0, 6.0]
