"""Defines the thresholds, objectives, windows and links that rules are built from, independent of the YAML format.

Burn rates are those of multiwindow alerts on an error budget (Google SRE Workbook, chapter 5). The error budget is
1 - objective over 30 days. A mean error of `factor` budgets burns the given share of it within the long window; the
short window resolves the alert soon after the error ends. The windows are longer than those of the Workbook, because
sampled judging yields few scores in five minutes.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import ceil, floor
from types import MappingProxyType
from typing import Literal

from ragwatch.model.quantities import Quantity
from ragwatch.model.signals import Signal

PERIOD = 30 * 86400.0


@dataclass(frozen=True, slots=True)
class BurnRate:
    """One burn rate."""

    long: float  # long window in seconds, in which the share `budget` of the 30-day error budget burns
    short: float  # short window in seconds, which must burn at the same rate
    budget: float
    severity: Literal["critical", "warning"]

    @property
    def factor(self) -> float:
        """Burn rate: mean error / budget that burns the share within the long window.

        >>> round(BurnRate(3600.0, 900.0, 0.02, "critical").factor, 9)
        14.4
        """
        return self.budget * PERIOD / self.long


BURNS = (
    BurnRate(3600.0, 900.0, 0.02, "critical"),
    BurnRate(21600.0, 3600.0, 0.05, "critical"),
    BurnRate(86400.0, 21600.0, 0.10, "warning"),
    BurnRate(259200.0, 21600.0, 0.10, "warning"),
)


def impossible(objective: float, burn: BurnRate) -> str | None:
    """Explains why a burn-rate alert could never fire, and what to configure instead; None if it can.

    >>> impossible(0.95, BURNS[0]) is None
    True
    >>> impossible(0.9, BURNS[0])
    'can never fire: 14.4 times a budget of 0.1 is a mean error of 1.44; raise the objective above 0.9306, or lower \
the share of the budget of that pair below 0.0138'
    """
    error = burn.factor * (1.0 - objective)
    if error < 1.0:
        return None
    least = ceil((1.0 - 1.0 / burn.factor) * 1e4) / 1e4
    most = floor(burn.long / (PERIOD * (1.0 - objective)) * 1e4) / 1e4
    return (
        f"can never fire: {burn.factor:.4g} times a budget of {1.0 - objective:.4g} is a mean error of {error:.4g}; "
        f"raise the objective above {least:.4f}, or lower the share of the budget of that pair below {most:.4f}"
    )


WINDOWS = (900.0, 3600.0, 21600.0, 86400.0, 259200.0)
RISES: Mapping[Signal, float] = MappingProxyType(
    {signal: signal.row.rise for signal in Signal if signal.row.rise is not None}
)
RouteLimits = Mapping[str, Mapping[Quantity, float | None]]


@dataclass(frozen=True, slots=True)
class Links:
    """Base URLs of the links in an alert, without a trailing slash."""

    runbooks: str | None  # folder of the runbooks; None omits the links, because a dead link costs time
    dashboards: str | None  # Grafana; None omits the links
    # ragwatch pages, as users reach them; None omits the links: nobody else can open a loopback address
    pages: str | None


@dataclass(frozen=True, slots=True)
class Limits:
    """Thresholds of the alerts on causes: the keys of `alerts` in the configuration, described there. In seconds."""

    samples: int = 30
    hold: float = 300.0
    coverage: float = 0.8
    stale: float = 21600.0
    silent: float = 3600.0
    lag: float = 900.0
    rejects: float = 0.05
    canaries: float = 3600.0
    failures: float = 0.5
    budget: float = 0.1
    unquoted: float = 0.2
    fooled: float = 0.05
    free: int = 512 << 20
    degraded: float = 0.5
    canary_answers: float = 0.2
    canary_answers_floor: float = 0.5


@dataclass(frozen=True, slots=True)
class RulePlan:
    """Everything that the rules are built from."""

    judge: str  # judge whose scores may page
    job: str  # value of the label `job` under which Prometheus scrapes ragwatch
    links: Links  # base URLs of the links in alerts
    # worst acceptable mean, by quantity
    thresholds: Mapping[Quantity, float] = field(default_factory=lambda: MappingProxyType({}))
    # by route: thresholds that take precedence; None for no threshold on that route
    route_thresholds: RouteLimits = field(default_factory=lambda: MappingProxyType({}))
    # mean, 0 to 1, to be met over 30 days, by quantity; 1 - mean for quantities where lower is better
    objectives: Mapping[Quantity, float] = field(default_factory=lambda: MappingProxyType({}))
    # by route: objectives that take precedence; None for no objective on that route
    route_objectives: RouteLimits = field(default_factory=lambda: MappingProxyType({}))
    drift_judge: str | None = None  # judge whose scores are watched for drift; None for `judge`
    # quantities that are watched for drift
    drift_quantities: tuple[Quantity, ...] = tuple(
        quantity for quantity in Quantity if quantity.row.drift and not quantity.row.own_alert
    )
    # routes that are compared with a control instead of a baseline; their drift is a ticket, not a page
    controlled: tuple[str, ...] = ()
    # severity by name of the alert, instead of the default
    severity: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    burns: tuple[BurnRate, ...] = BURNS  # burn rates of the error budget 1 - objective that raise an alert
    # windows of the recording rules in seconds, ascending. The first is for sudden changes, the last is what texts
    # compare with
    windows: tuple[float, ...] = WINDOWS
    window: float = 3600.0  # the window of the threshold alerts, one of `windows`
    level_window: str = "1h"  # name of the window of the levels that thresholds and objectives are compared with
    # seconds for which the condition of an alert must be gone before it ends (`keep_firing_for`): missed scrapes and a
    # restart are no end
    kept: float = 300.0
    confidence: float = 0.95  # two-sided level of the intervals
    # longest time between two runs in seconds, for canary suites that run less than twice within `limits.canaries`
    rare: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    limits: Limits = Limits()  # thresholds of the alerts on causes
    # by signal of traffic: rise of the share of answers that have it above its reference that pages
    rises: Mapping[Signal, float] = field(default_factory=lambda: RISES)
    segments: bool = False  # whether estimates are split by segment
    criteria: tuple[Quantity, ...] = ()  # quantities beside those of ragwatch

    @property
    def watcher(self) -> str:
        """The judge whose scores are watched for drift."""
        return self.drift_judge or self.judge

    def threshold(self, quantity: Quantity, route: str) -> float | None:
        """Worst acceptable mean of a quantity on a route; None for none."""
        own = self.route_thresholds.get(route, {})
        return own[quantity] if quantity in own else self.thresholds.get(quantity)

    @property
    def limits_by_route(self) -> Iterator[tuple[Quantity, str, float]]:
        """Every threshold as quantity, matcher of the label `route`, and value."""
        yield from by_route(self.thresholds, self.route_thresholds)

    @property
    def objectives_by_route(self) -> Iterator[tuple[Quantity, str, float]]:
        """Every objective as quantity, matcher of the label `route`, and value."""
        yield from by_route(self.objectives, self.route_objectives)


def by_route(everywhere: Mapping[Quantity, float], routes: RouteLimits) -> Iterator[tuple[Quantity, str, float]]:
    """Every limit as quantity, matcher of the label `route` (empty for all routes), and value."""
    named = {quantity for limits in routes.values() for quantity in limits}
    for quantity in dict.fromkeys((*everywhere, *(one for one in Quantity if one in named), *sorted(named))):
        own = [route for route, limits in routes.items() if quantity in limits]
        if quantity in everywhere:
            others = "|".join(re.escape(route).replace("\\", "\\\\") for route in own)
            yield quantity, f'route!~"{others}"' if own else "", everywhere[quantity]
        for route in own:
            limit = routes[route][quantity]
            if limit is not None:
                yield quantity, f'route="{route}"', limit
