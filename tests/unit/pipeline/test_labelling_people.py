"""Label tasks and the queue of an annotator: what people get, and the probability stored with their labels."""

import math
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from support.kit import JUDGE, a_draw, a_reading, a_verdict, an_admission, an_unjudged
from support.labelled import ALONE, BOTH, LLM, NOW, World

from ragwatch.model.quantities import Quantity
from ragwatch.pipeline.labels import tasks as module
from ragwatch.pipeline.labels.tasks import STATE, LabelTasks
from ragwatch.pipeline.labels.verdicts import LabelRules
from ragwatch.ports import Erasure, Retention, Store
from ragwatch.statistics.labels.label import Label
from ragwatch.stores.sqlite.store import SqliteStore

F = Quantity.FAITHFULNESS


def weights(store: Store) -> float:
    """Requests that all labels together stand for."""
    return math.fsum(1.0 / label.probability for label in store.labels(0.0) if label.probability is not None)


@pytest.mark.costly
@pytest.mark.parametrize("rules", [ALONE, BOTH], ids=["one judge", "two judges"])
def test_words_stand_for_all_traffic(store: SqliteStore, rules: LabelRules) -> None:
    """After any number of words, kept one by one, their weights add up to the traffic, about."""
    world = World(store, Random(1), requests=600, rules=rules)
    for count in (1, 40, 40):
        world.label(count, at_once=False)
        assert all(label.probability is not None for label in store.labels(0.0))
    assert len(store.labels(0.0)) == 81
    assert weights(store) == pytest.approx(600, rel=0.35)


def test_everything_labelled_is_a_certainty(store: SqliteStore) -> None:
    """Once people were given all there is, the probability is that of the draw."""
    world = World(store, Random(2), requests=60)
    world.label(200)
    assert {label.key for label in store.labels(0.0)} == set(world.said)
    assert {label.probability for label in store.labels(0.0)} == {0.2, 0.8}
    assert world.labelling().tasks("ann", 5) == []


@pytest.mark.costly
def test_a_second_person_is_given_a_share_again(store: SqliteStore) -> None:
    """A known part of what one person has labelled comes to another one first, and to nobody a third time."""
    world = World(store, Random(4), requests=400)
    world.label(100, "first")
    before = {label.key for label in store.labels(0.0)}
    keys = [task["key"] for task in world.labelling().tasks("second", 50)]
    again = [key for key in keys if key in before]
    assert 1 <= len(again) <= 5
    assert keys[: len(again)] == again
    world.labelling().put([world.word(key, "second") for key in keys])
    assert not set(again) & {task["key"] for task in world.labelling().tasks("third", 50)}
    assert not before & {task["key"] for task in world.labelling().tasks("first", 50)}
    both = [label.probability for label in store.labels(0.0) if label.key == again[0]]
    assert len(both) == 2
    assert both[0] == both[1]


def test_a_sample_that_was_passed_over_was_given(store: SqliteStore) -> None:
    """A word that says nothing is kept: the sample does not come again, and holds no other one up."""
    world = World(store, Random(5), requests=100)
    labelling = world.labelling()
    first, second = (task["key"] for task in labelling.tasks("ann", 2))
    labelling.put([Label(first, "ann", NOW, {}).to_record(), world.word(second)])
    assert all(label.probability is not None for label in store.labels(0.0))
    assert first not in {task["key"] for task in labelling.tasks("ann", 100)}


def test_new_traffic_makes_a_new_pool(store: SqliteStore) -> None:
    """No sample is in two pools; an older one with samples left is gone on with for an hour."""
    world = World(store, Random(6), requests=50)
    clock = [NOW]
    labelling = LabelTasks(ALONE, store=store, clock=lambda: clock[0], uniform=Random(6).random)
    old = {task["key"] for task in labelling.tasks("ann", 200)}
    draw = a_draw("later")
    store.admit(an_admission(draw))
    store.settle([a_verdict(draw)])
    assert {task["key"] for task in labelling.tasks("ann", 200)} == old
    clock[0] += 3600.0
    assert {task["key"] for task in labelling.tasks("ann", 200)} == old | {draw.key}
    clock[0] += 40 * 86400.0
    assert labelling.tasks("ann", 200) == []
    last = store.window(0, 0.0, 1000)[-1].seq
    assert world.store.recall("labelling") == {"until": last, "gone": [], "given": {}, "pools": []}


@pytest.mark.costly
def test_large_pools_are_thinned_out_with_known_probability(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More candidates than are looked at, more than have places: the weights still add up to the traffic."""
    monkeypatch.setattr(module, "MAX_CANDIDATES", 150)
    monkeypatch.setattr(module, "POOL_SIZE", 100)
    monkeypatch.setattr(module, "ROWS", 70)
    world = World(store, Random(7), requests=700)
    world.label(100)
    assert len(store.labels(0.0)) == 100
    assert weights(store) == pytest.approx(700, rel=0.3)


def test_what_retention_took_holds_nobody_up(store: SqliteStore) -> None:
    """Samples that are gone are left out, and others come in their place."""
    world = World(store, Random(8), requests=40)
    labelling = world.labelling()
    assert labelling.tasks("ann", 5)
    store.prune(Retention(1e-9, 1e-9, 1 << 40), now=NOW)
    assert labelling.tasks("ann", 5) == []
    assert len(dict(store.recall("labelling") or {})["gone"]) == len(world.said)


def test_words_from_elsewhere(store: SqliteStore) -> None:
    """An imported word keeps its own probability, is told when no judge has read its sample, and replaces."""
    world = World(store, Random(9), requests=40)
    key = next(iter(world.said))
    labelling = world.labelling()
    assert labelling.put([world.word(key), Label("f" * 32, "x", NOW, {F: 1.0}, probability=0.3).to_record()]) == {
        "new": 2,
        "replaced": 0,
        "unmatched": 1,
    }
    assert labelling.put([world.word(key)]) == {"new": 0, "replaced": 1, "unmatched": 0}
    assert [record["probability"] for record in sorted(labelling.labels(), key=lambda record: record["key"])][-1] == 0.3


A_LABEL = {"key": "k", "annotator": "a", "at": 1, "scores": {"faithfulness": 1.0}}


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({}, "key: is missing or no text"),
        ([], "is no label; write an object"),
        (A_LABEL | {"key": None}, "key: is missing or no text"),
        (A_LABEL | {"key": ""}, "key: is missing or no text"),
        ({"key": "k", "at": 1, "scores": {}}, "annotator: is missing; add it"),
        (A_LABEL | {"scores": [1]}, "a field has a value of the wrong type"),
        (A_LABEL | {"at": None}, "a field has a value of the wrong type"),
        (A_LABEL | {"scores": {"faithfulness": 2.0}}, ".*must be"),
        (A_LABEL | {"at": 1.7e12}, ".*at must be seconds since the epoch"),
        (A_LABEL | {"at": "nan"}, ".*must be"),
        (A_LABEL | {"at": "inf"}, ".*must be"),
        (A_LABEL | {"probability": 5e-324}, ".*must be"),
        (A_LABEL | {"note": "\ud83d"}, ".*half of a surrogate"),
        (A_LABEL | {"annotator": "\ud83d"}, ".*half of a surrogate"),
    ],
)
def test_what_is_no_label_is_refused_in_words(store: SqliteStore, record: object, reason: str) -> None:
    """One bad record, and nothing is kept; a key of null is not the name None."""
    world = World(store, Random(10), requests=10)
    good = world.word(next(iter(world.said)))
    with pytest.raises(ValueError, match=f"^{reason}"):
        world.labelling().put([good, record])  # type: ignore[list-item]
    assert store.labels(0.0) == []


def test_only_what_every_judge_of_the_chain_has_read(store: SqliteStore) -> None:
    """With a second judge, people are given what that one has read as well."""
    world = World(store, Random(11), requests=200, rules=BOTH)
    lone = a_draw("lone")
    store.admit(an_admission(lone, judges=(LLM,)))
    store.settle([a_verdict(lone, reading=a_reading(LLM))])
    keys = {task["key"] for task in world.labelling().tasks("ann", 200)}
    read = {row.key for row in store.window(0, 0.0, 1000) if row.judge == LLM}
    assert keys == read - {lone.key}


def test_a_second_judge_that_could_read_nothing_yet(store: SqliteStore) -> None:
    """Without a daemon, its version is not known: there is nothing to label, and nothing breaks."""
    draw = a_draw("r1", at=NOW)
    store.admit(an_admission(draw, judges=(JUDGE, LLM)))
    store.settle([a_verdict(draw), an_unjudged(draw, reading=a_reading(LLM))])
    assert what_asks(store, chain=BOTH.chain).tasks("ann", 5) == []


def what_asks(store: Store, now: float = NOW, **rules: Any) -> LabelTasks:
    """What asks people, at a time."""
    return LabelTasks(replace(ALONE, **rules), store=store, clock=lambda: now, uniform=Random(1).random)


def a_label_of(key: str, annotator: str = "ann", at: float = NOW) -> dict[str, object]:
    """A label without scores."""
    return Label(key, annotator, at, {}).to_record()


def test_the_queue_is_what_was_given_in_its_order(store: SqliteStore) -> None:
    """It holds the samples of `tasks` in their order, and reading it gives nothing to anybody."""
    World(store, Random(1), requests=120)
    labelling = what_asks(store)
    assert labelling.queue("ann") == {"given": [], "open": [], "done": 0, "twice": 0, "last": None}
    keys = [task["key"] for task in labelling.tasks("ann", 6)]
    state = store.recall(STATE)
    queue = labelling.queue("ann")
    assert (queue["open"], sorted(queue["given"])) == (keys, sorted(keys))
    assert labelling.queue("bob")["open"] == []
    assert store.recall(STATE) == state
    labelling.put([a_label_of(keys[0], "carl")])  # nobody has asked for it, but it can be undone
    assert labelling.queue("carl") == {"given": [], "open": [], "done": 1, "twice": 0, "last": keys[0]}


def test_a_label_moves_the_queue_on_and_taking_it_back_brings_its_sample_again(store: SqliteStore) -> None:
    """Progress counts labels of the last day; the last of them is what `undo` takes back."""
    World(store, Random(2), requests=120)
    labelling = what_asks(store)
    first, second, third = (task["key"] for task in labelling.tasks("ann", 3))
    labelling.put([a_label_of(first, at=NOW - 1.0)])
    labelling.put([a_label_of(second)])
    queue = labelling.queue("ann")
    assert (queue["open"], queue["done"], queue["last"]) == ([third], 2, second)
    labelling.revoke(second, "ann")
    queue = labelling.queue("ann")
    assert (queue["open"], queue["done"], queue["last"]) == ([second, third], 1, first)
    labelling.put([a_label_of(second)])
    assert labelling.queue("ann")["open"] == [third]
    later = what_asks(store, NOW + 90_000.0).queue("ann")
    assert (later["open"], later["done"], later["last"]) == ([third], 0, None)


def test_samples_of_two_people_come_first_and_are_counted(store: SqliteStore) -> None:
    """What another person has labelled stands before what nobody has; both people see how many there are."""
    World(store, Random(4), requests=60)
    labelling = what_asks(store, double=0.9)
    keys = [task["key"] for task in labelling.tasks("ann", 10)]
    labelling.put([a_label_of(key) for key in keys])
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
    labelling = what_asks(store)
    task = labelling.task(key)
    assert task is not None
    assert set(task) == {"key", "route", "at", "sample", "claims"}
    assert {"question", "contexts", "answer"} <= set(task["sample"])
    assert {name for claim in task["claims"] for name in claim} == {"text", "start", "end"}
    assert labelling.task("f" * 32) is None
    store.forget(Erasure(ids=frozenset({key})))
    assert labelling.task(key) is None
