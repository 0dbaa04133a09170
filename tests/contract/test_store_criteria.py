"""The contract of `ports.Store` about criteria: they are quantities of a verdict, and people can answer them."""

from __future__ import annotations

import pytest
from support.kit import AT, JUDGE, a_draw, a_verdict, an_admission, an_evidence

from ragwatch.core.evidence import CriterionAnswer, CriterionReading
from ragwatch.core.labels.label import Label
from ragwatch.core.tally import Tally
from ragwatch.core.verdict import Verdict
from ragwatch.model.quantities import Quantity, quantity_of
from ragwatch.ports import Query, Store

POLITE, PRICED = quantity_of("polite"), quantity_of("names_price")
YES, NO, DOES_NOT_APPLY = CriterionAnswer
PLACE = ("search", JUDGE)


def answered(name: str, polite: CriterionAnswer | None, price: CriterionAnswer | None = DOES_NOT_APPLY) -> Verdict:
    """A verdict with answers to two criteria, the first with a quote."""
    readings = (CriterionReading("polite", polite, "Cats purr."), CriterionReading("names_price", price))
    return a_verdict(a_draw(name), an_evidence((1, 0), criteria=readings))


@pytest.fixture
def filled(store: Store) -> Store:
    """Three verdicts: polite, not polite, not read."""
    verdicts = [answered("a", YES), answered("b", NO), answered("c", None, None)]
    store.admit(an_admission(*(verdict.draw for verdict in verdicts)))
    store.settle(verdicts)
    return store


def test_scores_of_criteria_come_back(filled: Store) -> None:
    """As scores of a row, of a summary and of a verdict, with answer and quote; reasons are counted."""
    rows = {row.key: row.scores for row in filled.window(0, 0.0, 9)}
    scores = [(rows[a_draw(name).key] or {}) for name in "abc"]
    assert [(one[POLITE], one[PRICED]) for one in scores] == [(1.0, None), (0.0, None), (None, None)]
    found = {row.verdict.id: row.verdict for row in filled.find(Query())}
    assert found["a"].criteria == (
        CriterionReading("polite", YES, "Cats purr."),
        CriterionReading("names_price", DOES_NOT_APPLY),
    )
    assert tuple(found["a"].scores) == (*Quantity, POLITE, PRICED)
    assert {row.verdict.id: row.verdict.scores[POLITE] for row in filled.summaries(Query())} == {
        "a": 1.0,
        "b": 0.0,
        "c": None,
    }
    tallies = filled.tallies()
    assert tallies[Tally.WX, ("polite", *PLACE)] == 1
    assert tallies[Tally.N, ("polite", *PLACE)] == 2
    assert tallies[Tally.UNKNOWN, ("polite", *PLACE, "not_read")] == 1
    assert tallies[Tally.UNKNOWN, ("names_price", *PLACE, "does_not_apply")] == 2


def test_verdicts_are_searched_by_a_criterion(filled: Store) -> None:
    """Below a score, and worst first; a verdict without a score is left out."""
    assert [row.verdict.id for row in filled.find(Query(quantity=POLITE, below=0.5))] == ["b"]
    assert [row.verdict.id for row in filled.find(Query(quantity=POLITE, worst=True))][:2] == ["b", "a"]


def test_labels_on_criteria_come_back(filled: Store) -> None:
    """A person's answer is a score by the same name."""
    label = Label(a_draw("a").key, "ann", AT, {POLITE: 0.0, Quantity.FAITHFULNESS: 1.0})
    filled.add_labels([label])
    assert filled.labels(0.0) == [label]


def test_a_verdict_without_criteria_is_stored_as_ever(store: Store) -> None:
    """Nothing is added to what is stored where there are none."""
    store.admit(an_admission(a_draw("a")))
    store.settle([a_verdict(a_draw("a"))])
    (row,) = store.find(Query())
    assert "criteria" not in row.line
    assert tuple(row.verdict.scores) == tuple(Quantity)
