"""Label sums: each row counts once, in its last tier, and cached sums change no figure."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from support.kit import AT, JUDGE, a_draw, a_reading, a_verdict, an_admission
from support.labelled import BOTH, LLM

from ragwatch.model.quantities import Quantity
from ragwatch.pipeline.labels import sums as module
from ragwatch.pipeline.labels.sums import HOUR, LabelSums, hours
from ragwatch.pipeline.labels.verdicts import Scores, answer_verdicts
from ragwatch.ports import Assignment, FollowUp, ScoreRow
from ragwatch.statistics.estimators.ppi import PpiSums
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
