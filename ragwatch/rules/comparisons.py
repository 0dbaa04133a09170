"""Recording rules that compare a window with thresholds.

They are evaluated in the group of their window, so that no alert waits for a further group.
"""

from __future__ import annotations

from collections.abc import Iterator

from ragwatch.model.quantities import LOW_IS_GOOD
from ragwatch.rules.level import LABELS, level
from ragwatch.rules.plan import RulePlan
from ragwatch.rules.promql import matching, span
from ragwatch.rules.record import RecordingRule

_MEAN = "route:ragwatch_quality:mean"
_SAMPLES = "route:ragwatch_quality:effective_samples"


def comparisons(plan: RulePlan) -> Iterator[RecordingRule]:
    """The rules of the group of `plan.window`.

    Thresholds by route, levels, and the distance of the whole interval of the level beyond its threshold.
    """
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
