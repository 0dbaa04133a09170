"""Hostile labels: what one annotator can and cannot do to a corrected estimate whose truth is known."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from support.kit import JUDGE, a_claim, a_draw, a_verdict, an_admission, an_evidence
from support.labelled import ALONE, NOW, World

from ragwatch.model.quantities import Quantity
from ragwatch.pipeline.labels.correction import LabelCorrection
from ragwatch.pipeline.labels.tasks import LabelTasks
from ragwatch.pipeline.labels.verdicts import LabelRules
from ragwatch.statistics.labels.label import Label
from ragwatch.statistics.snapshot import EstimateRow, Gauge, Gauges
from ragwatch.stores.sqlite.store import SqliteStore

pytestmark = pytest.mark.uncounted

F = Quantity.FAITHFULNESS
HOSTILE = 200


def corrected(world: World, rules: LabelRules = ALONE) -> tuple[EstimateRow, Gauges]:
    """The corrected faithfulness of a day."""
    rows, gauges = LabelCorrection(rules, {"1d": 86400.0}, store=world.store).correct(NOW, ())
    (row,) = [row for row in rows if row.quantity is F and row.window == "1d"]
    return row, gauges


def lies(keys: Iterable[str]) -> list[dict[str, object]]:
    """Labels that call every answer invented."""
    return [Label(key, "mallory", NOW, {F: 0.0}).to_record() for key in keys]


def asked(world: World, count: int = HOSTILE) -> list[str]:
    """Samples that the hostile annotator is given."""
    return [task["key"] for task in world.labelling().tasks("mallory", count)]


def a_world(store: SqliteStore, seed: int) -> World:
    """Two honest annotators have labelled."""
    world = World(store, Random(seed), requests=900)
    for name in ("ann", "bob"):
        labelling = world.labelling()
        labelling.put([world.word(task["key"], name) for task in labelling.tasks(name, 50)])
    return world


def test_labels_that_nobody_asked_for_move_nothing(store: SqliteStore) -> None:
    """200 answers that an annotator chose have no known probability: figure and tasks of others stay as they were."""
    world = a_world(store, 1)
    before, _ = corrected(world)
    labelled = {label.key for label in store.labels(0.0)}
    chosen = [key for key in world.said if key not in labelled][: HOSTILE // 2]
    next_tasks = [task["key"] for task in world.labelling().tasks("carl", 5)]
    world.labelling().put(lies([*chosen, *sorted(labelled)]))
    after, _ = corrected(world)
    assert after.estimate == before.estimate
    assert [task["key"] for task in world.labelling().tasks("carl", 5)] == next_tasks


@pytest.mark.costly
def test_with_the_rights_of_one_annotator_the_interval_contains_the_truth(tmp_path: Path) -> None:
    """200 hostile labels beside 100 honest ones: the mean moves by their share at most, the interval does not leave."""
    right = 0
    for seed in range(2):
        store = SqliteStore(tmp_path / str(seed))
        world = a_world(store, seed)
        before, _ = corrected(world)
        world.labelling().put(lies(asked(world)))
        row, gauges = corrected(world)
        share = HOSTILE / (HOSTILE + 100)
        assert abs(row.estimate.value - before.estimate.value) < share
        assert row.annotators is not None
        assert (row.annotators.count, row.annotators.stands_on) == (3, None)
        first = row.annotators.without[0]
        assert (first.annotator, first.labels) == ("mallory", HOSTILE)
        assert first.estimate is not None
        assert first.estimate.value == pytest.approx(before.estimate.value, abs=0.05)
        assert gauges[Gauge.ANNOTATOR_CHANGE, (F, "search", "1d")] == row.annotators.change
        assert gauges[Gauge.LABEL_ANNOTATORS, (F,)] == 3.0
        right += row.estimate.low <= world.truth <= row.estimate.high
        store.close()
    assert right == 2


@pytest.mark.costly
def test_an_annotator_cannot_choose_what_others_label(tmp_path: Path) -> None:
    """Who labels nothing but the good answers among those given leaves the honest sample as random as it was."""
    for seed in range(2):
        store = SqliteStore(tmp_path / str(seed))
        world = World(store, Random(seed), requests=900)
        world.labelling().put(lies(key for key in asked(world) if all(world.said[key])))
        honest = [task["key"] for task in world.labelling().tasks("ann", 150)]
        world.labelling().put([world.word(key) for key in honest])
        row, _ = corrected(world)
        assert row.annotators is not None
        (without,) = [one.estimate for one in row.annotators.without if one.annotator == "mallory"]
        assert without is not None
        assert without.low <= world.truth <= without.high
        assert row.estimate.low <= world.truth <= row.estimate.high
        store.close()


@pytest.mark.costly
def test_a_figure_that_stands_on_one_annotator_says_so(store: SqliteStore) -> None:
    """Its interval reaches to what the judge says by itself, unless the annotator is trusted by configuration."""
    world = World(store, Random(7), requests=600)
    world.labelling().put(lies(asked(world)))
    row, _ = corrected(world)
    assert row.annotators is not None
    assert (row.annotators.count, row.annotators.stands_on, row.annotators.change) == (1, "mallory", None)
    assert row.estimate.value < 0.05
    assert row.estimate.high > 0.5  # the judge's own: it overlooks three of ten
    trusting, _ = corrected(world, replace(ALONE, trusted=frozenset({"mallory"})))
    assert trusting.estimate.high < 0.1


@pytest.mark.costly
def test_an_annotator_can_be_left_out_or_taken_back(store: SqliteStore) -> None:
    """Estimates follow at once; the labels stay, with when they were taken back, and what replaces them keeps them."""
    world = a_world(store, 3)
    before, _ = corrected(world)
    keys = asked(world)
    world.labelling().put(lies(keys))
    hostile, _ = corrected(world)
    left_out, gauges = corrected(world, replace(ALONE, leave_out=frozenset({"mallory"})))
    assert left_out.estimate.value == pytest.approx(before.estimate.value, abs=0.05)
    assert gauges[Gauge.LABEL_ANNOTATORS, (F,)] == 2.0
    labelling = world.labelling()
    assert [labelling.revoke(key, "mallory") for key in keys] == [1] * HOSTILE
    assert labelling.revoke(keys[0], "mallory") == labelling.revoke("f" * 32) == 0
    revoked, _ = corrected(world)
    assert revoked.estimate == left_out.estimate != hostile.estimate
    assert {label.revoked for label in store.labels(0.0) if label.annotator == "mallory"} == {NOW}
    assert not set(keys) & {task["key"] for task in labelling.tasks("mallory", 50)}
    assert labelling.put([world.word(keys[0], "mallory")])["replaced"] == 1
    (again,) = [label for label in store.labels_of(keys[0], 5) if label.annotator == "mallory"]
    assert (again.revoked, [record["revoked"] for record in again.earlier]) == (None, [NOW])
    assert again.earlier[0]["scores"] == {"faithfulness": 0.0}


def test_each_is_given_samples_of_their_own(store: SqliteStore) -> None:
    """Two people who ask at once label different samples; who asks again is given the same, until they are labelled."""
    world = World(store, Random(8), requests=300)
    labelling = world.labelling()
    first, second = ([task["key"] for task in labelling.tasks(name, 20)] for name in ("ann", "bob"))
    assert not set(first) & set(second)
    assert [task["key"] for task in labelling.tasks("ann", 20)] == first
    labelling.put([world.word(key) for key in first[:5]])
    assert [task["key"] for task in world.labelling().tasks("ann", 15)] == first[5:]
    labelling.put([world.word(key, "bob") for key in second])
    assert all(label.probability is not None for label in store.labels(0.0))
    assert (JUDGE, len(store.labels(0.0))) == (JUDGE, 25)


def test_samples_with_a_suspected_injection_go_to_people(store: SqliteStore) -> None:
    """They are selected as those that judges are most unsure of."""
    draws = [a_draw(f"r{index}") for index in range(60)]
    store.admit(an_admission(*draws))
    sure = an_evidence(a_claim((1, 0), support=1.0))
    store.settle(
        [
            a_verdict(draw, replace(sure, instructions=("context",)) if index < 3 else sure)
            for index, draw in enumerate(draws)
        ]
    )
    labelling = LabelTasks(ALONE, store=store, clock=lambda: NOW, uniform=Random(1).random)
    labelling.tasks("ann", 1)
    (pool,) = (store.recall("labelling") or {})["pools"]
    sizes = {place[0]: place[2] for place in pool["places"]}
    suspect = {draw.key for draw in draws[:3]}
    assert min(sizes[key] for key in suspect) > 10 * max(size for key, size in sizes.items() if key not in suspect)
