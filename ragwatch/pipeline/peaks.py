"""Stores how high the evidence of the drift detectors was, by bucket of time, for charts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from ragwatch.core.snapshot import Gauge, Gauges
from ragwatch.core.trends import SPANS, TrendKey, TrendKind, start_of
from ragwatch.errors import StoreError
from ragwatch.ports import Peak, TrendStore

RISE = 1.1  # by which factor evidence must exceed what is stored to be stored again, so that few steps write
_EVIDENCE = {
    Gauge.DRIFT_EVIDENCE: (TrendKind.DRIFT, Gauge.DRIFT_THRESHOLD),
    Gauge.TRAFFIC_DRIFT_EVIDENCE: (TrendKind.TRAFFIC_DRIFT, Gauge.TRAFFIC_DRIFT_THRESHOLD),
}


class PeakRecorder:
    """Stores the first evidence of a bucket, and higher evidence within it.

    Args:
        store: Keeps the peaks. While it cannot be written, charts have gaps, and nothing else is affected.
    """

    def __init__(self, store: TrendStore) -> None:
        self._store = store
        self._stored: dict[tuple[TrendKey, int], tuple[int, float]] = {}  # start and value, by series and span

    def take(self, now: float, gauges: Gauges) -> None:
        """Store the evidence of an instant where it is a peak."""
        peaks = [peak for peak in peaks_of(now, gauges) if self._is_higher(peak)]
        if peaks:
            with suppress(StoreError):  # a full disk; the next step tries again
                self._store.add_peaks(peaks)
                self._stored.update({(peak.series, peak.span): (peak.start, peak.value) for peak in peaks})

    def _is_higher(self, peak: Peak) -> bool:
        start, value = self._stored.get((peak.series, peak.span), (None, 0.0))
        return start != peak.start or peak.value > max(RISE * value, 1.0)


def peaks_of(now: float, gauges: Gauges) -> Iterator[Peak]:
    """Yield the evidence of an instant as peaks of its buckets."""
    for (gauge, labels), value in gauges.items():
        if gauge in _EVIDENCE:
            kind, threshold = _EVIDENCE[gauge]
            name, route = labels
            series = TrendKey(kind, route, name)
            for span in SPANS:
                yield Peak(series, span, start_of(now, span), value, gauges.get((threshold, labels)))
