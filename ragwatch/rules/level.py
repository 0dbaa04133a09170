"""The level of a quantity in PromQL: in people's terms, with an interval that contains the judge's own error."""

from __future__ import annotations

from ragwatch.model.quantities import Quantity
from ragwatch.rules.plan import RulePlan
from ragwatch.rules.promql import matching

LABELS = "job, cluster, namespace, route, judge"
LOOKBACK = "5m"
"""A missed scrape, or a restart, leaves no gap that is shorter."""


def level(plan: RulePlan, quantity: Quantity, route: str, end: str) -> str:
    """Builds the level of a quantity, or an end of its interval: of several replicas the widest interval.

    Args:
        plan: Names the judge and the window.
        quantity: The quantity.
        route: Matcher of the label `route`; empty for all routes.
        end: Empty for the value, else `_low` or `_high`.
    """
    chosen = {"judge": plan.judge, "window": plan.level_window, "corrected": "yes"}
    gauge = matching(f"ragwatch_{quantity}_ratio{end}", route, **chosen)
    over = {"": "avg", "_low": "min", "_high": "max"}[end]
    return f"{over} by ({LABELS}) (last_over_time({gauge}[{LOOKBACK}]))"
