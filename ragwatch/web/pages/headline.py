"""What the overview says first: the worst state, active alarms, and the route and stage that broke."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ragwatch.model.stages import Stage
from ragwatch.statistics.snapshot import EstimateRow, Gauge, Snapshot
from ragwatch.web.replies.figure_replies import Alarm, RouteFigures

STATES = ("bad", "unsure", "good", "plain")  # the worst first
_HEADLINES = {
    "bad": "Quality is worse than a threshold",
    "unsure": "Inconclusive: the interval of a level includes its threshold",
    "good": "Quality meets its thresholds",
    "plain": "No thresholds are configured",
    "silent": "No data yet",
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


def overall(routes: Sequence[RouteFigures], alarms: Sequence[Alarm]) -> tuple[str, str]:
    """The worst state of all figures, and a headline that names the route and the stage at fault in the window.

    An alarm about answers is as bad as a threshold, any other leaves it open. What is not compared with its threshold
    because levels are not calibrated is not called good.
    """
    figures = [figure for route in routes for judge in route["judges"] for figure in judge["figures"]]
    states = {figure["state"] for figure in figures}
    uncalibrated = any(figure["state"] == "plain" and figure["threshold"] is not None for figure in figures)
    drifted = any(alarm["kind"] == "answers" for alarm in alarms)
    if drifted or "bad" in states:
        headline = "Answer quality has drifted" if drifted else _HEADLINES["bad"]
        more = ", and is worse than a threshold" if drifted and "bad" in states else ""
        return "bad", f"{headline}{more}{_broken_stage(routes)}"
    if alarms:
        return "unsure", "A judge or the traffic has drifted"
    state = next((state for state in STATES if state in states), "silent")
    if uncalibrated and state in ("good", "plain"):
        return "plain", "Not calibrated yet: label answers to compare levels with thresholds"
    return state, _HEADLINES[state]


def _broken_stage(routes: Iterable[RouteFigures]) -> str:
    """The stage at fault in most answers of the routes that are bad, beyond its usual share."""
    rises = [
        (part["share"] - (part["usual"] or 0.0), part["stage"], route["route"])
        for route in routes
        if route["state"] == "bad"
        for part in route["stages"]
        if part["stage"] != Stage.NONE
    ]
    rise, stage, route = max(rises, default=(0.0, "", ""))
    return f": {stage} on {route}" if rise > 0.0 else ""


def state_of(level: EstimateRow | None, threshold: float | None, *, lower_is_better: bool) -> str:
    """`bad` and `good` only when the whole interval of the level lies on that side of the threshold, as for pages.

    `plain` where nothing is compared: without a threshold, without a level, and where people's labels have not made the
    interval narrow yet and it includes the threshold.
    """
    if threshold is None or level is None:
        return "plain"
    low, high = level.estimate.low, level.estimate.high
    if lower_is_better:
        low, high, threshold = -high, -low, -threshold
    if high < threshold:
        return "bad"
    return "good" if low >= threshold else "unsure" if level.calibrated else "plain"
