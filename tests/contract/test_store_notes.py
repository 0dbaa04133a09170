"""The contract of `ports.Notes`: runs, labels, what loops remember, and rights in a fleet."""

from __future__ import annotations

from collections import Counter

import pytest
from support.kit import AT, a_draw, a_verdict, an_admission

from ragwatch.core.evidence import ClaimVerdict
from ragwatch.core.labels.label import Label
from ragwatch.core.tally import Tally
from ragwatch.model.quantities import Quantity
from ragwatch.ports import Query, Retention, Store, StoredRun

DAY = 86400.0


def a_run(at: float = AT, *, failing: bool = False, name: str = "docs") -> StoredRun:
    """A run of a suite."""
    return StoredRun("canary", name, at, failing, {"ks": [1, 5], "text": "naïve \ud800"})


def a_label(key: str = "k1", annotator: str = "ada", at: float = AT, **parts: object) -> Label:
    """A person's word that an answer is faithful by half."""
    whole = {"claims": (ClaimVerdict.SUPPORTED, None), "probability": 0.25} | parts
    return Label(key, annotator, at, {Quantity.FAITHFULNESS: 0.5}, **whole)  # type: ignore[arg-type]


def test_runs_come_back_newest_first_and_whole(store: Store) -> None:
    """Each kind and name has its own; good and bad ones can be asked for apart; counts are kept with them."""
    tallies = Counter({(Tally.CANARY_RUNS, ("docs",)): 1})
    for index in range(3):
        store.record_run(a_run(AT + index, failing=index == 1), tallies)
    store.record_run(a_run(name="other"), Counter())
    assert [run.at for run in store.runs("canary", "docs", 10)] == [AT + 2, AT + 1, AT]
    assert [run.at for run in store.runs("canary", "docs", 10, failing=True)] == [AT + 1]
    assert [run.at for run in store.runs("canary", "docs", 1, failing=False)] == [AT + 2]
    assert store.runs("canary", "docs", 1)[0] == a_run(AT + 2)
    assert store.runs("anchor", "docs", 10) == []
    assert store.tallies()[Tally.CANARY_RUNS, ("docs",)] == 3


def test_failing_runs_outlive_good_ones(store: Store) -> None:
    """Retention takes a good run after `days`, a failing one after `failing_days`."""
    store.record_run(a_run(AT), Counter())
    store.record_run(a_run(AT + 1, failing=True), Counter())
    store.prune(Retention(30, 90, 1 << 30), now=AT + 31 * DAY)
    assert [run.failing for run in store.runs("canary", "docs", 10)] == [True]
    store.prune(Retention(30, 90, 1 << 30), now=AT + 91 * DAY)
    assert store.runs("canary", "docs", 10) == []


def test_a_person_has_one_word_on_a_sample(store: Store) -> None:
    """A second one replaces the first; two people have one each."""
    assert store.add_labels([a_label(), a_label("k2"), a_label(annotator="bob", at=AT + 1)]) == 3
    assert store.add_labels([a_label(at=AT + 2, note="changed")]) == 0
    labels = store.labels(0.0)
    assert [(label.key, label.annotator, label.note) for label in labels] == [
        ("k2", "ada", ""),
        ("k1", "bob", ""),
        ("k1", "ada", "changed"),
    ]
    assert [label.annotator for label in store.labels(AT + 1)] == ["bob", "ada"]
    assert labels[0] == a_label("k2")


@pytest.mark.parametrize("wrong", [{"probability": 0.0}, {"probability": 1.5}])
def test_a_label_of_no_probability_is_refused(wrong: dict[str, float]) -> None:
    """A weight needs a probability above 0."""
    with pytest.raises(ValueError, match="probability"):
        a_label(**wrong)


def test_a_score_outside_of_0_to_1_is_refused() -> None:
    """People's scores are shares as well."""
    with pytest.raises(ValueError, match="faithfulness"):
        Label("k", "ada", AT, {Quantity.FAITHFULNESS: 2.0})


def test_a_label_outlives_its_sample(store: Store) -> None:
    """A person's word is kept; the text it was about goes with the last verdict, for it may be about a person.

    So the sample may come again, as one that was never seen.
    """
    draw = a_draw("a")
    store.admit(an_admission(draw))
    store.settle([a_verdict(draw)])
    store.add_labels([a_label(draw.key)])
    store.prune(Retention(30, 90, 1 << 30), now=AT + 400 * DAY)
    assert store.find(Query()) == []
    assert [label.key for label in store.labels(0.0)] == [draw.key]
    assert store.admit(an_admission(draw)) == 1


def test_what_is_remembered_is_replaced(store: Store) -> None:
    """One state a name; nothing for a name that was never used."""
    assert store.recall("drift") is None
    store.remember("drift", {"seq": 1, "numbers": [0.5, 1e300]})
    store.remember("drift", {"seq": 2})
    assert store.recall("drift") == {"seq": 2}


def test_a_right_belongs_to_one_until_it_runs_out(store: Store) -> None:
    """The holder may keep it; another one gets it only when it has run out."""
    assert store.claim("docs", "a", now=AT, seconds=60) is True
    assert store.claim("docs", "b", now=AT + 59, seconds=60) is False
    assert store.claim("docs", "a", now=AT + 59, seconds=60) is True
    assert store.claim("docs", "b", now=AT + 118, seconds=60) is False
    assert store.claim("docs", "b", now=AT + 119, seconds=60) is True
    assert store.claim("other", "a", now=AT, seconds=60) is True


def test_a_right_that_was_given_back_is_free_at_once(store: Store) -> None:
    """Also where the clock was set back since: nobody waits for an hour until it is where it was."""
    assert store.claim("docs", "a", now=AT, seconds=60) is True
    assert store.claim("docs", "a", now=AT, seconds=0) is True
    assert store.claim("docs", "b", now=AT - 3600, seconds=60) is True
