"""Overview: one Snapshot as an on-call engineer reads it, as plain data. Pure: the present is an argument."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from ragwatch.core.sample import OTHER
from ragwatch.core.scores import LOW_IS_GOOD, Quantity, UnknownReason
from ragwatch.core.snapshot import EstimateRow, Snapshot
from ragwatch.core.stage import Stage
from ragwatch.core.tally import Tally
from ragwatch.web.scope import PageScope

_WHY = {
    UnknownReason.NO_CLAIMS: "the answers make no claims",
    UnknownReason.NO_CONTEXTS: "nothing was retrieved",
    UnknownReason.ABSTAINED: "the answers abstain",
    UnknownReason.NOT_READ: "this judge does not read it",
}
_HEADLINES = {
    "bad": "Quality is on the wrong side of a threshold",
    "unsure": "Too close to a threshold to tell",
    "good": "Quality is on the right side of its thresholds",
    "plain": "No thresholds are set",
    "silent": "Nothing is known yet",
}
_NAMED = 5  # of the files that cannot be read: a closed folder may hold thousands


@dataclass(frozen=True, slots=True)
class _OverviewBuilder:
    """A Snapshot beside its scope, with the window that is looked at."""

    snapshot: Snapshot
    scope: PageScope
    now: float
    window: str

    @property
    def default(self) -> str:
        """The judge whose word counts where only one can."""
        return next(iter(_names(self.scope.judges, self.snapshot.judges)), "")

    def count(self, tally: Tally, *labels: str) -> float:
        return self.snapshot.tallies.get((tally, labels), 0)

    def counts(self, tally: Tally, *labels: str) -> dict[str, float]:
        """Counts by the last label, where the ones before are these. Largest first."""
        found = {
            names[-1]: value
            for (counted, names), value in self.snapshot.tallies.items()
            if counted is tally and names[:-1] == labels and value
        }
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def windows_of(snapshot: Snapshot | None, scope: PageScope) -> tuple[str, ...]:
    """Windows that can be looked at: the configured ones, or else those that say something."""
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
    failing: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """All that the overview page shows.

    Args:
        snapshot: The latest, None before the first digest.
        scope: What configuration names.
        now: Seconds since the epoch.
        window: The one to look at; the shortest with an estimate when None or unknown.
        problems: What keeps us from being ready.
        failing: The newest failing samples.
    """
    shown = snapshot or Snapshot(at=now)
    windows = windows_of(snapshot, scope)
    read = _OverviewBuilder(shown, scope, now, _window(shown, windows, window))
    routes = [_route(read, route) for route in _routes(shown, scope)]
    states = [figure["state"] for route in routes for judge in route["judges"] for figure in judge["figures"]]
    state = next((each for each in ("bad", "unsure", "good", "plain") if each in states), "silent")
    return {
        "at": None if snapshot is None else snapshot.at,
        "now": now,
        "window": read.window,
        "windows": list(windows),
        "state": state,
        "headline": _HEADLINES[state],
        "bad": states.count("bad"),
        "unsure": states.count("unsure"),
        "judged_figures": sum(each in ("bad", "unsure", "good") for each in states),
        "problems": list(dict.fromkeys((*problems, *shown.problems))),
        "routes": routes,
        "sources": [_source(read, source) for source in _names(scope.sources, shown.lags)],
        "judges": [_judge(read, judge) for judge in _names(scope.judges, shown.judges)],
        "failing": [dict(each) for each in failing],
    }


def _names(configured: Iterable[str], seen: Iterable[str]) -> list[str]:
    return list(dict.fromkeys((*configured, *seen)))


def _window(snapshot: Snapshot, windows: Sequence[str], wanted: str | None) -> str:
    if wanted in windows:
        return str(wanted)
    telling = {row.window for row in snapshot.estimates}
    return next((window for window in windows if window in telling), windows[0] if windows else "")


def _routes(snapshot: Snapshot, scope: PageScope) -> list[str]:
    """Configured routes; `other` only once it has traffic, or when it is all there is."""
    other = snapshot.tallies.get((Tally.DRAWN, (OTHER,)), 0) or not scope.routes
    return [*scope.routes, OTHER] if other and OTHER not in scope.routes else list(scope.routes)


def _route(read: _OverviewBuilder, route: str) -> dict[str, Any]:
    first, *others = _names(read.scope.judges, read.snapshot.judges) or [""]
    heard = {row.judge for row in read.snapshot.estimates if row.route == route}
    judges = [_cohort(read, route, judge) for judge in (first, *others) if judge and (judge == first or judge in heard)]
    states = [figure["state"] for judge in judges for figure in judge["figures"]]
    return {
        "route": route,
        "state": next((each for each in ("bad", "unsure", "good", "plain") if each in states), "silent"),
        "drawn": read.count(Tally.DRAWN, route),
        "probability": read.snapshot.probabilities.get(route),
        "stages": _stages(read, route),
        "judges": judges,
    }


def _stages(read: _OverviewBuilder, route: str) -> list[dict[str, Any]]:
    """Shares of judged answers by the stage at fault, since the start, each with where its part of a bar begins."""
    counts = [(stage, read.count(Tally.STAGE, route, read.default, stage)) for stage in Stage]
    total = sum(count for _, count in counts)
    found, start = [], 0.0
    for stage, count in counts:
        if count:
            found.append({"stage": str(stage), "count": count, "share": count / total, "start": start})
            start += count / total
    return found


def _cohort(read: _OverviewBuilder, route: str, judge: str) -> dict[str, Any]:
    rows = {
        row.quantity: row
        for row in read.snapshot.estimates
        if (row.route, row.judge, row.window) == (route, judge, read.window)
    }
    figures = [_figure(read, quantity, route, judge, rows.get(quantity)) for quantity in Quantity]
    return {
        "judge": judge,
        "why": None if rows else figures[0]["why"],
        "coverage": read.snapshot.coverage.get((route, judge, read.window)),
        "judged": read.count(Tally.JUDGED, route, judge),
        "figures": figures,
    }


def _figure(
    read: _OverviewBuilder, quantity: Quantity, route: str, judge: str, row: EstimateRow | None
) -> dict[str, Any]:
    last = read.snapshot.last_sample.get((quantity, route, judge))
    figure: dict[str, Any] = {
        "quantity": str(quantity),
        "lower_is_better": quantity in LOW_IS_GOOD,
        "threshold": read.scope.thresholds.get(quantity),
        "last_sample_at": last,
        "age_seconds": None if last is None else max(read.now - last, 0.0),
    }
    if row is None:
        return figure | {"state": "silent", "why": _why(read, quantity, route, judge)}
    found = row.estimate
    return figure | {
        "state": _state(quantity, row, figure["threshold"]),
        "why": None,
        "value": found.value,
        "low": found.low,
        "high": found.high,
        "bound_low": found.bound_low,
        "bound_high": found.bound_high,
        "n": found.n,
        "n_eff": found.n_eff,
        "interval": found.interval,
    }


def _state(quantity: Quantity, row: EstimateRow, threshold: float | None) -> str:
    """`bad` and `good` only when the whole interval lies on that side of the threshold."""
    if threshold is None:
        return "plain"
    low, high = row.estimate.low, row.estimate.high
    if quantity in LOW_IS_GOOD:
        low, high, threshold = -high, -low, -threshold
    if high < threshold:
        return "bad"
    return "good" if low >= threshold else "unsure"


def _why(read: _OverviewBuilder, quantity: Quantity, route: str, judge: str) -> str:
    """Why there is no estimate, in words."""
    if read.count(Tally.N, quantity, route, judge):
        return f"no answer in the last {read.window}" if read.window else "no answer lately"
    times = {reason: read.count(Tally.UNKNOWN, quantity, route, judge, reason) for reason in UnknownReason}
    if any(times.values()):
        return _WHY[max(times, key=times.__getitem__)]
    if read.count(Tally.DRAWN, route):
        return "nothing judged yet"
    return "no answer drawn yet"


def _source(read: _OverviewBuilder, source: str) -> dict[str, Any]:
    lag = read.snapshot.lags.get(source)
    return {
        "source": source,
        "seen": read.count(Tally.SEEN, source),
        "rejected": read.counts(Tally.REJECTED, source),
        "repaired": read.count(Tally.REPAIRED, source),
        "resets": read.counts(Tally.RESETS, source),
        "lag_bytes": None if lag is None else lag.size,
        "lag_seconds": None if lag is None else lag.seconds,
        "unreadable": {} if lag is None else dict(islice(lag.unreadable.items(), _NAMED)),
        "skipped": lag.skipped if lag is not None and not read.count(Tally.SEEN, source) else "",
        "unreadable_files": None if lag is None else len(lag.unreadable),
    }


def _judge(read: _OverviewBuilder, judge: str) -> dict[str, Any]:
    kind, version = read.snapshot.judges.get(judge, (None, None))
    unjudged: defaultdict[str, float] = defaultdict(float)
    judged = 0.0
    for (tally, labels), value in read.snapshot.tallies.items():
        if tally is Tally.JUDGED and labels[1] == judge:
            judged += value
        elif tally is Tally.UNJUDGED and labels[1] == judge:
            unjudged[labels[2]] += value
    return {
        "judge": judge,
        "kind": kind,
        "version": version,
        "judged": judged,
        "unjudged": dict(sorted(unjudged.items(), key=lambda item: (-item[1], item[0]))),
        "pending": read.snapshot.pending.get(judge, 0),
    }
