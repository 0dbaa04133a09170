"""Sampling control: sets the probability with which each judge reads a draw at present.

The probability falls before a draw where the budget or the time of a judge is short, and is stored with each draw, so
that estimates stay unbiased: no draw is preferred because it came first.

Budget accounts reserve the worst-case cost of a call before it, so that no cap is ever exceeded.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ragwatch.errors import JudgeError
from ragwatch.model.budget import Cost, SpendingCap, SpendingForecast, fits, remaining
from ragwatch.ports import Accounts, Clock, Store
from ragwatch.statistics.sampling import shedding_factor
from ragwatch.statistics.tally import Tallies, Tally
from ragwatch.statistics.verdict import UnjudgedReason

SHED_AT = 8  # parts of the longest queue: one eighth of it halves the factor of a judge, two eighths quarter it


@dataclass(frozen=True, slots=True)
class JudgePlan:
    """What one judge is to read."""

    probability: float  # conditional probability that it reads a draw, where nothing is short
    caps: tuple[SpendingCap, ...] = ()  # what it may spend; empty for no limits
    waits: bool = False  # whether the sources wait for it when it is behind; the factor of other judges falls instead


class SamplingControl:
    """The loop that sets the factors by which the probabilities of the judges are lowered.

    Args:
        plans: By judge.
        store: Holds the counts, the queues, and what each judge has spent.
        max_pending: Length of the longest queue.
    """

    def __init__(
        self, plans: Mapping[str, JudgePlan], store: Store, max_pending: int, clock: Clock = time.time
    ) -> None:
        self._plans = dict(plans)
        self._store = store
        self._clock = clock
        self._shed_above = max(1, max_pending // SHED_AT)
        self._forecasts = {name: SpendingForecast() for name, plan in self._plans.items() if plan.caps}
        self._factors = dict.fromkeys(self._plans, 1.0)
        self._remaining: dict[str, float] = {}

    def inherit(self, old: SamplingControl, judges: Collection[str]) -> None:
        """Take over factors and forecasts of these judges from before a reload, where their plans have not changed."""
        for name in judges:
            if name in self._plans and self._plans[name] == old._plans.get(name):
                self._factors[name] = old._factors[name]
                if name in old._forecasts:
                    self._forecasts[name] = old._forecasts[name]

    def factor(self, judge: str) -> float:
        """Factor on the judge's probability at present, in (0, 1]."""
        return self._factors[judge]

    def in_force(self) -> dict[str, float]:
        """Probability that each judge reads a draw, at present."""
        return {name: plan.probability * self._factors[name] for name, plan in self._plans.items()}

    def budgets(self) -> dict[str, float]:
        """Share of its budget that is left, by judge that has one."""
        return dict(self._remaining)

    def adopt(self, in_force: Mapping[str, float], budgets: Mapping[str, float]) -> None:
        """Use the factors that another worker has set: see `in_force` and `budgets`."""
        for name, plan in self._plans.items():
            if name in in_force and plan.probability > 0.0:
                self._factors[name] = min(1.0, in_force[name] / plan.probability)
        self._remaining = dict(budgets)

    async def step(self) -> bool:
        """Set the factors once. Always False: no more work is waiting."""
        await asyncio.to_thread(self.resume)
        return False

    def resume(self) -> None:
        """Set the factors from what the store holds now."""
        self.update(*self._store.tallies_and_pending(), self._clock())

    def update(self, tallies: Tallies, pending: Mapping[str, int], now: float) -> None:
        """Set the factors from the queues and the accounts."""
        for name, plan in self._plans.items():
            waiting = pending.get(name, 0)
            factor = 1.0 if plan.waits else shedding_factor(waiting, self._shed_above)
            if plan.caps:
                factor *= self._affordable(name, plan, tallies, waiting, now)
            self._factors[name] = factor

    def _affordable(self, name: str, plan: JudgePlan, tallies: Tallies, waiting: int, now: float) -> float:
        forecast = self._forecasts[name]
        spent = [self._store.spent(name, now - cap.seconds) for cap in plan.caps]
        self._remaining[name] = remaining(plan.caps, spent)
        forecast.update(
            now,
            assigned=tallies[Tally.ASSIGNED, (name,)],
            settled=tallies[Tally.REJUDGED, (name,)]
            + sum(count for (tally, at), count in tallies.items() if tally is Tally.JUDGED and at[1] == name),
            spent=Cost() if forecast.since is None else self._store.spent(name, forecast.since),
            factor=self._factors[name],
        )
        return forecast.factor(plan.caps, spent, waiting)


HALVINGS = 7  # the waiting time in a message is precise to 1/128 of the span of a cap


class StoredBudgetAccount:
    """The budget of one judge, on accounts that survive a kill. Spending is stored without caps, too."""

    def __init__(self, judge: str, caps: Sequence[SpendingCap], accounts: Accounts, clock: Clock) -> None:
        self._judge = judge
        self._caps = tuple(caps)
        self._accounts = accounts
        self._clock = clock

    async def reserve(self, worst: Cost) -> int:
        """Reserve the worst-case cost. Returns the number of the reservation.

        Raises:
            JudgeError: `over_budget`: it would exceed a cap at present, or (permanent) at any time.
        """
        return await asyncio.to_thread(self._reserve, worst)

    async def settle(self, reservation: int, actual: Cost) -> None:
        """Replace a reservation by the actual cost. One that is never settled counts in full."""
        await asyncio.to_thread(self._accounts.pay, reservation, actual)

    def _reserve(self, worst: Cost) -> int:
        for cap in self._caps:
            if not fits(cap, Cost(), worst):
                message = f"one call may cost {_amount(worst)}, more than {_limit(cap)}; raise that budget"
                raise JudgeError(UnjudgedReason.OVER_BUDGET, message, permanent=True)
        now = self._clock()
        reservation = self._accounts.reserve(self._judge, worst, self._caps, now=now)
        if reservation is None:
            waits = [(cap, self._wait(cap, worst, now)) for cap in self._caps]
            cap, seconds = max(waits, key=lambda wait: wait[1])
            message = f"no budget for {_amount(worst)} within {_limit(cap)}; expected in {seconds:.0f} s"
            raise JudgeError(UnjudgedReason.OVER_BUDGET, message, permanent=False)
        return reservation

    def _wait(self, cap: SpendingCap, worst: Cost, now: float) -> float:
        """Seconds until a cap allows a cost, if nothing more is spent, because earlier calls leave its span."""
        if fits(cap, self._accounts.spent(self._judge, now - cap.seconds), worst):
            return 0.0
        low, high = 0.0, cap.seconds
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            if fits(cap, self._accounts.spent(self._judge, now + middle - cap.seconds), worst):
                high = middle
            else:
                low = middle
        return high


class InMemoryBudget:
    """The budget of a judge without a store and without limits, as in `ragwatch judge`: it ends with the process."""

    def __init__(self) -> None:
        self._costs: list[Cost] = []
        self._settled: set[int] = set()

    async def reserve(self, worst: Cost) -> int:
        """See `BudgetAccount`."""
        self._costs.append(worst)
        return len(self._costs) - 1

    async def settle(self, reservation: int, actual: Cost) -> None:
        """See `BudgetAccount`. Repeated calls for the same reservation have no effect."""
        if reservation not in self._settled:
            self._settled.add(reservation)
            self._costs[reservation] = actual

    def spent(self) -> Cost:
        """Cost reserved or paid so far."""
        return sum(self._costs, Cost())


def _amount(cost: Cost) -> str:
    return f"${cost.usd:.4f} and {cost.tokens} tokens"


def _limit(cap: SpendingCap) -> str:
    parts = [] if cap.usd is None else [f"${cap.usd:.2f}"]
    parts += [] if cap.tokens is None else [f"{cap.tokens} tokens"]
    return f"{' and '.join(parts)} in {cap.seconds:.0f} s"
