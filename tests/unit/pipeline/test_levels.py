"""Sums of labels count each row once; levels of windows contain the error of the judge, and labels narrow them."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from support.kit import AT, JUDGE, a_draw, a_reading, a_verdict, an_admission
from support.labelled import ALONE, BOTH, LLM, NOW

from ragwatch.judges.error_rates import families
from ragwatch.model.estimate import Addends
from ragwatch.model.quantities import Quantity
from ragwatch.pipeline.labels import verdicts as module
from ragwatch.pipeline.labels.levels import MANY_LABELS, Levels
from ragwatch.pipeline.labels.verdicts import (
    HOUR,
    AnswerLabel,
    AnswerVerdicts,
    LabelRules,
    LabelSums,
    Scores,
    answer_verdicts,
    hours,
)
from ragwatch.ports import Assignment, FollowUp, RecordedEvent, ScoreRow
from ragwatch.statistics.estimators import hajek
from ragwatch.statistics.estimators.ppi import PpiSums
from ragwatch.statistics.labels.label import Label
from ragwatch.statistics.snapshot import EstimateRow
from ragwatch.stores.sqlite.store import SqliteStore

F, NEED, IGNORED = Quantity.FAITHFULNESS, Quantity.NEED_RECALL, Quantity.TOP_RANKED_IGNORED
SPANS = (6 * HOUR, 24 * HOUR, 30 * 24 * HOUR)
START = 1_700_000_000.0


def a_row(key: str, judge: str, scores: Scores | None, probability: float, at: float = AT, **parts: Any) -> ScoreRow:
    """A row of either judge."""
    row = ScoreRow(1, key, at, "search", judge, "scripted-1", probability, scores, None, None)
    return replace(row, **parts)


ROWS = [
    a_row("a", JUDGE, {F: 0.5}, 0.2),
    a_row("b", JUDGE, {F: 1.0}, 0.4),
    a_row("c", JUDGE, None, 0.5),
    a_row("a", LLM, {F: 1.0}, 0.1),
    a_row("c", LLM, {F: 1.0}, 0.1),
    a_row("d", "gone", {F: 1.0}, 0.1),
    a_row("e", JUDGE, {F: 0.25}, 0.2, AT - 40 * 86400.0),
]
TIERS = [((0.5, 1.0), (0.2, 0.5)), ((1.0,), (0.4,))]


@pytest.mark.parametrize("order", [ROWS, ROWS[::-1]], ids=["as it happened", "backwards"])
@pytest.mark.parametrize("at_once", [True, False])
def test_sums_are_those_of_the_rows(order: list[ScoreRow], *, at_once: bool) -> None:
    """Whichever judge comes first, and in however many turns: each row counts once, as far as it went."""
    sums = LabelSums(BOTH, lambda _: None)
    for turn in [order] if at_once else [[row] for row in order]:
        sums.add(turn)
    assert sums.totals(hours(AT, 3600.0))["search", F].numbers == pytest.approx(PpiSums.of(3, TIERS).numbers)
    assert sums.missed(hours(AT, 3600.0)) == {"search": 2.0}
    sums.forget(AT)
    ever = range(int(AT // HOUR) + 10)  # beyond the hours that are added up anew at every look
    assert sums.totals(ever)["search", F].numbers == pytest.approx(PpiSums.of(3, TIERS).numbers)
    sums.forget(AT + 60 * 86400.0)
    assert (sums.totals(ever), sums.missed(hours(AT, 3600.0))) == ({}, {})


def test_rows_of_long_ago_are_looked_up(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory holds the last rows only; what the second judge reads later is found in the store."""
    monkeypatch.setattr(module, "MAX_KEPT_ROWS", 1)
    draws = [a_draw(name, probability=0.4) for name in ("one", "two", "three")]
    store.admit(an_admission(*draws))
    onward = [replace(draw, probability=0.1) for draw in draws]
    store.settle(
        [a_verdict(draw) for draw in draws], [FollowUp(draw.key, JUDGE, Assignment(LLM, 0.1), AT) for draw in onward]
    )
    store.settle([a_verdict(draw, reading=a_reading(LLM)) for draw in onward])
    sums = LabelSums(BOTH, lambda key: answer_verdicts(store, BOTH.judges, key))
    sums.add(store.window(0, 0.0, 100))
    assert sums.totals(hours(AT, 3600.0))["search", F].rows(1) == 3


def test_a_quantity_that_the_second_judge_does_not_read_has_a_short_chain() -> None:
    """What only the first judge reads is corrected by people alone."""
    rules = replace(BOTH, second=frozenset({F}))
    assert (rules.readers(F), rules.readers(IGNORED)) == ((JUDGE, LLM), (JUDGE,))
    assert (LabelSums(rules, lambda _: None).tiers(F), LabelSums(rules, lambda _: None).tiers(IGNORED)) == (3, 2)


def rows(rng: random.Random, turn: int, now: float) -> list[ScoreRow]:
    """What was settled in a turn: answers of now, late ones, some that nobody could read, some read twice."""
    rows: list[ScoreRow] = []
    for number in range(rng.randrange(4)):
        at = now - rng.choice((0.0, 60.0, 2 * HOUR, 20 * HOUR, 300 * HOUR, -HOUR))
        key, route = f"{turn}-{number}", rng.choice("ab")
        scores = rng.choice(({F: rng.random()}, {F: rng.random(), NEED: None}, {NEED: 1.0}, None))
        rows.append(a_row(key, JUDGE, scores, 0.5, at, route=route))
        if rng.random() < 0.5:
            rows.append(a_row(key, LLM, {F: rng.random()}, 0.25, at, route=route))
    rng.shuffle(rows)
    return rows


@pytest.mark.costly
@pytest.mark.parametrize("seed", range(2))
def test_what_is_kept_changes_no_figure(seed: int) -> None:
    """Late answers, second readings, hours that go by: asked at every turn or only once, the sums are the same."""
    rng, often, turns, now = random.Random(seed), LabelSums(BOTH, lambda _: None), list[list[ScoreRow]](), START
    for turn in range(60):
        now += rng.choice((15.0, 900.0, HOUR, 30 * HOUR))
        turns.append(rows(rng, turn, now))
        often.forget(now)
        often.add(turns[-1])
        once = LabelSums(BOTH, lambda _: None)
        for rows_of_turn in turns:
            once.add(rows_of_turn)
        for span in SPANS:
            within = hours(now, span)
            assert often.totals(within) == once.totals(within)


KNOWN = replace(ALONE, families={(JUDGE, F): tuple(family.rates for family in families("lexical", "faithfulness"))})
DAY = 86400.0


def window(yes: int, no: int, quantity: Quantity = F) -> EstimateRow:
    """What the judge says of a window of an hour."""
    best, worst = (0.0, 1.0) if quantity is Quantity.TOP_RANKED_IGNORED else (1.0, 0.0)
    estimate = hajek.estimate(Addends.of([(best, 1.0)] * yes + [(worst, 1.0)] * no))
    assert estimate is not None
    return EstimateRow(quantity, "search", JUDGE, "1h", estimate, best=yes / (yes + no))


def labels(counts: Sequence[tuple[float, float, int]], at: float = AT, name: str = "ann") -> list[AnswerLabel]:
    """Labelled answers: what people say, what the judge says, and how many."""
    answers = []
    for people, judge, number in counts:
        for _ in range(number):
            key = f"{name}-{len(answers)}-{at}"
            verdicts = AnswerVerdicts(key, "search", at, {}, {JUDGE: {F: judge}}, {JUDGE: 1.0})
            label = Label(key, name, at, {F: people}, probability=0.1)
            answers.append(AnswerLabel(verdicts, {F: people}, 0.1, (label,)))
    return answers


GOOD_SERVICE = [(1.0, 1.0, 40), (1.0, 0.0, 5), (0.0, 0.0, 4), (0.0, 1.0, 1)]


def levels_of(
    store: SqliteStore, row: EstimateRow, answers: Sequence[AnswerLabel] = (), rules: LabelRules = KNOWN
) -> list[EstimateRow]:
    """The level of one window, if there is one."""
    return list(Levels(rules, store, {"1h": 3600.0}).rows(answers, [row], NOW, {}))


def level_of(store: SqliteStore, row: EstimateRow, answers: Sequence[AnswerLabel] = ()) -> EstimateRow:
    """The level that there must be."""
    (level,) = levels_of(store, row, answers)
    return level


def width(row: EstimateRow) -> float:
    """Width of the interval of a level."""
    return row.estimate.high - row.estimate.low


def test_a_level_without_labels_contains_the_error_of_the_judge(store: SqliteStore) -> None:
    """It is there from the first answers on, far wider than sampling alone, and says that nobody has labelled."""
    row = window(400, 100)
    level = level_of(store, row)
    assert (level.corrected, level.best, level.labels, level.calibrated) == (True, None, 0, False)
    assert level.estimate.low <= level.estimate.value <= level.estimate.high
    assert width(level) > 5 * (row.estimate.high - row.estimate.low)
    assert level.estimate.n == 500


@pytest.mark.parametrize(
    ("rules", "quantity"), [(ALONE, F), (KNOWN, Quantity.ANSWER_RELEVANCY), (KNOWN, Quantity.TOP_RANKED_IGNORED)]
)
def test_where_nothing_is_known_there_is_no_level(store: SqliteStore, rules: LabelRules, quantity: Quantity) -> None:
    """A judge or a quantity without families has changes only."""
    assert levels_of(store, window(400, 100, quantity), rules=rules) == []


def test_answers_in_languages_without_families_have_no_level(store: SqliteStore) -> None:
    """Above a twentieth of the answers the families of English say nothing; PPI++ from labels is shown as it is."""
    few, many = (replace(window(400, 100), unmeasured=share) for share in (0.05, 0.06))
    assert level_of(store, few) == replace(level_of(store, window(400, 100)), unmeasured=0.05)
    assert levels_of(store, many) == []
    corrected = replace(many, corrected=True, best=None, unmeasured=0.0, labels=MANY_LABELS // 4)
    made = list(Levels(KNOWN, store, {"1h": 3600.0}).rows([], [many], NOW, {many.place: corrected}))
    assert made == [corrected]


def test_fifty_labels_calibrate(store: SqliteStore) -> None:
    """Of answers in the window: the interval is a third as wide, and around what people say."""
    row = window(410, 90)
    level = level_of(store, row, labels(GOOD_SERVICE))
    assert (level.labels, level.labels_given, level.calibrated) == (50, 50, True)
    assert width(level) < width(level_of(store, row)) / 2
    assert level.estimate.low < 0.9 < level.estimate.high


def test_labels_of_last_week_do_not_hide_that_answers_became_worse(store: SqliteStore) -> None:
    """They tell how the judge errs, not how good answers are now."""
    before = labels(GOOD_SERVICE, at=NOW - 7 * DAY)
    good, bad = (level_of(store, window(yes, 500 - yes), before) for yes in (410, 250))
    assert width(good) < width(level_of(store, window(410, 90)))
    assert bad.estimate.high < good.estimate.value - 0.2


def test_labels_count_less_after_a_release_and_with_time(store: SqliteStore) -> None:
    """Half after an event of the service, half after 30 days; the page says how many still count."""
    row, before = window(410, 90), labels(GOOD_SERVICE, at=NOW - 2 * DAY)
    fresh = level_of(store, row, before)
    store.record(RecordedEvent(NOW - DAY, "reload", "alerts"))
    assert level_of(store, row, before) == fresh
    store.record(RecordedEvent(NOW - DAY, "release", "v2"))
    weakened = level_of(store, row, before)
    assert (weakened.labels_given, weakened.calibrated) == (50, False)
    assert weakened.labels == pytest.approx(fresh.labels / 2, abs=1)
    assert width(weakened) > width(fresh)
    old = level_of(store, row, labels(GOOD_SERVICE, at=NOW - 31 * DAY))
    assert old.labels == pytest.approx(12, abs=2)


def test_a_level_that_stands_on_one_person_reaches_to_the_judge(store: SqliteStore) -> None:
    """Nobody moves a level alone; of two people, the interval spans what each of them says."""
    row = window(410, 90)
    wrong = [(0.0, 1.0, 40), (1.0, 0.0, 10)]
    alone = level_of(store, row, labels(wrong))
    assert alone.annotators is not None
    assert alone.annotators.stands_on == "ann"
    assert alone.estimate.high >= row.estimate.high
    both = level_of(store, row, [*labels(wrong, name="mallory"), *labels(GOOD_SERVICE)])
    honest = level_of(store, row, labels(GOOD_SERVICE))
    assert both.estimate.low <= honest.estimate.value <= both.estimate.high


def test_many_labels_give_the_estimate_of_ppi(store: SqliteStore) -> None:
    """Where the judge's error is known, PPI++ counts from many labels on, or where most answers have one."""
    row = window(410, 90)
    corrected = replace(row, corrected=True, best=None, labels=MANY_LABELS, labels_given=MANY_LABELS)
    corrected = replace(corrected, estimate=replace(row.estimate, n=MANY_LABELS))  # the number of labels
    place = (F, "search", JUDGE, "1h")
    levels = Levels(KNOWN, store, {"1h": 3600.0})
    assert list(levels.rows((), [row], NOW, {place: corrected})) == [corrected]
    (level,) = levels.rows((), [row], NOW, {place: replace(corrected, labels=MANY_LABELS - 1)})
    assert level.estimate.interval == "level"
    assert list(Levels(ALONE, store, {}).rows((), [row], NOW, {place: corrected})) == [corrected]
    few = window(60, 12)
    most = replace(corrected, estimate=replace(few.estimate, n=40), labels=40)
    assert list(levels.rows((), [few], NOW, {place: most})) == [most]
    longer = (F, "search", JUDGE, "30d")
    assert list(levels.rows((), [], NOW, {longer: replace(most, window="30d")})) == []
