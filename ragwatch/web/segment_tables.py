"""Builds the tables of segments on the page of a route: estimates by value of a metadata key."""

from __future__ import annotations

from collections.abc import Sequence

from ragwatch.core.sample import OTHER
from ragwatch.core.snapshot import SegmentRow, Snapshot
from ragwatch.model.quantities import LOW_IS_GOOD
from ragwatch.web.scope import PageScope


def segment_tables(
    snapshot: Snapshot, scope: PageScope, *, route: str, judge: str, window: str
) -> list[dict[str, object]]:
    """Builds a table for each segment that has estimates: a row for each quantity and value, in the configured order.

    A row is `bad` if its whole interval lies on the wrong side of the threshold of the route.

    Args:
        snapshot: The latest.
        scope: Names in the configuration.
        route: The route.
        judge: The judge of the figures.
        window: The selected window.
    """
    by_segment: dict[str, list[SegmentRow]] = {}
    for row in snapshot.segments:
        if (row.route, row.judge, row.window) == (route, judge, window):
            by_segment.setdefault(row.segment, []).append(row)
    return [
        {"segment": segment, "rows": _rows(by_segment[segment], (*values, OTHER), scope)}
        for segment, values in scope.segments.items()
        if segment in by_segment
    ]


def _rows(rows: Sequence[SegmentRow], values: Sequence[str], scope: PageScope) -> list[dict[str, object]]:
    places = {value: place for place, value in enumerate(values)}
    quantities = list(dict.fromkeys(row.quantity for row in rows))
    ordered = sorted(rows, key=lambda row: (quantities.index(row.quantity), places.get(row.value, len(places))))
    return [_row(row, scope.threshold(str(row.quantity), row.route)) for row in ordered]


def _row(row: SegmentRow, threshold: float | None) -> dict[str, object]:
    estimate = row.estimate
    bad = threshold is not None and (
        estimate.low > threshold if row.quantity in LOW_IS_GOOD else estimate.high < threshold
    )
    return {
        "quantity": str(row.quantity),
        "value": row.value,
        "mean": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "n": estimate.n,
        "threshold": threshold,
        "bad": bad,
    }
