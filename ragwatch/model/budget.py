"""Enforces spending caps, and lowers sampling probabilities so that a judge stays within its caps.

A cap is never exceeded, because the maximum cost of a call is reserved before it. With caps alone, a day's budget would
be spent on the answers of the morning; so probabilities fall while there is budget left, for all draws alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil, exp, expm1

MIN_FACTOR = 1 / 1024
HORIZON = 6
"""The rest of a cap must last for 1 / HORIZON of its span. If demand exceeds the cap, spending converges to 6/7 of the
cap, where f r = (C - f r S) / (S / 6) with factor f, rate r, span S and cap C."""
BURST = 1.25
"""Maximum spending rate, as a multiple of the mean rate of a cap. Without this limit, a demand of ten times the cap
spends three quarters of the first day's budget in the first quarter of the day, and the day's estimate has a tenth of
the effective sample size that the same budget could buy (0.7 with the limit)."""
RATE_SECONDS = 600.0
PRICE_SECONDS = 86400.0
MIN_READINGS = 20


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of calls, in US dollars and in input and output tokens."""

    usd: float = 0.0
    tokens: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.usd + other.usd, self.tokens + other.tokens)


@dataclass(frozen=True, slots=True)
class SpendingCap:
    """Maximum spending within any span of `seconds`, in US dollars and in tokens; None for no limit."""

    seconds: float
    usd: float | None = None
    tokens: int | None = None


def fits(cap: SpendingCap, spent: Cost, worst: Cost) -> bool:
    """Returns whether a call with a maximum cost of `worst` fits into the cap, given what its span has `spent`."""
    return all(used + more <= limit for limit, used, more in _limits(cap, spent, worst))


def remaining(caps: Sequence[SpendingCap], spent: Sequence[Cost]) -> float:
    """Returns the least share of the budget, 0 to 1, that is left of a cap, given what its span has `spent`."""
    shares = [
        max(0.0, (limit - used) / limit) if limit else 0.0
        for cap, total in zip(caps, spent, strict=True)
        for limit, used, _ in _limits(cap, total, Cost())
    ]
    return min(1.0, *shares) if shares else 1.0


def pacing_factor(
    caps: Sequence[SpendingCap], spent: Sequence[Cost], *, unit_cost: Cost, waiting: float, rate: float
) -> float:
    """Returns the factor, in (0, 1], by which a judge's sampling probability is multiplied so that its budget lasts.

    For each cap, the factor is at most (left - waiting * unit_cost) / (span / HORIZON * rate * unit_cost): what waiting
    draws leave, divided by the cost of the draws of a sixth of the span; and at most BURST * cap / (span * rate *
    unit_cost), slightly above the constant factor that uses the cap exactly. It is never 0, because an estimate covers
    only answers that can be drawn. `unit_cost` is the expected cost of a reading, `rate` that of draws per second at
    factor 1.
    """
    factor = 1.0
    for cap, total in zip(caps, spent, strict=True):
        for limit, used, cost in _limits(cap, total, unit_cost):
            free, demand = limit - used - waiting * cost, cap.seconds * rate * cost
            if free <= 0.0:
                return MIN_FACTOR
            if demand > 0.0:
                factor = min(factor, HORIZON * free / demand, BURST * limit / demand)
    return max(MIN_FACTOR, factor)


def _limits(cap: SpendingCap, first: Cost, second: Cost) -> Iterator[tuple[float, float, float]]:
    """Yields (limit, first, second) in dollars and in tokens, for each limit of the cap."""
    if cap.usd is not None:
        yield cap.usd, first.usd, second.usd
    if cap.tokens is not None:
        yield cap.tokens, first.tokens, second.tokens


@dataclass(slots=True)
class DecayingRate:
    """Rate of events, whose counts are weighted by exp(-age / seconds) and divided by the weight of the time."""

    seconds: float = RATE_SECONDS
    _count: float = 0.0
    _since: float | None = None
    _at: float = 0.0

    def add(self, count: float, now: float) -> None:
        """Adds the number of events since the last call. The first call only starts the clock."""
        if self._since is None:
            self._since = self._at = now
            return
        self._count = self._count * exp(-max(0.0, now - self._at) / self.seconds) + count
        self._at = max(self._at, now)

    @property
    def per_second(self) -> float | None:
        """Events per second at the last call of `add`; None before any time has passed."""
        elapsed = 0.0 if self._since is None else self._at - self._since
        return self._count / (self.seconds * -expm1(-elapsed / self.seconds)) if elapsed > 0.0 else None


@dataclass(slots=True)
class SpendingForecast:
    """Estimates the demand for a judge and the cost of a reading, and computes its pacing factor."""

    # start of the span whose spending the next `update` expects; None before the first update. It advances once a day,
    # so that the cost of a reading is a recent one
    since: float | None = None
    unit_cost: Cost | None = None  # mean cost of a reading; None before the first reading
    _arrivals: DecayingRate = field(default_factory=DecayingRate)
    _assigned: float = 0.0
    _settled: float = 0.0

    def update(self, now: float, *, assigned: float, settled: float, spent: Cost, factor: float) -> None:
        """Updates the estimates from counters: draws assigned to the judge, and read by it, in total.

        `spent` is the spending since `since`, in which calls in flight count with their maximum cost; `factor` is the
        pacing factor since the last update.
        """
        first = self.since is None
        self._arrivals.add(0.0 if first else (assigned - self._assigned) / factor, now)
        self._assigned = assigned
        if self.since is None:
            self.since, self._settled = now, settled
            return
        readings = settled - self._settled
        if readings >= MIN_READINGS or (readings > 0 and self.unit_cost is None):
            self.unit_cost = Cost(spent.usd / readings, ceil(spent.tokens / readings))
        if readings >= MIN_READINGS and now - self.since >= PRICE_SECONDS:
            self.since, self._settled = now, settled

    def factor(self, caps: Sequence[SpendingCap], spent: Sequence[Cost], waiting: float) -> float:
        """Returns the factor by which the judge's probability is multiplied from now on: see `pacing_factor`."""
        rate = self._arrivals.per_second or 0.0
        return pacing_factor(caps, spent, unit_cost=self.unit_cost or Cost(), waiting=waiting, rate=rate)
