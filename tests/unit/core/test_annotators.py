"""Annotators behind a corrected estimate: what is shown of them, and how far one can move the interval."""

from __future__ import annotations

from dataclasses import replace

from ragwatch.core.estimate import Estimate
from ragwatch.core.estimators.corrected import WithoutAnnotator, shares_of, widened
from ragwatch.core.labels.label import MAX_EARLIER, Label, from_record
from ragwatch.model.quantities import Quantity

ALL = Estimate(0.3, 0.2, 0.4, n=90, n_eff=80.0, coverage=1.0, bound_low=0.3, bound_high=0.3, interval="ppi++")


def without(name: str, labels: int, value: float | None) -> WithoutAnnotator:
    """The estimate without somebody; None where too little is left."""
    left = None if value is None else replace(ALL, value=value, low=value - 0.15, high=value + 0.15)
    return WithoutAnnotator(name, labels, left)


def test_the_interval_spans_those_without_each() -> None:
    """One of several is hostile: the interval without that one is inside; trusted people widen nothing."""
    shares = shares_of(ALL, 3, [without("bob", 20, 0.28), without("mallory", 50, 0.6), without("ann", 20, 0.27)])
    assert [one.annotator for one in shares.without] == ["mallory", "ann", "bob"]
    assert (shares.count, shares.stands_on, round(shares.change or 0.0, 6)) == (3, None, 0.3)
    wide = widened(ALL, shares, (0.0, 1.0))
    assert (wide.value, round(wide.low, 6), round(wide.high, 6)) == (0.3, 0.12, 0.75)
    trusting = widened(ALL, shares, (0.0, 1.0), {"mallory"})
    assert (round(trusting.low, 6), round(trusting.high, 6)) == (0.12, 0.43)


def test_a_figure_that_stands_on_one_reaches_to_the_judge() -> None:
    """Unless that one is trusted, or the judge is not known."""
    shares = shares_of(ALL, 1, [without("ann", 90, None)])
    assert (shares.stands_on, shares.change) == ("ann", None)
    wide = widened(ALL, shares, (0.5, 0.7))
    assert (wide.low, wide.high) == (0.2, 0.7)
    assert widened(ALL, shares, None) == widened(ALL, shares, (0.5, 0.7), ["ann"]) == ALL


def test_a_label_keeps_what_it_replaces() -> None:
    """The same again keeps nothing; something else, or what was taken back, is kept, the newest few."""
    first = Label("k", "ann", 1.0, {Quantity.FAITHFULNESS: 0.0})
    assert replace(first, at=2.0).after(first).earlier == ()
    second = Label("k", "ann", 2.0, {Quantity.FAITHFULNESS: 1.0}).after(first)
    assert [record["scores"] for record in second.earlier] == [{"faithfulness": 0.0}]
    again = Label("k", "ann", 3.0, {Quantity.FAITHFULNESS: 1.0}).after(replace(second, revoked=2.5))
    assert [record.get("revoked") for record in again.earlier] == [None, 2.5]
    for turn in range(9):
        again = Label("k", "ann", 4.0, {}, note=str(turn)).after(again)
    assert len(again.earlier) == MAX_EARLIER
    whole = replace(again, owner="bob", without={"bob": 0.5}, revoked=5.0)
    assert from_record(whole.to_record()) == whole
