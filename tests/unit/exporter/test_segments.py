"""Series of segments: exact values, allowed pairs only, and as many as `ragwatch check` says."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.snapshots import AT, estimate, small

from ragwatch.core.segments import Segments, series_of_segments
from ragwatch.core.snapshot import SegmentRow, Snapshot
from ragwatch.core.tally import Tally
from ragwatch.exporter import AllowedLabels
from ragwatch.exporter.families import of_snapshot
from ragwatch.model.quantities import Quantity

SEGMENTS = Segments({"release": ("v1",), "tier": ("free", "paid")})
WINDOWS = ("15m", "1h")
ROUTES = ("search", "other")
NAMES = AllowedLabels(sources=["app"], routes=["search"], judges=["embedded"], segments=SEGMENTS)


def a_row(segment: str, value: str, **parts: str) -> SegmentRow:
    """An estimate of faithfulness of a segment."""
    names = {"route": "search", "judge": "embedded", "window": "1h"} | parts
    return SegmentRow(Quantity.FAITHFULNESS, segment, value, estimate=estimate(0.6), **names)


def exported(snapshot: Snapshot, names: AllowedLabels = NAMES) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Values of all series of segments."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in of_snapshot(snapshot, names)
        for sample in family.samples
        if sample.name.startswith("ragwatch_segment")
    }


def test_values_and_allowed_pairs() -> None:
    """An estimate is five gauges beside its time; a value of another key, or of no key, is not exported."""
    rows = (a_row("release", "v1"), a_row("release", "free"), a_row("team", "x"), a_row("tier", "s3cr3t"))
    snapshot = replace(
        small(), segments=rows, segment_last={("faithfulness", "release", "v1", "search", "embedded"): AT}
    )
    snapshot.tallies[Tally.SEGMENT_WX, ("faithfulness", "release", "v1", "search", "embedded")] = 2.5
    snapshot.tallies[Tally.SEGMENT_WX, ("faithfulness", "release", "free", "search", "embedded")] = 7
    values = exported(snapshot)
    gauges = {name: value for (name, _), value in values.items() if not name.endswith("_total")}
    assert gauges == pytest.approx(
        {
            "ragwatch_segment_ratio": 0.6,
            "ragwatch_segment_ratio_low": 0.55,
            "ragwatch_segment_ratio_high": 0.65,
            "ragwatch_segment_samples": 40,
            "ragwatch_segment_effective_samples": 36.0,
            "ragwatch_segment_last_sample_timestamp_seconds": AT,
        }
    )
    sums = [value for (name, _), value in values.items() if name == "ragwatch_segment_weighted_score_total" and value]
    assert sums == [2.5]
    assert not exported(replace(snapshot, segments=()), AllowedLabels(sources=[], routes=[], judges=["embedded"]))


def test_as_many_series_as_stated() -> None:
    """With every value seen, the number of series is the one that is stated before the start."""
    places = [(q, *pair, route) for q in Quantity for pair in sorted(SEGMENTS.pairs) for route in ROUTES]
    rows = tuple(SegmentRow(*place, "embedded", window, estimate()) for place in places for window in WINDOWS)
    last = {(str(quantity), *place, "embedded"): AT for quantity, *place in places}
    snapshot = replace(small(), segments=rows, segment_last=last)
    stated = series_of_segments(5, 2, quantities=len(Quantity), windows=len(WINDOWS), cohorts=len(ROUTES))
    assert len(exported(snapshot)) == stated
