"""A Snapshot as JSON: what workers share is what the leader has computed, to the last digit."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from types import MappingProxyType

import pytest
from support.snapshots import estimate, large, small

from ragwatch.core.estimators.correlation import Correlation
from ragwatch.core.feedback import JudgeCorrelation, UserScoreRow, UserScores
from ragwatch.core.labels.annotators import AnnotatorShares, WithoutAnnotator
from ragwatch.core.snapshot import EstimateRow, Gauge, Lag, SegmentRow, Snapshot
from ragwatch.core.tally import Tally
from ragwatch.model.quantities import Quantity, quantity_of
from ragwatch.pipeline.shared_snapshot import STATE, SharedSnapshot, snapshot_of, to_record
from ragwatch.stores.sqlite.store import SqliteStore


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
