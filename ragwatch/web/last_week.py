"""Compares the judge's means of a window with those of a week ago, for the overview and the page of a route."""

from __future__ import annotations

from ragwatch.core.compare import Interval, change
from ragwatch.core.estimate import Addends
from ragwatch.core.snapshot import EstimateRow
from ragwatch.core.trends import COARSE, DAY, HOUR, TrendKind, estimate_of, start_of
from ragwatch.errors import StoreError
from ragwatch.ports import Store, TrendQuery
from ragwatch.web.figure_replies import Difference
from ragwatch.web.overview import NO_CHANGES, Changes, window_of
from ragwatch.web.pages import Site
from ragwatch.web.samples import span_of

WEEK = 7 * DAY


def changes_since_last_week(site: Site, requested: str | None) -> Changes:
    """Returns the means of a window less those of the same hours a week ago, where there were answers then.

    Only scores by the version of the judge in force are compared. A store that cannot be read says nothing.
    """
    snapshot, scope = site.board.latest(), site.scope()
    if site.store is None or snapshot is None:
        return NO_CHANGES
    window = window_of(snapshot, scope, requested)
    end = site.clock() - WEEK
    since, until = start_of(end - (span_of(window) or HOUR), COARSE), start_of(end, COARSE) + COARSE
    rows = [row for row in snapshot.estimates if row.window == window]
    versions = {judge: version for judge, (_, version) in snapshot.judges.items()}
    changes: dict[tuple[str, str, str], Difference] = {}
    try:
        for route in sorted({row.route for row in rows}):
            before = _sums(site.store, route, since, until, versions)
            for row in rows:
                sums = before.get((str(row.quantity), row.judge), Addends())
                if row.route == route and (moved := _change(sums, row, scope.confidence)) is not None:
                    changes[str(row.quantity), route, row.judge] = moved
    except StoreError:
        return NO_CHANGES
    return changes


def _sums(store: Store, route: str, since: int, until: int, versions: dict[str, str]) -> dict[tuple[str, str], Addends]:
    """Sums of the scores of some hours, by quantity and judge."""
    sums: dict[tuple[str, str], Addends] = {}
    query = TrendQuery(TrendKind.SCORE, route, COARSE, COARSE, since=since, until=until)
    for series, _, addends in store.trends(query):
        if series.version == versions.get(series.judge):
            place = series.name, series.judge
            sums[place] = sums.get(place, Addends()) + addends
    return sums


def _change(before: Addends, row: EstimateRow, confidence: float) -> Difference | None:
    then, latest = estimate_of(before, confidence), row.estimate
    if then is None:
        return None
    moved = change(Interval(then.value, then.low, then.high), Interval(latest.value, latest.low, latest.high))
    return {"value": moved.value, "low": moved.low, "high": moved.high}
