"""The queue of an annotator: what was given to one person and awaits a label, read without changing anything."""

from __future__ import annotations

from random import Random

from support.labelled import ALONE, NOW, World

from ragwatch.core.labels.label import Label
from ragwatch.pipeline.labels.tasks import STATE, LabelTasks
from ragwatch.ports import Erasure, Store
from ragwatch.stores.sqlite.store import SqliteStore


def asked(store: Store, now: float = NOW) -> LabelTasks:
    """What asks people, at a time."""
    return LabelTasks(ALONE, store=store, clock=lambda: now, uniform=Random(1).random)


def said(key: str, annotator: str = "ann", at: float = NOW) -> dict[str, object]:
    """A label without scores."""
    return Label(key, annotator, at, {}).to_record()


def test_the_queue_is_what_was_given_in_its_order(store: SqliteStore) -> None:
    """It holds the samples of `tasks` in their order, and reading it gives nothing to anybody."""
    World(store, Random(1), requests=120)
    labelling = asked(store)
    assert labelling.queue("ann") == {"given": [], "open": [], "done": 0, "twice": 0, "last": None}
    keys = [task["key"] for task in labelling.tasks("ann", 6)]
    state = store.recall(STATE)
    queue = labelling.queue("ann")
    assert (queue["open"], sorted(queue["given"])) == (keys, sorted(keys))
    assert labelling.queue("bob")["open"] == []
    assert store.recall(STATE) == state


def test_a_label_moves_the_queue_on_and_taking_it_back_brings_its_sample_again(store: SqliteStore) -> None:
    """Progress counts labels of the last day; the last of them is what `undo` takes back."""
    World(store, Random(2), requests=120)
    labelling = asked(store)
    first, second, third = (task["key"] for task in labelling.tasks("ann", 3))
    labelling.put([said(first, at=NOW - 1.0)])
    labelling.put([said(second)])
    queue = labelling.queue("ann")
    assert (queue["open"], queue["done"], queue["last"]) == ([third], 2, second)
    labelling.revoke(second, "ann")
    queue = labelling.queue("ann")
    assert (queue["open"], queue["done"], queue["last"]) == ([second, third], 1, first)
    labelling.put([said(second)])
    assert labelling.queue("ann")["open"] == [third]
    later = asked(store, NOW + 90_000.0).queue("ann")
    assert (later["open"], later["done"], later["last"]) == ([third], 0, None)


def test_a_label_that_nobody_asked_for_counts_as_done(store: SqliteStore) -> None:
    """A sample that a person chose is no part of what was given, but can be undone."""
    key = next(iter(World(store, Random(3), requests=40).said))
    labelling = asked(store)
    labelling.put([said(key)])
    assert labelling.queue("ann") == {"given": [], "open": [], "done": 1, "twice": 0, "last": key}


def test_samples_of_two_people_come_first_and_are_counted(store: SqliteStore) -> None:
    """What another person has labelled stands before what nobody has; both people see how many there are."""
    World(store, Random(4), requests=60)
    rules = type(ALONE)(ALONE.judges, ALONE.chain, double=0.9)
    labelling = LabelTasks(rules, store=store, clock=lambda: NOW, uniform=Random(1).random)
    keys = [task["key"] for task in labelling.tasks("ann", 10)]
    labelling.put([said(key) for key in keys])
    tasks = [task["key"] for task in labelling.tasks("bob", 5)]
    again = [key for key in tasks if key in keys]
    assert again
    queue = labelling.queue("bob")
    assert (set(queue["open"][: len(again)]), queue["twice"]) == (set(again), len(again))
    assert queue["open"][len(again) :] == tasks[len(again) :]
    assert labelling.queue("ann")["twice"] == len(again)


def test_a_task_has_no_verdict_and_is_none_without_its_text(store: SqliteStore) -> None:
    """A sample is shown without what judges say of it; one whose text is erased, or that is unknown, is none."""
    key = next(iter(World(store, Random(5), requests=40).said))
    labelling = asked(store)
    task = labelling.task(key)
    assert task is not None
    assert set(task) == {"key", "route", "at", "sample", "claims"}
    assert {"question", "contexts", "answer"} <= set(task["sample"])
    assert {name for claim in task["claims"] for name in claim} == {"text", "start", "end"}
    assert labelling.task("f" * 32) is None
    store.forget(Erasure(ids=frozenset({key})))
    assert labelling.task(key) is None
