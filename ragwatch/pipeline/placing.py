"""Where an answer belongs: its route and inclusion probability, and whether it is an answer to a canary."""

from __future__ import annotations

from collections.abc import Callable

from ragwatch.core.sample import OTHER, Sample
from ragwatch.core.sampling import SamplingPlan

MARK_ADVICE = "log the whole X-Ragwatch-Canary as metadata.canary; until then these answers count as traffic"
_NOT_CANARY = frozenset({"", "-", "0", "false", "no", "none", "null"})


def placing(plan: SamplingPlan, factor: float = 1.0) -> Callable[[Sample], tuple[str, float]]:
    """A function from a sample to its route (as a label value) and its inclusion probability times `factor`."""
    routes = {route: (route, factor * plan.probability_of(route)) for route in plan.known_routes}
    other = (OTHER, factor * plan.probability_of(OTHER))
    if plan.stratum is None:
        return lambda sample: routes.get(sample.route, other)

    def by_stratum(sample: Sample) -> tuple[str, float]:
        route = plan.label(sample.route)
        return route, factor * plan.probability_of(route, sample.metadata.get(str(plan.stratum)))

    return by_stratum


def names_canary(value: object) -> bool:
    """Whether the value under `CANARY` marks an answer to one of our canaries.

    A service that logs the header of every request logs null, "" or "-" for requests of its users, and one with canary
    releases may log false there. Without this check, all of its traffic would be left out.

    >>> [names_canary(value) for value in ("refunds", True, None, "", "-", "None", False)]
    [True, True, False, False, False, False, False]
    """
    return value.strip().lower() not in _NOT_CANARY if isinstance(value, str) else bool(value)
