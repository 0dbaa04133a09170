"""Peaks of drift evidence: stored when a bucket begins and when evidence rises, and never instead of a digest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from support.kit import AT

from ragwatch.core.snapshot import Gauge
from ragwatch.core.trends import SPANS, TrendKind, start_of
from ragwatch.errors import StoreError
from ragwatch.pipeline.digest import PeakRecorder
from ragwatch.ports import Peak

START = start_of(AT, 3600)


class Kept:
    """A store that keeps peaks in memory, or fails."""

    def __init__(self) -> None:
        self.peaks: list[Peak] = []
        self.is_full = False

    def add_peaks(self, peaks: Sequence[Peak]) -> None:
        """Keep them."""
        if self.is_full:
            raise StoreError("state: the disk is full")
        self.peaks += peaks


def evidence(value: float, **others: Any) -> dict[Any, float]:
    """Gauges of one detector."""
    labels = ("faithfulness", "search")
    return {(Gauge.DRIFT_EVIDENCE, labels): value, (Gauge.DRIFT_THRESHOLD, labels): 270.0, **others}


def test_a_bucket_begins_with_a_peak_and_few_steps_write_more() -> None:
    """Evidence that falls, hardly rises, or stays below 1 writes nothing; the next bucket begins anew."""
    store = Kept()
    recorder: Any = PeakRecorder(store)  # type: ignore[arg-type]
    for seconds, value in ((0, 1e-5), (5, 0.5), (10, 2.0), (15, 2.1), (20, 3.0), (25, 0.1), (300, 0.1)):
        recorder.take(START + seconds, evidence(value))
    fine = [(peak.start - START, peak.value) for peak in store.peaks if peak.span == SPANS[0]]
    assert fine == [(0, 1e-5), (0, 2.0), (0, 3.0), (300, 0.1)]
    assert [peak.value for peak in store.peaks if peak.span == SPANS[1]] == [1e-5, 2.0, 3.0]
    assert {peak.threshold for peak in store.peaks} == {270.0}


def test_a_store_that_cannot_be_written_is_tried_again() -> None:
    """A chart may have a gap, but the digest goes on."""
    store = Kept()
    store.is_full = True
    recorder: Any = PeakRecorder(store)  # type: ignore[arg-type]
    recorder.take(START, evidence(5.0))
    store.is_full = False
    recorder.take(START + 5, evidence(4.0))
    assert [peak.value for peak in store.peaks] == [4.0, 4.0]


def test_other_gauges_are_no_evidence() -> None:
    """Traffic has its own kind; a threshold that is not known is None."""
    store = Kept()
    recorder: Any = PeakRecorder(store)  # type: ignore[arg-type]
    recorder.take(START, {(Gauge.TRAFFIC_DRIFT_EVIDENCE, ("contexts", "search")): 2.0, (Gauge.STATE_FREE, ()): 9.0})
    assert {(peak.series.kind, peak.threshold) for peak in store.peaks} == {(TrendKind.TRAFFIC_DRIFT, None)}
