"""Recording rules that compare a window with thresholds and with drift baselines.

They are evaluated in the group of their window, so that no alert waits for a further group.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil

from ragwatch.model.quantities import LOW_IS_GOOD, Quantity
from ragwatch.rules.level import LABELS, level
from ragwatch.rules.plan import RulePlan
from ragwatch.rules.promql import matching, pick, span
from ragwatch.rules.record import RecordingRule

_MEAN, _LOW, _HIGH = (f"route:ragwatch_quality:{figure}" for figure in ("mean", "low", "high"))
_SAMPLES = "route:ragwatch_quality:effective_samples"
_CELL = "job, route, quantity"


def comparisons(plan: RulePlan) -> Iterator[RecordingRule]:
    """The rules of the group of `plan.window`."""
    yield from _shortfalls(plan)
    watched = [quantity for quantity in plan.drift_quantities if not quantity.row.own_alert]
    if watched:
        yield RecordingRule("route:ragwatch_quality:drift", _beyond_baseline(plan, watched, _HIGH, _LOW))
        yield RecordingRule("route:ragwatch_quality:drift_mean", _beyond_baseline(plan, watched, _MEAN, _MEAN))


def _shortfalls(plan: RulePlan) -> Iterator[RecordingRule]:
    """Thresholds by route, levels, and the distance of the whole interval of the level beyond its threshold."""
    for quantity, route, threshold in plan.limits_by_route:
        about = {"quantity": str(quantity)}
        chosen = {**about, "judge": plan.judge, "window": span(plan.window)}
        mean, enough = (matching(name, route, **chosen) for name in (_MEAN, _SAMPLES))
        value, low, high = (level(plan, quantity, route, end) for end in ("", "_low", "_high"))
        beyond = f"{low} - {threshold:g}" if quantity in LOW_IS_GOOD else f"{threshold:g} - {high}"
        yield RecordingRule("route:ragwatch_quality:threshold", f"0 * {mean} + {threshold:g}", about)
        yield RecordingRule("route:ragwatch_quality:level", value, about)
        yield RecordingRule(
            "route:ragwatch_quality:shortfall",
            f"{beyond}\n  and on ({LABELS}) {enough} >= {plan.limits.samples}",
            about,
        )


def _beyond_baseline(plan: RulePlan, watched: Sequence[Quantity], upper: str, lower: str) -> str:
    """Distance beyond the drift baseline, which has its tolerance in it: of the confidence interval, or of the mean.

    A route with few answers in the window is compared over the next longer one.

    Args:
        plan: Names the windows and the judge.
        watched: Quantities.
        upper: Series that is compared where high is good.
        lower: Series that is compared where low is good.
    """
    longer = plan.windows[min(plan.windows.index(plan.window) + 1, len(plan.windows) - 1)]
    least = ceil(plan.limits.samples / 3)
    rising = [quantity for quantity in watched if quantity in LOW_IS_GOOD]
    falling = [quantity for quantity in watched if quantity not in LOW_IS_GOOD]
    parts = []
    for seconds in (plan.window, longer):
        chosen = {"judge": plan.watcher, "window": span(seconds)}
        enough = f"{pick(_SAMPLES, **chosen)} >= {least}"
        for quantities, sides in ((falling, (1, upper)), (rising, (-1, lower))):
            if quantities:
                named = f'quantity=~"{"|".join(quantities)}"'
                baseline = f"max by ({_CELL}) (ragwatch_drift_baseline_ratio{{{named}}})"
                limit = matching(sides[1], named, **chosen)
                beyond = f"({baseline} - on ({_CELL}) group_right () {limit})"
                signed = beyond if sides[0] > 0 else f"-1 * {beyond}"
                parts.append(f"({signed} and on ({_CELL}) {enough})")
    return "max by (job, route, judge, quantity) (\n  " + f"\n  or on ({_CELL}) ".join(parts) + "\n)"
