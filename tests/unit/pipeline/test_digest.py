"""Digest: the rows, counts and queues of the store become one Snapshot, and evidence becomes peaks."""

from collections.abc import Sequence
from typing import Any

import pytest
from support.kit import AT, JUDGE, Clock, a_draw, a_reading, a_verdict, an_admission, an_unjudged
from support.loops import a_digest

from ragwatch.board import Board
from ragwatch.errors import StoreError
from ragwatch.pipeline import digest as module
from ragwatch.pipeline.digest import DigestInputs, PeakRecorder
from ragwatch.ports import Peak, Store
from ragwatch.statistics.snapshot import Gauge, Lag, Snapshot
from ragwatch.statistics.trends import SPANS, TrendKind, start_of
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import EventCount

INPUTS = DigestInputs(
    lags=lambda: {"app": Lag(7, 1.5)}, probabilities=lambda: {"search": 0.1}, problems=lambda: ("source app: gone",)
)


def settle(store: Store, *names: str, version: str = "scripted-1", at: float = AT) -> None:
    """Admit and settle some good draws."""
    draws = [a_draw(name, at=at) for name in names]
    store.admit(an_admission(*draws))
    store.settle([a_verdict(draw, reading=a_reading(version=version)) for draw in draws])


def shown(board: Board) -> Snapshot:
    """The Snapshot that hangs."""
    snapshot = board.latest()
    assert snapshot is not None
    return snapshot


async def test_of_nothing(store: SqliteStore) -> None:
    """Before the first verdict a Snapshot hangs that says nothing of quality, and no zero."""
    board = Board()
    assert await a_digest(store, board, inputs=INPUTS).step() is False
    snapshot = shown(board)
    assert (snapshot.at, snapshot.estimates, snapshot.coverage) == (AT, (), {})
    assert (snapshot.last_sample, snapshot.exemplars) == ({}, {})
    assert (snapshot.tallies, snapshot.pending, snapshot.probabilities) == ({}, {}, {"search": 0.1})
    assert (snapshot.lags, snapshot.judges) == ({"app": Lag(7, 1.5)}, {JUDGE: ("scripted", "scripted-1")})
    assert snapshot.problems == ("source app: gone",)


async def test_news_come_once(store: SqliteStore) -> None:
    """Each step reads what came since the last one, and adds nothing twice."""
    board, clock = Board(), Clock()
    digest = a_digest(store, board, clock)
    settle(store, "a", "b")
    assert [await digest.step(), await digest.step()] == [True, False]
    settle(store, "c")
    draw = a_draw("d")
    store.admit(an_admission(draw, a_draw("e")))
    store.settle([an_unjudged(draw)])
    assert await digest.step() is True
    snapshot = shown(board)
    assert {row.estimate.n for row in snapshot.estimates} == {3}
    assert (snapshot.coverage, snapshot.pending) == ({("search", JUDGE, "1h"): 0.75}, {JUDGE: 1})
    assert (snapshot.tallies, snapshot.last_sample["faithfulness", "search", JUDGE]) == (store.tallies(), AT)


async def test_a_restart_gives_the_same_figures(store: SqliteStore) -> None:
    """Everything shown comes from the store: a new process shows what the old one showed."""
    boards = Board(), Board()
    old = a_digest(store, boards[0], Clock())
    for name in "abc":
        settle(store, name)
        await old.step()
    await a_digest(store, boards[1], Clock()).step()
    assert boards[0].latest() == boards[1].latest()


async def test_old_rows_leave_and_are_not_read_again(store: SqliteStore) -> None:
    """When its window is over an answer is gone from the estimates, and the last sample's time stays known."""
    board, clock = Board(), Clock()
    digest = a_digest(store, board, clock)
    settle(store, "a", version="scripted-0")
    settle(store, "b")
    await digest.step()
    clock.now += 7200
    assert await digest.step() is False
    snapshot = shown(board)
    assert (snapshot.estimates, snapshot.coverage) == ((), {})
    assert snapshot.last_sample["faithfulness", "search", JUDGE] == AT


async def test_a_clock_that_was_ahead_hides_no_silence(store: SqliteStore) -> None:
    """Our clock, or that of the service, was a year ahead: once it is right the newest answer is no newer than now."""
    board, clock = Board(), Clock(AT + 365 * 86400.0)
    digest = a_digest(store, board, clock)
    settle(store, "ahead", at=clock.now)
    told = []
    for now in (clock.now, AT, AT + 7200.0):
        clock.now = now
        await digest.step()
        snapshot = shown(board)
        exemplars = {one.at for labels, one in snapshot.exemplars.items() if labels[0] == "faithfulness"}
        told.append((snapshot.last_sample["faithfulness", "search", JUDGE], exemplars))
    assert told == [(AT + 365 * 86400.0, {AT + 365 * 86400.0}), (AT, {AT}), (AT, {AT})]
    settle(store, "later", at=AT + 7100.0)
    await digest.step()
    assert shown(board).last_sample["faithfulness", "search", JUDGE] == AT + 7100.0


async def test_more_rows_than_one_read_takes(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backlog is caught up in one step, in pieces."""
    monkeypatch.setattr(module, "ROWS", 2)
    board = Board()
    settle(store, *"abcde")
    await a_digest(store, board, Clock()).step()
    assert {row.estimate.n for row in shown(board).estimates} == {5}


async def test_books_that_do_not_balance_are_counted_and_told(store: SqliteStore) -> None:
    """A draw that vanished from the queue unsettled is a violation at every digest, and a reason not to be ready."""
    store.admit(an_admission(a_draw("a"), a_draw("b")))
    board, clock = Board(), Clock()
    digest = a_digest(store, board, clock)
    store.engine._writer.execute("DELETE FROM work WHERE key = (SELECT key FROM work LIMIT 1)")
    await digest.step()
    await digest.step()
    snapshot = shown(board)
    figures = f"judge {JUDGE}: 2 assigned, 0 judged + 0 unjudged + 1 pending"
    assert f"invariant violated: {figures}" in snapshot.problems
    assert digest._telemetry.counts()[EventCount.VIOLATIONS, ("assigned_are_settled_or_pending",)] == 2


async def test_a_clock_that_was_ahead_loses_nothing(store: SqliteStore) -> None:
    """A month ahead for one digest, as after a wrong step: the answers of the last hour are there again, once each."""
    board, clock = Board(), Clock()
    digest = a_digest(store, board, clock)
    settle(store, "a", "b")
    await digest.step()
    before = shown(board)
    clock.now = AT + 30 * 86400.0
    await digest.step()
    clock.now = AT
    await digest.step()
    after = shown(board)
    assert before.estimates
    assert (after.estimates, after.coverage) == (before.estimates, before.coverage)


BUCKET = start_of(AT, 3600)


class Kept:
    """A store that keeps peaks in memory, or fails, and what records into it."""

    def __init__(self) -> None:
        self.peaks: list[Peak] = []
        self.is_full = False
        self.recorder: Any = PeakRecorder(self)  # type: ignore[arg-type]

    def add_peaks(self, peaks: Sequence[Peak]) -> None:
        """Keep them."""
        if self.is_full:
            raise StoreError("state: the disk is full")
        self.peaks += peaks


def evidence_of(value: float, **others: Any) -> dict[Any, float]:
    """Gauges of one detector."""
    labels = ("faithfulness", "search")
    return {(Gauge.DRIFT_EVIDENCE, labels): value, (Gauge.DRIFT_THRESHOLD, labels): 270.0, **others}


def test_a_bucket_begins_with_a_peak_and_few_steps_write_more() -> None:
    """Evidence that falls, hardly rises, or stays below 1 writes nothing; the next bucket begins anew."""
    store = Kept()
    for seconds, value in ((0, 1e-5), (5, 0.5), (10, 2.0), (15, 2.1), (20, 3.0), (25, 0.1), (300, 0.1)):
        store.recorder.take(BUCKET + seconds, evidence_of(value))
    fine = [(peak.start - BUCKET, peak.value) for peak in store.peaks if peak.span == SPANS[0]]
    assert fine == [(0, 1e-5), (0, 2.0), (0, 3.0), (300, 0.1)]
    assert [peak.value for peak in store.peaks if peak.span == SPANS[1]] == [1e-5, 2.0, 3.0]
    assert {peak.threshold for peak in store.peaks} == {270.0}


def test_a_store_that_cannot_be_written_is_tried_again() -> None:
    """A chart may have a gap, but the digest goes on."""
    store = Kept()
    store.is_full = True
    store.recorder.take(BUCKET, evidence_of(5.0))
    store.is_full = False
    store.recorder.take(BUCKET + 5, evidence_of(4.0))
    assert [peak.value for peak in store.peaks] == [4.0, 4.0]


def test_other_gauges_are_no_evidence() -> None:
    """Traffic has its own kind; a threshold that is not known is None."""
    store = Kept()
    store.recorder.take(
        BUCKET, {(Gauge.TRAFFIC_DRIFT_EVIDENCE, ("contexts", "search")): 2.0, (Gauge.STATE_FREE, ()): 9.0}
    )
    assert {(peak.series.kind, peak.threshold) for peak in store.peaks} == {(TrendKind.TRAFFIC_DRIFT, None)}
