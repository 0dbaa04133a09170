"""Builds the data of the overview page from a Snapshot: its headline, the figures of routes, judges and sources."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType

from ragwatch import __version__
from ragwatch.model.estimate import Estimate
from ragwatch.model.quantities import LOW_IS_GOOD, Quantity, is_worse, quantity_of
from ragwatch.model.quantity_row import UnknownReason
from ragwatch.model.sample import OTHER
from ragwatch.model.stages import Stage
from ragwatch.statistics.estimators.interval import CountedInterval
from ragwatch.statistics.snapshot import EstimateRow, Gauge, Snapshot
from ragwatch.statistics.tally import PartOutcome, Tally, lines_read
from ragwatch.web.json_values import chosen
from ragwatch.web.pages import figure_replies
from ragwatch.web.pages.figure_replies import (
    Alarm,
    Bounded,
    Difference,
    FailingAnswer,
    Figure,
    Interval,
    JudgeCounts,
    JudgeFigures,
    Level,
    RouteFigures,
    SourceLine,
    StageShare,
    UserScore,
)
from ragwatch.web.pages.headline import STATES, overall
from ragwatch.web.scope import PageScope

Changes = Mapping[tuple[str, str, str], Difference]
"""By quantity, route and judge: the mean of a window less that of the same hours a week ago."""
NO_CHANGES: Changes = MappingProxyType({})
_MAX_FILES = 5  # unreadable files to list: an unreadable folder may have thousands


@dataclass(frozen=True, slots=True)
class _OverviewBuilder:
    """A Snapshot with the page scope, the time and the selected window."""

    snapshot: Snapshot
    scope: PageScope
    now: float
    window: str
    changes: Changes

    def count(self, tally: Tally, *labels: str) -> float:
        return self.snapshot.tallies.get((tally, labels), 0)

    def counts(self, tally: Tally, *labels: str) -> dict[str, float]:
        """Counts by the last label, for the given values of the labels before it; largest first."""
        counts = {
            names[-1]: value
            for (counted, names), value in self.snapshot.tallies.items()
            if counted is tally and names[:-1] == labels and value
        }
        return _largest_first(counts)


def _largest_first(counts: Mapping[str, float]) -> dict[str, float]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def windows_of(snapshot: Snapshot | None, scope: PageScope) -> tuple[str, ...]:
    """Windows to select from: the configured ones, or else those with an estimate."""
    if scope.windows or snapshot is None:
        return scope.windows
    return tuple(dict.fromkeys(row.window for row in snapshot.estimates))


def overview(
    snapshot: Snapshot | None,
    scope: PageScope,
    *,
    now: float,
    window: str | None = None,
    problems: Iterable[str] = (),
    failing: Sequence[FailingAnswer] = (),
    changes: Changes = NO_CHANGES,
) -> figure_replies.Snapshot:
    """Builds the data of the page; no window selects the shortest with an estimate."""
    shown = snapshot or Snapshot(at=now)
    builder = _OverviewBuilder(shown, scope, now, window_of(snapshot, scope, window), changes)
    routes = [_route(builder, route) for route in routes_of(shown, scope)]
    states = [figure["state"] for route in routes for judge in route["judges"] for figure in judge["figures"]]
    alarms = active_alarms(shown)
    state, headline = overall(routes, alarms, shown)
    return {
        "version": __version__,
        "at": None if snapshot is None else snapshot.at,
        "now": now,
        "window": builder.window,
        "windows": list(windows_of(snapshot, scope)),
        "state": state,
        "headline": headline,
        "drift": alarms,
        "bad": states.count("bad"),
        "unsure": states.count("unsure"),
        "judged_figures": sum(state in ("bad", "unsure", "good") for state in states),
        "problems": list(dict.fromkeys((*problems, *shown.problems))),
        "routes": routes,
        "sources": [_source(builder, source) for source in _names(scope.sources, shown.lags)],
        "judges": [_judge(builder, judge) for judge in _names(scope.judges, shown.judges)],
        "failing": failing,
        "unpaged": list(scope.unpaged),
        "segments": list(scope.segments),
    }


def _names(configured: Iterable[str], seen: Iterable[str]) -> list[str]:
    return list(dict.fromkeys((*configured, *seen)))


def window_of(snapshot: Snapshot | None, scope: PageScope, requested: str | None) -> str:
    """The requested window, or else the shortest with an estimate. Raises ParameterError: it is not configured."""
    windows = windows_of(snapshot, scope)
    if requested and windows:
        return chosen("window", requested, windows)
    with_estimates = set() if snapshot is None else {row.window for row in snapshot.estimates}
    return next((window for window in windows if window in with_estimates), windows[0] if windows else "")


def routes_of(snapshot: Snapshot, scope: PageScope) -> list[str]:
    """Configured routes; `other` only if it has traffic or no route is configured."""
    other = snapshot.tallies.get((Tally.DRAWN, (OTHER,)), 0) or not scope.routes
    return [*scope.routes, OTHER] if other and OTHER not in scope.routes else list(scope.routes)


def _route(builder: _OverviewBuilder, route: str) -> RouteFigures:
    first, *others = _names(builder.scope.judges, builder.snapshot.judges) or [""]
    with_estimates = {row.judge for row in builder.snapshot.estimates if row.route == route}
    judges = [
        _figures_of(builder, route, judge)
        for judge in (first, *others)
        if judge and (judge == first or judge in with_estimates)
    ]
    states = [figure["state"] for judge in judges for figure in judge["figures"]]
    place = "answers", route
    drift = [alarm["name"] for alarm in active_alarms(builder.snapshot) if (alarm["kind"], alarm["route"]) == place]
    state = next((state for state in STATES if state in states), "silent")
    return {
        "route": route,
        "state": "bad" if drift else state,
        "threshold_state": state,
        "drift": drift,
        "drawn": builder.count(Tally.DRAWN, route),
        "probability": builder.snapshot.probabilities.get(route),
        "stages": _stages(builder, route, first),
        "judges": judges,
        "user_score": _user_score(builder, route),
    }


def interval_of(estimate: Estimate | CountedInterval) -> Interval:
    """A mean with its interval."""
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high, "n": estimate.n}


def _bounded(estimate: Estimate) -> Bounded:
    return {
        **interval_of(estimate),
        "bound_low": estimate.bound_low,
        "bound_high": estimate.bound_high,
        "n_eff": estimate.n_eff,
    }


def _user_score(builder: _OverviewBuilder, route: str) -> UserScore | None:
    """Mean score by users of the rated answers; `response` is the share that was rated. None without feedback."""
    for row in builder.snapshot.user_scores.rows:
        if (row.route, row.window) == (route, builder.window):
            return {
                **_bounded(row.estimate),
                "response": row.estimate.coverage,
                "last_sample_at": builder.snapshot.user_scores.last_sample.get(route),
            }
    return None


def _stages(builder: _OverviewBuilder, route: str, judge: str) -> list[StageShare]:
    """Shares of the judged answers of the window by stage at fault, with the offset of each in a stacked bar."""
    counts = [(stage, builder.snapshot.stages.get((route, judge, builder.window, str(stage)), 0)) for stage in Stage]
    total = sum(count for _, count in counts)
    stages: list[StageShare] = []
    start = 0.0
    for stage, count in counts:
        if count:
            share, usual = count / total, builder.snapshot.gauges.get((Gauge.STAGE_BASELINE, (route, str(stage))))
            stages.append({"stage": str(stage), "count": count, "share": share, "start": start, "usual": usual})
            start += share
    return stages


def _figures_of(builder: _OverviewBuilder, route: str, judge: str) -> JudgeFigures:
    rows = {
        row.quantity: row
        for row in builder.snapshot.estimates
        if (row.route, row.judge, row.window) == (route, judge, builder.window)
    }
    quantities = (*Quantity, *map(quantity_of, builder.scope.criteria))
    figures = [_figure(builder, quantity, route, judge, rows.get(quantity)) for quantity in quantities]
    return {
        "judge": judge,
        "why": None if rows else figures[0]["why"],
        "coverage": builder.snapshot.coverage.get((route, judge, builder.window)),
        "judged": builder.count(Tally.JUDGED, route, judge),
        "figures": figures,
    }


def _figure(builder: _OverviewBuilder, quantity: Quantity, route: str, judge: str, row: EstimateRow | None) -> Figure:
    lower_is_better, threshold = quantity in LOW_IS_GOOD, builder.scope.threshold(quantity, route)
    last = builder.snapshot.last_sample.get((quantity, route, judge))
    place = None if row is None else row.place
    levels = (one for one in builder.snapshot.corrected if one.place == place and not one.reference)
    level_row = next(levels, None)
    figure: Figure = {
        "quantity": str(quantity),
        "lower_is_better": lower_is_better,
        "threshold": threshold,
        "last_sample_at": last,
        "age_seconds": None if last is None else max(builder.now - last, 0.0),
        "state": "silent" if row is None else state_of(level_row, threshold),
        "why": _why(builder, quantity, route, judge) if row is None else None,
    }
    if row is None:
        return figure
    if row.unmeasured:
        figure["unmeasured"] = row.unmeasured
    return {
        **figure,
        **_bounded(row.estimate),
        "interval": row.estimate.interval,
        "corrected": None if level_row is None else _corrected(level_row),
        "change": builder.changes.get((str(quantity), route, judge)),
    }


def _corrected(level: EstimateRow) -> Level:
    figures: Level = {
        "value": level.estimate.value,
        "low": level.estimate.low,
        "high": level.estimate.high,
        "n": level.estimate.n,
        "labels": level.labels,
        "labels_given": level.labels_given,
        "calibrated": level.calibrated,
    }
    if (shares := level.annotators) is not None:
        figures |= {
            "annotators": shares.count,
            "stands_on": shares.stands_on,
            "greatest_change": shares.change,
            "without": [
                {
                    "annotator": one.annotator,
                    "labels": one.labels,
                    "value": None if one.estimate is None else one.estimate.value,
                    "low": None if one.estimate is None else one.estimate.low,
                    "high": None if one.estimate is None else one.estimate.high,
                }
                for one in shares.without
            ],
        }
    return figures


def _why(builder: _OverviewBuilder, quantity: Quantity, route: str, judge: str) -> str:
    """Reason why there is no estimate."""
    if builder.count(Tally.N, quantity, route, judge):
        return f"no answer in the last {builder.window}" if builder.window else "no recent answer"
    times = {reason: builder.count(Tally.UNKNOWN, quantity, route, judge, reason) for reason in UnknownReason}
    if any(times.values()):
        return max(times, key=times.__getitem__).text
    return "no answer judged yet" if builder.count(Tally.DRAWN, route) else "no answer sampled yet"


def _source(builder: _OverviewBuilder, source: str) -> SourceLine:
    lag, parts = builder.snapshot.lags.get(source), builder.counts(Tally.PARTS, source)
    lost = {f"{outcome} parts": number for outcome, number in parts.items() if outcome != PartOutcome.JOINED}
    return {
        "source": source,
        "seen": builder.count(Tally.SEEN, source),
        "rejected": builder.counts(Tally.REJECTED, source),
        "left_out": builder.counts(Tally.SKIPPED, source) | lost,
        "repaired": builder.count(Tally.REPAIRED, source),
        "resets": builder.counts(Tally.RESETS, source),
        "lag_bytes": None if lag is None else lag.size,
        "lag_records": None if lag is None else lag.records,
        "lag_seconds": None if lag is None else lag.seconds,
        "unreadable": {} if lag is None else dict(islice(lag.unreadable.items(), _MAX_FILES)),
        "skipped": lag.skipped if lag is not None and not lines_read(builder.snapshot.tallies, source) else "",
        "unreadable_files": None if lag is None else len(lag.unreadable),
    }


def _judge(builder: _OverviewBuilder, judge: str) -> JudgeCounts:
    kind, version = builder.snapshot.judges.get(judge, (None, None))
    judged, unjudged = 0.0, defaultdict[str, float](float)
    for (tally, labels), value in builder.snapshot.tallies.items():
        if tally is Tally.JUDGED and labels[1] == judge:
            judged += value
        elif tally is Tally.UNJUDGED and labels[1] == judge:
            unjudged[labels[2]] += value
    return {
        "judge": judge,
        "kind": kind,
        "version": version,
        "judged": judged,
        "unjudged": _largest_first(unjudged),
        "pending": builder.snapshot.pending.get(judge, 0),
        "user_correlations": {
            str(one.quantity): interval_of(one.correlation)
            for one in builder.snapshot.user_scores.correlations
            if one.judge == judge
        },
    }


def active_alarms(snapshot: Snapshot) -> list[Alarm]:
    """Returns the active drift alarms: of answers, of the traffic, of judges."""
    gauges = {Gauge.DRIFT_ALARM: "answers", Gauge.TRAFFIC_DRIFT_ALARM: "traffic", Gauge.JUDGE_DRIFT_ALARM: "judge"}
    active: list[Alarm] = [
        {"kind": kind, "name": labels[0], "route": labels[1] if len(labels) > 1 else ""}
        for gauge, kind in gauges.items()
        for (one, labels), value in snapshot.gauges.items()
        if one is gauge and value
    ]
    return sorted(active, key=lambda alarm: (alarm["kind"], alarm["name"], alarm["route"]))


def state_of(level: EstimateRow | None, threshold: float | None) -> str:
    """`bad` and `good` only when the whole interval of the level lies on that side of the threshold, as for pages.

    `plain` where nothing is compared: without a threshold, without a level, and where people's labels have not made the
    interval narrow yet and it includes the threshold.
    """
    if threshold is None or level is None:
        return "plain"
    low, high = level.estimate.low, level.estimate.high
    if is_worse(level.quantity, low, high, threshold):
        return "bad"
    includes = is_worse(level.quantity, high, low, threshold)  # the worse end alone
    return "good" if not includes else "unsure" if level.calibrated else "plain"
