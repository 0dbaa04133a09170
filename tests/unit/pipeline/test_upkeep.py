"""Retention, files that cannot be read, and the stored snapshot."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest
from structlog.testing import LogCapture
from support.kit import AT, Clock, ListSource, a_draw, a_verdict, an_admission
from support.loops import an_intake
from support.snapshots import estimate, large, small

from ragwatch.errors import StoreError
from ragwatch.model.quantities import Quantity, quantity_of
from ragwatch.pipeline.retention import RetentionLoop
from ragwatch.pipeline.shared_snapshot import STATE, SharedSnapshot, snapshot_of, to_record
from ragwatch.pipeline.unreadable_files import SETTLE_SECONDS, UnreadableFiles
from ragwatch.ports import Query, Retention
from ragwatch.statistics.estimators.corrected import AnnotatorShares, WithoutAnnotator
from ragwatch.statistics.feedback import Correlation, JudgeCorrelation, UserScoreRow, UserScores
from ragwatch.statistics.snapshot import EstimateRow, Gauge, Lag, SegmentRow, Snapshot
from ragwatch.statistics.tally import Tally
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry


async def test_old_verdicts_go(store: SqliteStore, telemetry: Telemetry, log: LogCapture) -> None:
    """The first step takes what is too old and says how many; the second finds nothing to do."""
    old, new = a_draw("old", at=AT - 2 * 86400), a_draw("new")
    store.admit(an_admission(old, new))
    store.settle([a_verdict(old), a_verdict(new)])
    keeping = RetentionLoop(Retention(1, 1, 1 << 40), store=store, telemetry=telemetry, clock=Clock())
    assert [await keeping.step(), await keeping.step()] == [True, False]
    assert [row.verdict.id for row in store.find(Query())] == ["new"]
    assert [(entry["event"], entry["verdicts"]) for entry in log.entries] == [("verdicts pruned", 1)]


@pytest.mark.parametrize("restarts", [False, True])
async def test_a_clock_that_leaps_is_not_believed_at_once(
    store: SqliteStore, telemetry: Telemetry, *, restarts: bool
) -> None:
    """Forty days ahead for a moment takes nothing; at the second step in a row what is too old goes.

    So it does on a machine that is asleep for days between all steps, or that starts ragwatch anew for each.
    """
    clock, days = Clock(), {0: False, 40: False, 1: False, 41: False, 41.1: True, 50: False, 60: True}
    keeping = RetentionLoop(Retention(30, 30, 1 << 40), store=store, telemetry=telemetry, clock=clock)
    for day, gone in days.items():
        draw = a_draw(str(day))
        store.admit(an_admission(draw))
        store.settle([a_verdict(draw)])
        clock.now = AT + day * 86400
        if restarts:
            keeping = RetentionLoop(Retention(30, 30, 1 << 40), store=store, telemetry=telemetry, clock=clock)
        assert await keeping.step() is gone


async def test_doubt_ends_where_nothing_can_be_written(store: SqliteStore, telemetry: Telemetry) -> None:
    """On a full disk forgetting is what helps: it is tried again at the second step, whatever could be noted."""
    clock = Clock()
    keeping = RetentionLoop(Retention(1, 1, 1 << 40), store=store, telemetry=telemetry, clock=clock)
    await keeping.step()
    draw = a_draw()
    store.admit(an_admission(draw))
    store.settle([a_verdict(draw)])
    with pytest.MonkeyPatch.context() as patch:

        def full(*_: object) -> None:
            raise StoreError("the disk is full")

        patch.setattr(store, "remember", full)
        for _ in range(2):
            clock.now += 2 * 86400
            with pytest.raises(StoreError):
                await keeping.step()
    assert store.find(Query()) == []


DENIED, SICK = {"a": "Permission denied"}, {"a": "Input/output error"}


def told(log: LogCapture) -> list[tuple[str, Any]]:
    """What the log says of files, and of which."""
    return [(entry["event"], entry["first"]) for entry in log.entries]


def test_once_for_each_change(telemetry: Telemetry, log: LogCapture) -> None:
    """A file that stays closed is told once; another reason and another file are news, and so is that it is well."""
    unreadable = UnreadableFiles("app", telemetry)
    for at, failing in enumerate([{}, DENIED, DENIED, SICK, SICK | {"b": "gone"}, {"b": "gone"}]):
        unreadable.update(failing, AT + at)
    assert told(log) == [("files cannot be read", reasons) for reasons in (DENIED, SICK, {"b": "gone"})]
    unreadable.update({}, AT + 5 + SETTLE_SECONDS)
    unreadable.update({}, AT + 6 + SETTLE_SECONDS)
    assert told(log)[3:] == [("files no longer unreadable", ["a", "b"])]


def test_what_comes_and_goes_is_told_once(telemetry: Telemetry, log: LogCapture) -> None:
    """A sick disk opens a file on each scan, and fails where it is read."""
    unreadable = UnreadableFiles("app", telemetry)
    for at in range(500):
        unreadable.update(SICK if at % 2 else {}, AT + at)
    assert told(log) == [("files cannot be read", SICK)]


async def test_intake_tells_while_others_are_read(store: SqliteStore, telemetry: Telemetry, log: LogCapture) -> None:
    """Nothing fails, so that no step says so: the lag does, and the log."""
    source = ListSource([])
    source.lag = lambda: Lag(0, 0.0, DENIED)  # type: ignore[method-assign]
    intake = an_intake(store, source=source, telemetry=telemetry)
    assert [await intake.step(), await intake.step()] == [False, False]
    assert told(log) == [("files cannot be read", DENIED)]


def full() -> Snapshot:
    """A Snapshot with a value in every field."""
    shares = AnnotatorShares(
        2, (WithoutAnnotator("ada", 3, None), WithoutAnnotator("bob", 2, estimate(0.4))), "ada", 0.1
    )
    row = EstimateRow(Quantity.CONTEXT_PRECISION, "other", "claude", "1d", estimate(1 / 3), corrected=True)
    row = replace(row, best=0.5, labels=3, labels_given=5, annotators=shares)
    return replace(
        small(),
        corrected=(row,),
        shares={"claude": 0.1},
        budgets={"claude": 0.9},
        lags={"app": Lag(1, 2.0, {"x": "denied"}, 1, ("sick",), "all", 7)},
        user_scores=UserScores(
            (UserScoreRow("search", "1h", estimate(0.7)),),
            (JudgeCorrelation("claude", Quantity.FAITHFULNESS, Correlation(0.1, -0.2, math.inf, 9)),),
            MappingProxyType({"search": 1.0}),
        ),
        gauges={(Gauge.DRIFT_ALARM, ("faithfulness", "search")): 1.0, (Gauge.STATE_FREE, ()): 5.0},
        problems=("a", "b"),
        segments=(SegmentRow(quantity_of("polite"), "tier", "free", "search", "claude", "1h", estimate(0.2)),),
        segment_last={("polite", "tier", "free", "search", "claude"): 7.0},
        exported=Counter({(Tally.SEEN, ("app",)): 3}),
    )


@pytest.mark.parametrize("snapshot", [Snapshot(at=1.5), small(), full(), large(3)])
def test_what_is_written_reads_back_as_it_was(snapshot: Snapshot) -> None:
    """Every field, through JSON."""
    assert snapshot_of(json.loads(json.dumps(to_record(snapshot)))) == snapshot


@pytest.mark.parametrize("record", [None, {}, [], [1.0], "x", to_record(Lag(None, None))])
def test_what_another_version_has_stored_is_refused(record: object) -> None:
    """With a ValueError, which makes a worker compute its own figures."""
    with pytest.raises(ValueError, match=r"."):
        snapshot_of(record)


def test_workers_share_all_but_what_is_their_own(store: SqliteStore) -> None:
    """Lags, probabilities and counters of the leader are not shown by others; nothing is, before there is a leader."""
    shared = SharedSnapshot(store, lambda: True, Counter)
    assert shared.latest() is None
    shared.save(full())
    assert shared.latest() == replace(full(), lags={}, probabilities={}, exported=None)
    store.remember(STATE, {"snapshot": [7]})
    assert shared.latest() is None
