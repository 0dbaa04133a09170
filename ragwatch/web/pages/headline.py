"""The headline of the overview: the worst state of all figures, in a sentence that names what broke, and where."""

from collections.abc import Iterable, Sequence

from ragwatch.model.stages import Stage
from ragwatch.statistics.snapshot import Gauge, Snapshot
from ragwatch.web.pages.figure_replies import Alarm, RouteFigures

STATES = ("bad", "unsure", "good", "plain")  # the worst first
_HEADLINES = {
    "bad": "Quality is worse than a threshold",
    "unsure": "Inconclusive: the interval of a level includes its threshold",
    "good": "Quality meets its thresholds",
    "plain": "No thresholds are configured",
    "silent": "No data yet",
}


def overall(routes: Sequence[RouteFigures], alarms: Sequence[Alarm], snapshot: Snapshot) -> tuple[str, str]:
    """The worst state of all figures, and a headline that names the route and the stage at fault.

    An alarm about answers is as bad as a threshold, any other leaves it open. What is not compared with its threshold
    because levels are not calibrated is not called good.
    """
    figures = [figure for route in routes for judge in route["judges"] for figure in judge["figures"]]
    states = {figure["state"] for figure in figures}
    uncalibrated = any(figure["state"] == "plain" and figure["threshold"] is not None for figure in figures)
    drifted = any(alarm["kind"] == "answers" for alarm in alarms)
    if drifted or "bad" in states:
        more = ", and is worse than a threshold" if "bad" in states else ""
        said = f"Answer quality has drifted{more}" if drifted else _HEADLINES["bad"]
        return "bad", f"{said}{_broken_stage(routes, snapshot)}"
    if alarms:
        return "unsure", "A judge or the traffic has drifted"
    state = next((state for state in STATES if state in states), "silent")
    if uncalibrated and state in ("good", "plain"):
        drift = {gauge for gauge, _ in snapshot.gauges} & {Gauge.BAND_MEAN, Gauge.DRIFT_EVIDENCE}
        learning = "; drift is learning its baselines, and raises no alarm yet" if drift == {Gauge.BAND_MEAN} else ""
        return "plain", f"Not calibrated yet: label answers to compare levels with thresholds{learning}"
    return state, _HEADLINES[state]


def _broken_stage(routes: Iterable[RouteFigures], snapshot: Snapshot) -> str:
    """The stage that rose most on the routes that are bad: in their newest answers, or else in the window.

    Texts of alerts name that of the newest answers; a window may hold an earlier incident.
    """
    bad = {route["route"]: route["stages"] for route in routes if route["state"] == "bad"}
    changed = {labels: share for (gauge, labels), share in snapshot.gauges.items() if gauge is Gauge.STAGE_CHANGED}
    rises = [
        (share - changed[route, stage, "before"], stage, route)
        for (route, stage, period), share in changed.items()
        if period == "since" and route in bad
    ]
    for _, _, route in rises:
        bad.pop(route, None)
    rises += [
        (part["share"] - (part["usual"] or 0.0), part["stage"], route)
        for route, stages in bad.items()
        for part in stages
        if part["stage"] != Stage.NONE
    ]
    rise, stage, route = max(rises, default=(0.0, "", ""))
    return f": {stage} on {route}" if rise > 0.0 else ""
