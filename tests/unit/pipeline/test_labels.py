"""Label correction: corrected estimates cover the truth, and there are none without enough labels."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from support.kit import JUDGE, a_claim, a_draw, a_verdict, an_admission, an_evidence, an_unjudged
from support.labelled import ALONE, BOTH, LLM, NOW, World
from support.loops import a_digest

from ragwatch.board import Board
from ragwatch.model.estimate import Addends, Estimate
from ragwatch.model.quantities import Quantity
from ragwatch.pipeline.labels.correction import LabelCorrection
from ragwatch.pipeline.labels.verdicts import LabelRules, answer_label, answer_verdicts
from ragwatch.ports import Retention, Store
from ragwatch.statistics.estimators import hajek
from ragwatch.statistics.labels.label import Label
from ragwatch.statistics.snapshot import EstimateRow, Gauge
from ragwatch.stores.sqlite.store import SqliteStore

pytestmark = pytest.mark.uncounted

F, IGNORED = Quantity.FAITHFULNESS, Quantity.TOP_RANKED_IGNORED


@pytest.fixture
def store_of(tmp_path: Path) -> Iterator[Callable[[], SqliteStore]]:
    """Empty stores, as many as one likes."""
    made: list[SqliteStore] = []

    def another() -> SqliteStore:
        made.append(SqliteStore(tmp_path / str(len(made))))
        return made[-1]

    yield another
    for store in made:
        store.close()


def judges_own(store: Store) -> Estimate:
    """What the first judge says of faithfulness, by itself."""
    rows = (row for row in store.window(0, 0.0, 100_000) if row.judge == JUDGE and row.scores is not None)
    estimate = hajek.estimate(Addends.of((row.scores[F], row.probability) for row in rows))  # type: ignore[index,misc]
    assert estimate is not None
    return estimate


def faithful(world: World) -> EstimateRow:
    """The corrected estimate of faithfulness of a day."""
    return next(row for row in world.people().correct(NOW, ())[0] if row.quantity is F and row.window == "1d")


@pytest.mark.costly
@pytest.mark.parametrize("rules", [ALONE, BOTH], ids=["one judge", "two judges"])
def test_the_corrected_interval_covers_where_the_judge_misses(
    store_of: Callable[[], SqliteStore], rules: LabelRules
) -> None:
    """Harsh judges, unequal draws, labels where judges doubt: corrected right, uncorrected wrong."""
    right = uncorrected = 0
    for seed in range(3):
        world = World(store_of(), Random(seed), requests=500, rules=rules)
        world.label(50)
        row = faithful(world)
        assert (row.corrected, row.judge, row.estimate.interval) == (True, JUDGE, "ppi++")
        right += row.estimate.low <= world.truth <= row.estimate.high
        own = judges_own(world.store)
        uncorrected += own.low <= world.truth <= own.high
    assert right == 3
    assert uncorrected == 0


@pytest.mark.costly
def test_a_reference_judge_corrects_without_labels(store_of: Callable[[], SqliteStore]) -> None:
    """From the half that it has read: what it would say of all traffic, which is not what the first judge says."""
    rules = replace(BOTH, reference=True)
    right = first = 0
    for seed in range(3):
        world = World(store_of(), Random(seed), requests=500, rules=rules)
        row = faithful(world)
        assert (row.corrected, row.judge, row.reference, row.labels) == (True, JUDGE, LLM, 0)
        expected = 0.05 + 0.85 * world.truth  # it overlooks a tenth of what is supported, and believes 1 of 20 lies
        right += row.estimate.low <= expected <= row.estimate.high
        first += row.estimate.low <= judges_own(world.store).value <= row.estimate.high
    assert right == 3
    assert first == 0


@pytest.mark.costly
def test_people_correct_beside_a_reference_judge(store: SqliteStore) -> None:
    """Three tiers: the estimate in people's terms is the same with and without the one in terms of the reference."""
    world = World(store, Random(3), requests=300, rules=BOTH)
    world.label(40)
    rules = replace(BOTH, reference=True)
    rows = LabelCorrection(rules, {"1d": 86400.0}, store=store).correct(NOW, ())[0]
    assert [row for row in rows if not row.reference] == list(
        LabelCorrection(BOTH, {"1d": 86400.0}, store=store).correct(NOW, ())[0]
    )
    assert {row.reference for row in rows if row.window == "1d"} == {"", LLM}


@pytest.mark.costly
def test_too_few_labels_correct_nothing(store: SqliteStore) -> None:
    """Without labels there is no series; below the minimum their number and age; from it on, estimate and gain.

    Labels that are older than is fresh correct nothing any more, nor do those on answers of another version's reading.
    """
    world = World(store, Random(2), requests=300)
    people = world.people()
    assert people.correct(NOW, ()) == ((), {})
    world.label(29)
    rows, gauges = people.correct(NOW, ())
    told = {(Gauge.LABELS, (F,)): 29.0, (Gauge.LABEL_ANNOTATORS, (F,)): 1.0, (Gauge.LAST_LABEL, ()): NOW}
    assert (rows, gauges) == ((), told)
    world.label(1)
    rows, gauges = people.correct(NOW, ())
    assert {row.window for row in rows} == {"1d", "30d"}
    assert gauges[Gauge.LABELS, (F,)] == 30.0
    assert 0.5 < gauges[Gauge.AGREEMENT, (JUDGE, F)] < 0.9
    assert gauges[Gauge.LABEL_GAIN, (F, "search", "1d")] >= 1.0
    assert world.people().correct(NOW + 29 * 86400.0, ())[0]
    assert world.people().correct(NOW + 31 * 86400.0, ()) == ((), {})
    other = LabelCorrection(replace(ALONE, judges={JUDGE: "scripted-2"}), {"1d": 86400.0}, store=store)
    assert other.correct(NOW, ()) == ((), {(Gauge.LAST_LABEL, ()): NOW})


def test_a_person_s_clock_may_be_ahead(store: SqliteStore) -> None:
    """A label that says it comes from next year does not hide that people have long stopped."""
    year = 365 * 86400.0
    store.add_labels([Label("a", "ann", NOW + year, {F: 1.0})])
    assert LabelCorrection(ALONE, {}, store=store).correct(NOW, ()) == ((), {(Gauge.LAST_LABEL, ()): NOW})
    store.add_labels([Label("b", "bob", NOW - 9.0, {F: 1.0})])
    assert LabelCorrection(ALONE, {}, store=store).correct(NOW, ()) == ((), {(Gauge.LAST_LABEL, ()): NOW - 9.0})


def test_labels_without_a_probability_correct_nothing(store: SqliteStore) -> None:
    """Imported labels tell of the judge, and of no traffic."""
    world = World(store, Random(5), requests=300)
    keys = list(world.said)[:60]
    world.labelling().put([world.word(key) for key in keys])
    rows, gauges = world.people().correct(NOW, ())
    assert rows == ()
    assert gauges[Gauge.AGREEMENT, (JUDGE, F)] == pytest.approx(0.6, abs=0.25)


@pytest.mark.costly
def test_the_past_is_caught_up_with_little_by_little(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long past holds no digest up: until it is read, there is no corrected estimate, and then the same one."""
    monkeypatch.setattr("ragwatch.pipeline.labels.correction.ROWS", 10)
    world = World(store, Random(6), requests=300)
    world.label(40)
    people = world.people()
    first, told = people.correct(NOW, ())
    assert (first, told[Gauge.LABELS, (F,)]) == ((), 40.0)
    slowly = [people.correct(NOW, ())[0] for _ in range(5)][-1]
    monkeypatch.undo()
    at_once = world.people().correct(NOW, ())[0]
    assert [row.place for row in slowly] == [row.place for row in at_once] != []
    for one, other in zip(slowly, at_once, strict=True):
        assert (one.estimate.value, one.estimate.high) == pytest.approx((other.estimate.value, other.estimate.high))


@pytest.mark.costly
def test_what_stayed_unjudged_widens_the_worst_case(store: SqliteStore) -> None:
    """Draws that the first judge could not read count in the coverage of the corrected estimate."""
    world = World(store, Random(7), requests=300)
    world.label(40)
    draws = [a_draw(f"lost{index}", probability=0.2) for index in range(20)]
    store.admit(an_admission(*draws))
    store.settle([an_unjudged(draw) for draw in draws])
    row = faithful(world)
    assert row.estimate.coverage < 0.9
    assert row.estimate.bound_high - row.estimate.bound_low == pytest.approx(1.0 - row.estimate.coverage)


def binary(store: Store, liar: str = "") -> tuple[EstimateRow, float]:
    """A window whose judge calls half of the used contexts ignored; the estimate as it is, and the truth.

    A hundred answers have labels; every other one is by the liar, if there is one, who contradicts the judge.
    """
    rng, labels, shown, truth = Random(8), list[Label](), list[tuple[float, float]](), 0
    draws = [a_draw(f"b{index}") for index in range(200)]
    store.admit(an_admission(*draws))
    for index, draw in enumerate(draws):
        ignored = rng.random() < 0.3
        truth += ignored
        seen = ignored if rng.random() < 0.8 else not ignored
        row = a_claim((0, 1) if seen else (1, 0))
        store.settle([a_verdict(draw, an_evidence(row, relevant=(True, True)))])
        name, said = (liar, 1.0 - seen) if liar and index % 2 else ("ann", float(ignored))
        labels.append(Label(draw.key, name, NOW, {IGNORED: said}, probability=1.0))
        shown.append((float(seen), 1.0))
    store.add_labels(labels[:100])
    own = hajek.estimate(Addends.of(shown))
    assert own is not None
    row = EstimateRow(IGNORED, "search", JUDGE, "15m", own, best=1.0 - own.value)
    return row, truth / 200


@pytest.mark.costly
def test_yes_or_no_has_a_level_from_labels_alone(store: SqliteStore) -> None:
    """A short window of a binary quantity, from all fresh labels, though nothing is known of such judges."""
    row, truth = binary(store)
    rows, _ = LabelCorrection(ALONE, {"15m": 900.0}, store=store).correct(NOW, (row,))
    (made,) = [one for one in rows if one.window == "15m"]
    assert (made.window, made.corrected, made.estimate.interval) == ("15m", True, "level")
    assert made.estimate.low <= truth <= made.estimate.high
    assert abs(made.estimate.value - truth) < abs(row.estimate.value - truth)
    assert (made.labels, made.labels_given) == (100, 100)
    rows, _ = LabelCorrection(ALONE, {}, store=store).correct(NOW, (replace(row, judge="other"),))
    assert [one.window for one in rows] == ["30d"]


@pytest.mark.costly
def test_yes_or_no_stands_on_its_annotators_too(store: SqliteStore) -> None:
    """Error rates by two people: the interval spans those by each; by one alone it reaches to the judge."""
    row, _ = binary(store, "mallory")
    figures = []
    for rules in (replace(ALONE, leave_out=frozenset({"mallory"})), ALONE):
        rows, _ = LabelCorrection(rules, {"15m": 900.0}, store=store).correct(NOW, (row,))
        (made,) = [one for one in rows if one.window == "15m"]
        assert made.annotators is not None
        figures.append((made.annotators.count, made.annotators.stands_on))
        if rules is not ALONE:
            assert made.estimate.low <= row.estimate.low < row.estimate.high <= made.estimate.high
    assert figures == [(1, "ann"), (2, None)]


def test_two_people_on_one_answer_are_one_word(store: SqliteStore) -> None:
    """The mean of their scores counts, once."""
    world = World(store, Random(9), requests=100)
    key = next(iter(world.said))
    store.add_labels([Label(key, name, NOW, {F: score}, probability=0.1) for name, score in (("a", 1.0), ("b", 0.5))])
    verdicts = answer_verdicts(store, ALONE.judges, key)
    assert verdicts is not None
    word = answer_label(verdicts, store.labels(0.0))
    assert (word.scores, word.probability) == ({F: 0.75}, 0.1)
    assert world.people().correct(NOW, ())[1][Gauge.LABELS, (F,)] == 1.0


async def test_a_digest_publishes_corrected_estimates(store: SqliteStore) -> None:
    """Corrected estimates are in the Snapshot, next to the estimates of the judge."""
    world, board = World(store, Random(10), requests=200), Board()
    world.label(40)
    digest = a_digest(store, board, lambda: NOW, spans={"1d": 86400.0}, labels=world.people())
    await digest.step()
    snapshot = board.latest()
    assert snapshot is not None
    assert {(row.corrected, row.window) for row in snapshot.estimates} == {(False, "1d")}
    assert {(row.corrected, row.window) for row in snapshot.corrected} == {(True, "1d"), (True, "30d")}
    assert snapshot.gauges[Gauge.LABELS, (F,)] == 40.0


@pytest.mark.costly
def test_words_on_what_retention_has_picked_from_say_nothing(store_of: Callable[[], SqliteStore]) -> None:
    """Failures outlive successes: agreement on what is left would be that on failures, and no mean holds them."""
    world = World(store_of(), Random(11), requests=400)
    world.label(60)
    assert world.people().correct(NOW, ())[0]
    world.store.prune(Retention(1e-9, 1e6, 1 << 40), now=NOW)
    verdicts = [answer_verdicts(world.store, ALONE.judges, label.key) for label in world.store.labels(0.0)]
    there = [answer.at for answer in verdicts if answer is not None]
    younger = [at for at in there if at > world.store.pruned_until()]
    assert len(younger) < 10 < len(there)
    rows, gauges = world.people().correct(NOW, ())
    assert (rows, gauges.get((Gauge.LABELS, ("faithfulness",)), 0.0)) == ((), len(younger))
    assert not any(gauge is Gauge.AGREEMENT for gauge, _ in gauges)


@pytest.mark.costly
def test_a_clock_that_was_ahead_loses_no_row(store: SqliteStore) -> None:
    """Ahead by so much for one digest that labels count and answers do not: then all is there again, once each."""
    world = World(store, Random(12), requests=300)
    later = world._now = NOW + 2 * 3600.0
    world.label(40)
    people = world.people()
    before = people.correct(later, ())
    assert people.correct(later + ALONE.fresh - 60.0, ())[0] == ()
    assert before[0]
    assert people.correct(later, ()) == before
