"""The end of a drift alarm, and kills at any instant: told once, at the same score, whatever process runs the test."""

import random
import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.draws import draws
from support.kit import AT, JUDGE
from support.mortal import Fate, KilledError, MortalConnection
from support.watched import CELL, MINUTE, a_drift, faithful, settle, stepped, watch_answers
from support.watched import RULES as QUICK

from ragwatch.model.quantities import Quantity
from ragwatch.pipeline.drift.rules import DriftRules
from ragwatch.pipeline.drift.scores import KIND
from ragwatch.pipeline.drift.streams import ReferenceStream
from ragwatch.statistics.drift.detect import Score
from ragwatch.statistics.drift.recovery import Mend
from ragwatch.statistics.snapshot import Gauge
from ragwatch.statistics.tally import Tally
from ragwatch.stores.sqlite.store import SqliteStore

pytestmark = pytest.mark.uncounted

RULES = replace(QUICK, reference=2000)
SECONDS = 3.6  # between answers: 1,000 an hour
SEEDS = 8


class Traffic:
    """Yes or no scores of one route, put into its detector one by one."""

    def __init__(
        self, mean: float, seed: int, quantity: Quantity = Quantity.FAITHFULNESS, seconds: float = SECONDS
    ) -> None:
        self.rng, self.seq, self.seconds = random.Random(seed), 0, seconds
        self.low = quantity is not Quantity.FAITHFULNESS
        self.rules = replace(RULES, quantities=(quantity,))
        self.stream = self._fresh(quantity)
        self.until(mean, lambda: self.seq == RULES.reference)
        self.stream.acknowledge()  # with 8 answers an hour these are 10 days, in which one false alarm is allowed

    def _fresh(self, quantity: Quantity) -> ReferenceStream:
        stream = self.rules.stream(quantity, "search")
        assert isinstance(stream, ReferenceStream)
        return stream

    def until(self, mean: float, over: Callable[[], object], most: int = 20_000, weight: float = 1.0) -> int:
        """Answers of a mean until something is over; returns their number."""
        first = self.seq
        while not over() and self.seq < first + most:
            good = self.rng.random() < mean
            self.stream.take(
                self.seq, AT + self.seconds * self.seq, Score(float(good != self.low), weight), control=False
            )
            self.seq += 1
        return self.seq - first

    def alarm(self, mean: float) -> int:
        """A break; the answers until its alarm."""
        return self.until(mean, lambda: self.stream.alarm)

    def mend(self) -> Mend | None:
        """What the stream says of the end."""
        return self.stream.mend


@pytest.mark.costly
@pytest.mark.parametrize(("good", "bad", "at_most"), [(0.98, 0.4, 4.5), (0.9, 0.4, 3), (0.9, 0.7, 2.5), (0.9, 0.8, 2)])
@pytest.mark.parametrize(("lasts", "seconds"), [(0, SECONDS), (300, 450.0)])
def test_an_alarm_ends_within_about_as_many_answers_as_it_took(
    good: float, bad: float, at_most: float, lasts: int, seconds: float
) -> None:
    """With 1,000 answers an hour that are mended at once, and with 8, of which 300 stay bad.

    A good answer says less than a bad one, so that the end of a sharp break takes more; about 40 at least.
    """
    delays, ends, begins = [], [], []
    for seed in range(SEEDS):
        traffic = Traffic(good, seed, seconds=seconds)
        delays.append(traffic.alarm(bad))
        if traffic.until(bad, traffic.mend, lasts) < lasts:
            assert seconds > SECONDS, "8 answers an hour are 12 days, in which one end without a mend is allowed"
            continue
        mended = AT + seconds * traffic.seq
        ends.append(traffic.until(good, traffic.mend))
        mend = traffic.mend()
        assert mend is not None
        assert mend.mean == pytest.approx(good, abs=0.1)
        begins.append((mend.since - mended) / seconds)
    assert len(ends) >= SEEDS - 1
    print(f"{good} -> {bad}: alarm after {fmean(delays):.0f}, end after {fmean(ends):.0f}")
    assert fmean(ends) <= max(at_most * fmean(delays), 45.0)
    assert abs(fmean(begins)) < 0.4 * fmean(ends)


@pytest.mark.costly
@pytest.mark.parametrize(("bad", "later"), [(0.8, 0.8), (0.4, 0.65), (0.7, 0.3)])
def test_a_break_that_is_not_mended_has_no_end(bad: float, later: float) -> None:
    """Nor one that is mended in part, or gets worse. The budget allows an end in 30 days; this is one in all."""
    for seed in range(SEEDS // 2):
        traffic = Traffic(0.9, seed)
        traffic.alarm(bad)
        traffic.until(bad, traffic.mend, 150)
        assert traffic.until(later, traffic.mend, 2500) == 2500


@pytest.mark.slow
@pytest.mark.parametrize("bad", [0.4, 0.7, 0.8, 0.85])
def test_false_ends_keep_to_the_budget(bad: float) -> None:
    """60 breaks of 10 hours without a mend are 25 days, in which the budget allows 1 end; and 2 for the estimates."""
    ends = 0
    for seed in range(60):
        traffic = Traffic(0.9, 1000 + seed)
        traffic.alarm(bad)
        ends += traffic.until(bad, traffic.mend, 10_000) < 10_000
    assert ends <= 3


@pytest.mark.costly
def test_a_quantity_that_should_be_low_and_scores_that_stand_for_others() -> None:
    """The mean is told as it is, and a sampled route ends its alarms too."""
    low = Traffic(0.95, 1, Quantity.CONTRADICTION)
    low.alarm(0.5)
    low.until(0.95, low.mend)
    mend = low.mend()
    assert mend is not None
    assert mend.mean < 0.15
    heavy = Traffic(0.95, 1)
    heavy.rules = replace(RULES, lowest={"search": 0.1})
    heavy.stream = heavy._fresh(Quantity.FAITHFULNESS)
    heavy.until(0.95, lambda: False, 2000, weight=10.0)
    heavy.until(0.3, lambda: heavy.stream.alarm, weight=10.0)
    assert heavy.until(0.95, heavy.mend, 300, weight=10.0) < 100


@pytest.mark.costly
async def test_the_end_is_told_once_and_another_break_is_another_alarm(store: SqliteStore) -> None:
    """As an event and a run, with the time of the mend; the evidence restarts, against the same baseline."""
    settle(store, [*faithful(400, 60), *[True] * 5])
    await stepped(store)
    assert a_drift(store).gauges()[Gauge.DRIFT_ALARM, CELL] == 1.0
    settle(store, [True] * 60, 465)
    loop = await stepped(store)
    assert loop.gauges()[Gauge.DRIFT_ALARM, CELL] == 0.0
    ended, alarm = store.runs(KIND, "faithfulness/search", 9)
    assert (ended.failing, alarm.failing, ended.body["seq"]) == (False, True, alarm.body["seq"])
    assert ended.body["since"] == pytest.approx(AT + MINUTE * 460, abs=5 * MINUTE)
    (event,) = store.events(0.0)
    assert event.detail.startswith("faithfulness/search: back since ")
    assert event.detail.endswith(f" UTC, {ended.body['answers']} answers at {ended.body['mean']:.2f}")
    await stepped(store)
    assert len(store.events(0.0)) == 1
    await watch_answers(loop, store, faithful(0, 60), 540)
    assert [run.failing for run in store.runs(KIND, "faithfulness/search", 9)] == [True, False, True]


ANSWERS = [*faithful(320, 60), *[True] * 80]
KILLED_RULES = DriftRules(
    JUDGE, "scripted-1", (Quantity.FAITHFULNESS, Quantity.TOP_RANKED_IGNORED), ("search", "other"), reference=250
)


def left_behind(store: SqliteStore) -> tuple[Any, ...]:
    """Everything that a later process, or a page, could see.

    Of the stage that a run names only the name: its share is that of the answers that were read until it was recorded,
    and these are as many as were waiting.
    """
    runs = [
        replace(run, body={**run.body, "changed_stage": (run.body.get("changed_stage") or {}).get("stage")})
        for quantity in KILLED_RULES.quantities
        for run in store.runs(KIND, f"{quantity}/search", 10)
    ]
    alarms = {cell: value for cell, value in store.tallies().items() if cell[0] is Tally.DRIFT_ALARMS}
    return runs, alarms, store.recall(KIND), a_drift(store, KILLED_RULES).gauges(), store.events(0.0)


def after_a_kill(store: SqliteStore, folder: Path, instants: int | None) -> SqliteStore:
    """The store that the next process opens, after one that dies at so many writes of its step, or never."""
    fate = Fate()
    store.engine._writer = MortalConnection(store.engine._writer, fate)  # type: ignore[assignment]
    fate.left = instants
    with suppress(KilledError):
        a_drift(store, KILLED_RULES)._step()
    store.close()
    return SqliteStore(folder)


@cache
def uninterrupted() -> tuple[Any, ...]:
    """What one life leaves behind."""
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder))
        settle(store, ANSWERS)
        a_drift(store, KILLED_RULES)._step()
        traces = left_behind(store)
        store.close()
    ends_and_alarms = [
        (f"{quantity}/search", failing) for quantity in KILLED_RULES.quantities for failing in (False, True)
    ]
    assert [(run.name, run.failing) for run in traces[0]] == ends_and_alarms
    return traces


@pytest.mark.costly
@settings(max_examples=draws(4))
@given(st.lists(st.tuples(st.integers(1, 90), st.none() | st.integers(0, 11)), max_size=12))
def test_a_kill_changes_nothing(lives: Sequence[tuple[int, int | None]]) -> None:
    """Some answers come, and the process dies at some write, or never; in the end all is as in one life."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        store, done = SqliteStore(folder), 0
        for size, instants in (*lives, (len(ANSWERS), None)):
            settle(store, ANSWERS[done : done + size], done)
            done = min(done + size, len(ANSWERS))
            store = after_a_kill(store, folder, instants)
        assert left_behind(store) == uninterrupted()
        store.close()


@pytest.mark.costly
@pytest.mark.parametrize(
    "instants", [range(0, 20, 3), pytest.param(range(20), marks=pytest.mark.slow)], ids=["some", "all"]
)
@pytest.mark.parametrize("acknowledged", [False, True])
def test_a_kill_between_alarm_and_record_is_made_up_for(tmp_path: Path, instants: range, *, acknowledged: bool) -> None:
    """At each instant of the step that raises the alarm: one run, one count, after one more life.

    Who acknowledges as soon as a killed process is back loses no alarm either.
    """
    settled = SqliteStore(tmp_path / "settled")
    settle(settled, ANSWERS)
    settled.close()
    for instant in instants:
        folder = shutil.copytree(tmp_path / "settled", tmp_path / str(instant))
        store = after_a_kill(SqliteStore(folder), folder, instant)
        life = a_drift(store, KILLED_RULES)
        if acknowledged:
            life._settle(None, None, renew=False)
        life._step()
        parts = 2 if acknowledged else None  # of what is left behind: runs and counts
        assert left_behind(store)[:parts] == uninterrupted()[:parts], instant
        store.close()
